/* The program's first stack: what the kernel leaves there at execve, in 4-byte cells. */
#ifndef X32_INITIAL_STACK_H
#define X32_INITIAL_STACK_H

#include "kernel.h"

/* arch_align_stack(), arch/x86/kernel/process.c: so the stack begins anywhere in its page. */
#define STACK_RANDOM_GAP 8192UL

struct stack_content {
    const char *const *arguments;
    u64 argument_count;
    const char *const *environment; /* one text behind the other, as the kernel puts them */
    u64 environment_count;
    const char *file_name;    /* AT_EXECFN */
    const u64 *kernel_vector; /* the runtime's own auxiliary vector, pairs, ending with AT_NULL */
    u32 program_headers, program_header_count, interpreter_base, entry;
    u64 vdso;
    const u8 *random; /* 16 bytes */
    u64 random_gap;   /* below the texts: less than STACK_RANDOM_GAP */
    int executable;
};

struct stack {
    u64 low, top; /* of the mapping */
    u64 sp;
    u64 arguments, arguments_end, environment, environment_end;
    u64 vector, vector_size; /* what /proc/self/auxv shows */
};

/* Maps it below `top` and fills it. */
void stack_build(struct stack *stack, u64 top, const struct stack_content *content);

#endif
