#include "initial_stack.h"
#include "diagnostics.h"
#include "user_memory.h"
#include <elf.h>

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#define AT_RSEQ_ALIGN 28
#endif
#define KERNEL_AT_MINSIGSTKSZ 51

/* What the kernel gives a new stack besides its content: fs/exec.c, setup_arg_pages(). */
#define FIRST_ROOM 0x20000UL
#define VECTOR_ENTRIES 32

static u64 texts_size(const char *const *texts, u64 count) {
    u64 size = 0;
    for (u64 i = 0; i < count; i++) {
        size += length_of(texts[i]) + 1;
    }
    return size;
}

static void put_texts(u64 at, const char *const *texts, u64 count) {
    for (u64 i = 0; i < count; i++) {
        u64 size = length_of(texts[i]) + 1;
        copy_bytes((void *)at, texts[i], size);
        at += size;
    }
}

static u32 *point_to_texts(u32 *cell, u64 at, u64 count) {
    for (u64 i = 0; i < count; i++) {
        *cell++ = (u32)at;
        at += length_of((const char *)at) + 1;
    }
    *cell++ = 0;
    return cell;
}

/* The environment is as the kernel has put it: one text behind the other. */
static u64 environment_size(const struct stack_content *content) {
    const char *const *texts = content->environment;
    u64 last = content->environment_count - 1;
    return content->environment_count == 0 ? 0 : (u64)(texts[last] - texts[0]) + length_of(texts[last]) + 1;
}

static u32 *point_to_environment(u32 *cell, u64 at, const struct stack_content *content) {
    const char *const *texts = content->environment;
    for (u64 i = 0; i < content->environment_count; i++) {
        *cell++ = (u32)(at + (u64)(texts[i] - texts[0]));
    }
    *cell++ = 0;
    return cell;
}

static u32 *put_pair(u32 *cell, u64 key, u64 value) {
    cell[0] = (u32)key;
    cell[1] = (u32)value;
    return cell + 2;
}

/* The runtime's own vector, with what differs for the program. */
static u32 *put_vector(u32 *cell, const struct stack_content *content, u64 platform, u64 random,
                       u64 file_name) {
    if (content->vdso != 0) {
        cell = put_pair(cell, AT_SYSINFO_EHDR, content->vdso);
    }
    for (const u64 *pair = content->kernel_vector; pair[0] != AT_NULL; pair += 2) {
        switch (pair[0]) {
        case AT_HWCAP:
        case AT_HWCAP2:
        case AT_PAGESZ:
        case AT_CLKTCK:
        case AT_FLAGS:
        case AT_UID:
        case AT_EUID:
        case AT_GID:
        case AT_EGID:
        case AT_SECURE:
        case KERNEL_AT_MINSIGSTKSZ:
        case AT_RSEQ_FEATURE_SIZE:
        case AT_RSEQ_ALIGN:
            /* AT_FLAGS may say that binfmt_misc kept the first word; the program is not to know. */
            cell = put_pair(cell, pair[0], pair[0] == AT_FLAGS ? 0 : pair[1]);
            break;
        default:
            break;
        }
    }
    cell = put_pair(cell, AT_PHDR, content->program_headers);
    cell = put_pair(cell, AT_PHENT, sizeof(Elf32_Phdr));
    cell = put_pair(cell, AT_PHNUM, content->program_header_count);
    cell = put_pair(cell, AT_BASE, content->interpreter_base);
    cell = put_pair(cell, AT_ENTRY, content->entry);
    cell = put_pair(cell, AT_RANDOM, random);
    cell = put_pair(cell, AT_EXECFN, file_name);
    cell = put_pair(cell, AT_PLATFORM, platform);
    return put_pair(cell, AT_NULL, 0);
}

void stack_build(struct stack *stack, u64 top, const struct stack_content *content) {
    /* COMPAT_ELF_PLATFORM: so it is called on an x32 kernel. */
    static const char platform_name[] = "i686";
    u64 arguments_size = texts_size(content->arguments, content->argument_count);
    u64 variables_size = environment_size(content);
    u64 texts = arguments_size + variables_size + length_of(content->file_name) + 1;
    u64 cells = content->argument_count + content->environment_count + 3 + 2 * VECTOR_ENTRIES;
    u64 size = ROUND_UP(texts + cells * 4 + 128, PAGE) + FIRST_ROOM;
    struct rlimit limit;
    /* The kernel keeps arguments and environment below a quarter of the stack's limit, but has done so for
     * 8-byte cells. */
    if (!failed(KERNEL_2(__NR_getrlimit, RLIMIT_STACK, &limit)) && size > limit.current) {
        size = ROUND_DOWN(limit.current, PAGE);
        if (size < texts + cells * 4 + 4 * PAGE) {
            give_up(126, "the stack's limit of %u bytes has no room for the arguments", limit.current);
        }
    }
    u64 protection = PROT_READ | PROT_WRITE | (content->executable ? PROT_EXEC : 0);
    /* Not noted in the map of what is taken (space.c), of which that page is touched by nothing else: above
     * the mappings nothing is searched before all below is taken, and then the kernel has the last word. */
    long low = KERNEL_6(__NR_mmap, top - size, size, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN | MAP_STACK, -1, 0);
    if (failed(low) || (u64)low != top - size) {
        give_up(126, "no room for a stack of %u bytes at %x: %s", size, top - size,
                failed(low) ? error_name(-low) : "the kernel takes the address for a hint");
    }
    stack->low = (u64)low;
    stack->top = top;
    /* From the top, as fs/exec.c and fs/binfmt_elf.c: an empty word, the file's name, environment, arguments;
     * the random gap; platform, random bytes; the vector, the pointers, the count. */
    u64 at = top - 8 - (length_of(content->file_name) + 1), file_name = at;
    copy_bytes((void *)at, content->file_name, length_of(content->file_name) + 1);
    stack->environment_end = at;
    at -= variables_size;
    stack->environment = at;
    copy_bytes((void *)at, content->environment[0], variables_size);
    stack->arguments_end = at;
    at -= arguments_size;
    stack->arguments = at;
    put_texts(at, content->arguments, content->argument_count);
    at = ROUND_DOWN(at - content->random_gap, 16UL) - sizeof platform_name;
    u64 platform = at;
    copy_bytes((void *)at, platform_name, sizeof platform_name);
    at = ROUND_DOWN(at - 16, 16UL);
    u64 random = at;
    copy_bytes((void *)at, content->random, 16);
    stack->sp = ROUND_DOWN(at - cells * 4, 16UL);
    u32 *cell = (u32 *)stack->sp;
    *cell++ = (u32)content->argument_count;
    cell = point_to_texts(cell, stack->arguments, content->argument_count);
    cell = point_to_environment(cell, stack->environment, content);
    stack->vector = (u64)cell;
    stack->vector_size = (u64)put_vector(cell, content, platform, random, file_name) - stack->vector;
}
