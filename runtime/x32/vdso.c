#include "vdso.h"
#include "offsets.h"
#include "space.h"
#include "user_memory.h"
#include <elf.h>

extern const u8 x32_vdso[], x32_vdso_end[], x32_vdso_targets[], x32_vdso_functions[], x32_vdso_left[];

static struct {
    u64 low, high; /* the kernel's */
    u64 functions; /* the program's */
} vdso;

#define FUNCTIONS 5
static const char names[FUNCTIONS][24] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time",
                                          "__vdso_clock_getres", "__vdso_getcpu"};

/* Where the functions are, in the order of their names: how many were found. */
static int find(u64 image, u64 targets[FUNCTIONS]) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image + header->e_phoff);
    const Elf64_Dyn *entry = NULL;
    u64 bias = image;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD) {
            bias = image + segments[i].p_offset - segments[i].p_vaddr;
            vdso.low = image;
            vdso.high = image + segments[i].p_offset + segments[i].p_memsz;
        } else if (segments[i].p_type == PT_DYNAMIC) {
            entry = (const Elf64_Dyn *)(image + segments[i].p_offset);
        }
    }
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    const u32 *hash = NULL;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) {
            symbols = (const Elf64_Sym *)(bias + entry->d_un.d_ptr);
        } else if (entry->d_tag == DT_STRTAB) {
            strings = (const char *)(bias + entry->d_un.d_ptr);
        } else if (entry->d_tag == DT_HASH) {
            hash = (const u32 *)(bias + entry->d_un.d_ptr);
        }
    }
    /* Since 6.x the vDSO may have DT_GNU_HASH alone; then the strings' place bounds the symbols, which come
     * before. */
    if (symbols == NULL || strings == NULL) {
        return 0;
    }
    u64 count = hash != NULL ? hash[1] : ((u64)strings - (u64)symbols) / sizeof(Elf64_Sym);
    int found = 0;
    for (u64 i = 0; i < count && count < 1000 && found < FUNCTIONS; i++) {
        for (int name = 0; symbols[i].st_shndx != SHN_UNDEF && name < FUNCTIONS; name++) {
            if (targets[name] == 0 && same_text(strings + symbols[i].st_name, names[name])) {
                targets[name] = bias + symbols[i].st_value;
                found++;
                break;
            }
        }
    }
    return found;
}

static long map_written(const u64 targets[FUNCTIONS]) {
    long page = space_map(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(page)) {
        return page;
    }
    copy_bytes((void *)page, x32_vdso, (size_t)(x32_vdso_end - x32_vdso));
    copy_bytes((u8 *)page + (x32_vdso_targets - x32_vdso), targets, FUNCTIONS * sizeof *targets);
    long result = KERNEL_3(__NR_mprotect, page, PAGE, PROT_READ | PROT_EXEC);
    if (failed(result)) {
        space_unmap((u64)page, PAGE);
        return result;
    }
    return page;
}

/* The same where nothing that was writable may be executed (PR_SET_MDWE, SELinux): it takes more calls. */
static long map_file(const u64 targets[FUNCTIONS]) {
    u64 size = FUNCTIONS * sizeof *targets, place = (u64)(x32_vdso_targets - x32_vdso);
    long file = KERNEL_2(__NR_memfd_create, "vdso", MFD_CLOEXEC), page = -ENOMEM;
    if (failed(file)) {
        return file;
    }
    if (KERNEL_3(__NR_write, file, x32_vdso, x32_vdso_end - x32_vdso) == x32_vdso_end - x32_vdso &&
        KERNEL_4(__NR_pwrite64, file, targets, size, place) == (long)size) {
        page = space_map(0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    }
    KERNEL_1(__NR_close, file);
    return page;
}

u64 vdso_map(u64 kernel_vdso) {
    u64 targets[FUNCTIONS] = {0};
    if (kernel_vdso == 0 || find(kernel_vdso, targets) < FUNCTIONS) {
        return 0;
    }
    long page = map_written(targets);
    page = failed(page) ? map_file(targets) : page;
    if (failed(page)) {
        return 0; /* the program makes calls instead */
    }
    vdso.functions = (u64)page + (u64)(x32_vdso_functions - x32_vdso);
    return (u64)page;
}

int vdso_is_at(u64 rip) { return rip >= vdso.low && rip < vdso.high; }

int vdso_return_to_runtime(struct thread *thread) {
    u64 ours = (u64)x32_vdso_left, back;
    if (READ_USER(back, thread->vdso_stack) < 0 || back >= TASK_SIZE ||
        WRITE_USER(thread->vdso_stack, ours) < 0) {
        return 0;
    }
    thread->vdso_back = back;
    return 1;
}

u64 vdso_begin_again(u64 rip) {
    u64 size = (u64)(x32_vdso_end - x32_vdso_functions);
    return vdso.functions != 0 && rip - vdso.functions < size ? ROUND_DOWN(rip, VDSO_FUNCTION_SIZE) : rip;
}
