#define _GNU_SOURCE
#include "real_allocator.h"
#include "state.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

int real_is_glibc;
struct stretch real_allocator, real_recorder;
uint8_t early[1 << 16] __attribute__((aligned(16)));
static size_t early_used;

void *early_memory(size_t size) {
    size_t *block = (size_t *)(early + early_used + 16 - sizeof(size_t));
    size_t whole = (size + 31) & ~(size_t)15;
    if (size > sizeof early || early_used + whole > sizeof early) {
        return NULL;
    }
    *block = size;
    early_used += whole;
    return block + 1;
}

size_t early_size(const void *address) { return ((const size_t *)address)[-1]; }

#ifdef WIDTHWISE_HEAP_LINKED

/* A program with a malloc of its own cannot be linked with --wrap, so this malloc is the C library's. */
__attribute__((constructor)) static void know_allocator(void) {
    real_is_glibc = 1;
    state_know_allocator("", 1, 0);
}

#else

struct real real;

static int is_glibc(const void *function) {
    /* Only glibc has both functions, and only its malloc stores a block's size before the block. */
    Dl_info allocator, library;
    void *version = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    return version != NULL && dladdr(function, &allocator) && dladdr(version, &library) &&
           allocator.dli_fbase == library.dli_fbase;
}

struct measured {
    uintptr_t within;
    struct stretch *stretch;
};

/* The whole of the module that holds a code address. */
static int measure(struct dl_phdr_info *info, size_t size, void *argument) {
    struct measured *measured = argument;
    struct stretch stretch = module_stretch(info);
    (void)size;
    if (!is_within(stretch, measured->within)) {
        return 0;
    }
    *measured->stretch = stretch;
    return 1;
}

/* Whether a module defines a function of its own of that name. */
static int defines(void *module, const struct link_map *map, const char *name) {
    Dl_info info;
    void *function = dlsym(module, name);
    return function != NULL && dladdr(function, &info) && (uintptr_t)info.dli_fbase == (uintptr_t)map->l_addr;
}

/* Whether the program's calls of malloc reach another malloc than the recorder's. A symbol in the program is
 * no proof. A program at fixed addresses that takes malloc's address has an entry of its procedure linkage
 * table for it: an undefined symbol with a value, through which calls reach the first definition behind the
 * program (System V ABI, "Function Addresses"). */
static int is_replaced(void) {
    Dl_info first = {0}, own = {0};
    const ElfW(Sym) *symbol = NULL;
    void *malloc_of_all = dlsym(RTLD_DEFAULT, "malloc");
    if (!dladdr1(malloc_of_all, &first, (void **)&symbol, RTLD_DL_SYMENT) || !dladdr(early, &own) ||
        first.dli_fbase == own.dli_fbase) {
        return 0;
    }
    if (symbol == NULL || symbol->st_shndx != SHN_UNDEF) {
        return 1;
    }
    const struct link_map *map = _r_debug.r_map != NULL ? _r_debug.r_map->l_next : NULL;
    while (map != NULL && (uintptr_t)map->l_addr != (uintptr_t)own.dli_fbase) {
        if (defines((void *)map, map, "malloc")) {
            return 1;
        }
        map = map->l_next;
    }
    return 0;
}

int real_find(void) {
    static int looking;
    if (looking) {
        return 0;
    }
    looking = 1;
    struct real found;
#define FIND(name, result, parameters) found.name = (result(*) parameters)dlsym(RTLD_NEXT, #name);
    REAL_FUNCTIONS(FIND)
    REAL_MODULES(FIND)
#undef FIND
    Dl_info allocator = {0};
    dladdr((void *)found.malloc, &allocator);
    int replaced = is_replaced();
    real_is_glibc = is_glibc((void *)found.malloc);
    if (!real_is_glibc) {
        struct measured allocators = {(uintptr_t)found.malloc, &real_allocator};
        struct measured recorders = {(uintptr_t)early, &real_recorder};
        dl_iterate_phdr(measure, &allocators);
        dl_iterate_phdr(measure, &recorders);
    }
    state_know_allocator(allocator.dli_fname != NULL ? allocator.dli_fname : "", real_is_glibc, replaced);
    real = found;
    looking = 0;
    return 1;
}

#endif
