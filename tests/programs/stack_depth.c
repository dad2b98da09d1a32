/* Measures how much of its caller's stack a function writes to, exactly: the stack below the stack pointer is
 * painted, the function is called, and the lowest word that is not as painted is the depth.
 *
 *   stack_depth
 *
 * prints a line a function: its name, and three depths in bytes: of the first call in a fresh thread, of many
 * further calls (so many that a log of them is longer than 64 KiB), and of a call after a module was closed.
 * The first line is of the first call in the process. Compiled as C++ it has the operators too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __cplusplus
#include <new>
#endif

#define PAINTED ((size_t)512 << 10)
#define MANY 100000
#define PATTERN ((uintptr_t)0x5ac3965a)
#define UNLOADED "libBrokenLocale.so.1" /* of every glibc, and no program has it loaded */

static void *blocks[MANY + 2];
static unsigned next;
static char *region;

static uintptr_t stack_pointer(void) {
    uintptr_t pointer;
#ifdef __LP64__
    __asm__ volatile("mov %%rsp, %0" : "=r"(pointer));
#else
    __asm__ volatile("mov %%esp, %0" : "=r"(pointer));
#endif
    return pointer;
}

__attribute__((noinline)) static size_t depth_of(void (*call)(void), unsigned times) {
    uintptr_t top = stack_pointer() & ~(uintptr_t)15;
    volatile uintptr_t *low = (volatile uintptr_t *)(top - PAINTED);
    for (volatile uintptr_t *word = low; (uintptr_t)word < top; word++) {
        *word = PATTERN;
    }
    for (unsigned i = 0; i < times; i++) {
        call();
    }
    while (*low == PATTERN && (uintptr_t)low < top) {
        low++;
    }
    return top - (uintptr_t)low;
}

static void fail(const char *what) {
    fprintf(stderr, "stack_depth: %s: errno %d\n", what, errno);
    _exit(9);
}

static void keep(void *block) {
    if (block == NULL) {
        fail("no memory");
    }
    blocks[next++] = block;
}

static size_t some_size(void) { return 1 + next % 300; }

static void call_malloc(void) { keep(malloc(some_size())); }
static void call_calloc(void) { keep(calloc(1, some_size())); }
static void call_realloc(void) {
    blocks[next] = realloc(blocks[next], 400);
    next++;
}
static void call_reallocarray(void) { keep(reallocarray(NULL, 2, some_size())); }
static void call_aligned_alloc(void) { keep(aligned_alloc(64, 64)); }
static void call_memalign(void) { keep(memalign(64, some_size())); }
static void call_valloc(void) { keep(valloc(some_size())); }
static void call_pvalloc(void) { keep(pvalloc(some_size())); }
static void call_posix_memalign(void) {
    if (posix_memalign(&blocks[next++], 64, some_size()) != 0) {
        fail("posix_memalign");
    }
}
static void call_free(void) {
    free(blocks[next]);
    blocks[next++] = NULL;
}
static void call_usable_size(void) {
    if (malloc_usable_size(blocks[next++]) == 0) {
        fail("malloc_usable_size");
    }
}

