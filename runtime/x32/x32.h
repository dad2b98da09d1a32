/*
 * What an x32 program hands to the kernel, where it differs from what a 64-bit one does.
 * Layouts: linux include/linux/compat.h, arch/x86/include/asm/{compat,sigframe}.h.
 */
#ifndef X32_X32_H
#define X32_X32_H

#include "kernel.h"

#define X32_BIT 0x40000000U

struct __attribute__((packed)) sigaction32 {
    u32 handler, flags, restorer;
    u64 mask;
};

/* compat_siginfo_t: the union begins at 12. */
struct siginfo32 {
    i32 signo, error, code;
    u8 rest[116];
};

struct ucontext32 {
    u32 flags, link;
    u32 stack_sp;
    i32 stack_flags;
    u32 stack_size, padding;
    struct sigcontext registers;
    u64 mask;
};

/* struct rt_sigframe_x32 */
struct frame32 {
    u64 return_address;
    struct ucontext32 context;
    struct siginfo32 info;
};
_Static_assert(sizeof(struct frame32) == 424, "arch/x86/include/asm/sigframe.h");

struct iovec32 {
    u32 base, size;
};

struct msghdr32 {
    u32 name;
    i32 name_size;
    u32 vectors, vector_count, control, control_size, flags;
};

#endif