/* Always the same page, so that any number of calls is possible. */
static void call_mmap(void) {
    if (mmap(region, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != region) {
        fail("mmap");
    }
}
static void call_mmap64(void) {
    if (mmap64(region, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != region) {
        fail("mmap64");
    }
}
static void call_mremap(void) {
    if (mremap(region, 4096, 4096, 0) != region) {
        fail("mremap");
    }
}
static void call_mprotect(void) {
    if (mprotect(region, 4096, PROT_READ) != 0) {
        fail("mprotect");
    }
}
static void call_munmap(void) {
    if (munmap(region + 4096, 4096) != 0) {
        fail("munmap");
    }
}

static void *unloaded;
static void open_unloaded(void) {
    unloaded = dlopen(UNLOADED, RTLD_NOW);
    if (unloaded == NULL) {
        fail(UNLOADED);
    }
}
static void call_dlclose(void) {
    if (dlclose(unloaded) != 0) {
        fail("dlclose");
    }
    unloaded = NULL;
}
static void call_dlopen_dlclose(void) {
    open_unloaded();
    call_dlclose();
}

static void call_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    if (waitpid(child, NULL, 0) != child) {
        fail("fork");
    }
}
static void call__Fork(void) {
    pid_t child = _Fork();
    if (child == 0) {
        _exit(0);
    }
    if (waitpid(child, NULL, 0) != child) {
        fail("_Fork");
    }
}
static char missing[] = "/nowhere/at/all";
static char *missing_words[] = {missing, NULL};
static void call_execve(void) { execve(missing, missing_words, environ); }
static void call_posix_spawn(void) {
    pid_t child;
    if (posix_spawn(&child, missing, NULL, NULL, missing_words, environ) == 0) {
        fail("posix_spawn");
    }
}
static void call_execvpe(void) { execvpe(missing, missing_words, environ); }
static void call_fexecve(void) { fexecve(-1, missing_words, environ); }
static void call_posix_spawnp(void) {
    pid_t child;
    if (posix_spawnp(&child, missing, NULL, NULL, missing_words, environ) == 0) {
        fail("posix_spawnp");
    }
}
static void call_system(void) {
    if (system(":") != 0) {
        fail("system");
    }
}
static void call_popen(void) {
    FILE *shell = popen(":", "r");
    if (shell == NULL || pclose(shell) != 0) {
        fail("popen");
    }
}
static void call_close(void) { close(-1); }
static void call_dup2(void) { dup2(-1, 1000); }
static void call_dup3(void) { dup3(-1, 1000, 0); }
/* There is no such descriptor. */
static void call_close_range(void) { close_range(1U << 30, 1U << 30, 0); }
static void call_closefrom(void) { closefrom(1 << 30); }
static void call_siglongjmp(void) {
    sigjmp_buf here;
    if (sigsetjmp(here, 1) == 0) {
        siglongjmp(here, 1);
    }
}

/* As deep as no table of frames is. */
__attribute__((noinline)) static int deeper(int levels) {
    if (levels == 0) {
        call_malloc();
        return 1;
    }
    int inner = deeper(levels - 1);
    __asm__ volatile("" : "+r"(inner));
    return inner + 1;
}
static void call_deep(void) {
    if (deeper(3000) != 3001) {
        fail("deeper");
    }
}

/* Another stack for every number. */
__attribute__((noinline)) static int branch(unsigned number, int levels) {
    if (levels == 0) {
        call_malloc();
        return 1;
    }
    int inner = number & 1 ? branch(number >> 1, levels - 1) : 1 + branch(number >> 1, levels - 1);
    __asm__ volatile("" : "+r"(inner));
    return inner + 1;
}
static void call_branches(void) { branch(next, 17); }

#ifdef __cplusplus
static void call_new(void) { keep(::operator new(some_size())); }
static void call_new_array(void) { keep(::operator new[](some_size())); }
static void call_new_nothrow(void) { keep(::operator new(some_size(), std::nothrow)); }
static void call_new_aligned(void) { keep(::operator new(some_size(), std::align_val_t(64))); }
static void call_delete(void) { ::operator delete(blocks[next++]); }
static void call_delete_array(void) { ::operator delete[](blocks[next++]); }
static void call_delete_sized(void) { ::operator delete(blocks[next++], (size_t)100); }
static void call_new_throws(void) {
    bool caught = false;
    try {
        keep(::operator new((size_t)-1 - 8192));
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    if (!caught) {
        fail("no exception");
    }
}
#endif

static void prepare_blocks(void) {
    for (unsigned i = 0; i < MANY + 2; i++) {
        blocks[i] = malloc(100);
    }
}

struct row {
    const char *name;
    void (*prepare)(void);
    void (*call)(void);
    unsigned times;
    size_t first, many, after_dlclose;
};

static void *measure(void *argument) {
    struct row *row = (struct row *)argument;
    row->first = depth_of(row->call, 1);
    if (row->times > 0) {
        row->many = depth_of(row->call, row->times);
    }
    void *module = dlopen(UNLOADED, RTLD_NOW);
    if (module == NULL || dlclose(module) != 0) {
        fail(UNLOADED);
    }
    if (row->call == call_dlclose) {
        open_unloaded();
    }
    row->after_dlclose = depth_of(row->call, 1);
    return NULL;
}

static void print_row(struct row *row) {
    pthread_attr_t attributes;
    pthread_t thread;
    next = 0;
    if (row->prepare != NULL) {
        row->prepare();
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 2 * PAINTED);
    if (pthread_create(&thread, &attributes, measure, row) != 0 || pthread_join(thread, NULL) != 0) {
        fail("pthread_create");
    }
    printf("%s %zu %zu %zu\n", row->name, row->first, row->many, row->after_dlclose);
    for (unsigned i = 0; row->prepare != prepare_blocks && i < next; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

int main(void) {
    /* The first block of the process, if the C library needs none. */
    size_t start = depth_of(call_malloc, 1);
    printf("malloc,start %zu %zu %zu\n", start, start, start);
    region =
        (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        fail("mmap");
    }
    struct row rows[] = {
        {"malloc", NULL, call_malloc, MANY, 0, 0, 0},
        {"free", prepare_blocks, call_free, MANY, 0, 0, 0},
        {"calloc", NULL, call_calloc, MANY, 0, 0, 0},
        {"realloc", NULL, call_realloc, MANY, 0, 0, 0},
        {"reallocarray", NULL, call_reallocarray, MANY, 0, 0, 0},
        {"posix_memalign", NULL, call_posix_memalign, MANY, 0, 0, 0},
        {"aligned_alloc", NULL, call_aligned_alloc, MANY, 0, 0, 0},
        {"memalign", NULL, call_memalign, MANY, 0, 0, 0},
        {"valloc", NULL, call_valloc, 10000, 0, 0, 0},
        {"pvalloc", NULL, call_pvalloc, 10000, 0, 0, 0},
        {"malloc_usable_size", prepare_blocks, call_usable_size, MANY, 0, 0, 0},
        {"mmap", NULL, call_mmap, 20000, 0, 0, 0},
        {"mmap64", NULL, call_mmap64, 20000, 0, 0, 0},
        {"mremap", NULL, call_mremap, 20000, 0, 0, 0},
        {"mprotect", NULL, call_mprotect, 20000, 0, 0, 0},
        {"munmap", NULL, call_munmap, 20000, 0, 0, 0},
        {"dlclose", open_unloaded, call_dlclose, 0, 0, 0, 0},
        {"dlopen+dlclose", NULL, call_dlopen_dlclose, 100, 0, 0, 0},
        {"fork", NULL, call_fork, 20, 0, 0, 0},
        {"execve", NULL, call_execve, 20, 0, 0, 0},
        {"posix_spawn", NULL, call_posix_spawn, 20, 0, 0, 0},
        {"close", NULL, call_close, 20, 0, 0, 0},
        {"dup2", NULL, call_dup2, 20, 0, 0, 0},
        {"dup3", NULL, call_dup3, 20, 0, 0, 0},
        {"close_range", NULL, call_close_range, 20, 0, 0, 0},
        {"closefrom", NULL, call_closefrom, 20, 0, 0, 0},
        {"siglongjmp", NULL, call_siglongjmp, 20, 0, 0, 0},
        {"_Fork", NULL, call__Fork, 20, 0, 0, 0},
        {"execvpe", NULL, call_execvpe, 20, 0, 0, 0},
        {"fexecve", NULL, call_fexecve, 20, 0, 0, 0},
        {"posix_spawnp", NULL, call_posix_spawnp, 20, 0, 0, 0},
        {"system", NULL, call_system, 3, 0, 0, 0},
        {"popen+pclose", NULL, call_popen, 3, 0, 0, 0},
        {"malloc,deep", NULL, call_deep, 20, 0, 0, 0},
        {"malloc,branches", NULL, call_branches, 40000, 0, 0, 0},
#ifdef __cplusplus
        {"new", NULL, call_new, MANY, 0, 0, 0},
        {"new[]", NULL, call_new_array, MANY, 0, 0, 0},
        {"new,nothrow", NULL, call_new_nothrow, MANY, 0, 0, 0},
        {"new,aligned", NULL, call_new_aligned, MANY, 0, 0, 0},
        {"delete", prepare_blocks, call_delete, MANY, 0, 0, 0},
        {"delete[]", prepare_blocks, call_delete_array, MANY, 0, 0, 0},
        {"delete,sized", prepare_blocks, call_delete_sized, MANY, 0, 0, 0},
        {"new,throws", NULL, call_new_throws, 100, 0, 0, 0},
#endif
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_row(&rows[i]);
    }
    return 0;
}
