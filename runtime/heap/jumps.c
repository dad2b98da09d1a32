/* Hooks of the functions that leave frames without returning from them. One of the frames may be that of a
 * signal handler that has interrupted the recorder. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <ucontext.h>

#include "lifecycle.h"
#include "real_allocator.h"

/* Where glibc keeps the stack pointer in a jmp_buf (sysdeps/x86_64/jmpbuf-offsets.h, sysdeps/i386), and the
 * guard that it is mangled with in the thread's header (tcbhead_t in sysdeps/x86_64/nptl/tls.h,
 * sysdeps/i386/nptl/tls.h): it is xored with the guard, then rotated to the left. */
static uintptr_t stack_of(const struct __jmp_buf_tag *buffer) {
    uintptr_t mangled, guard;
#if defined(__x86_64__) && !defined(__ILP32__)
    mangled = (uintptr_t)buffer->__jmpbuf[6];
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    return (mangled >> 17 | mangled << 47) ^ guard;
#elif defined(__x86_64__)
    mangled = (uintptr_t)buffer->__jmpbuf[6];
    __asm__("movl %%fs:0x1c, %0" : "=r"(guard));
    return (mangled >> 9 | mangled << 23) ^ guard;
#else
    mangled = (uintptr_t)buffer->__jmpbuf[4];
    __asm__("movl %%gs:0x18, %0" : "=r"(guard));
    return (mangled >> 9 | mangled << 23) ^ guard;
#endif
}

#ifdef __x86_64__
#define STACK_REGISTER REG_RSP
#else
#define STACK_REGISTER REG_ESP
#endif

#define JUMP(name)                                                                                           \
    __attribute__((noreturn)) void HOOK(name)(struct __jmp_buf_tag * buffer, int value) {                    \
        lifecycle_jumps(stack_of(buffer));                                                                   \
        while (real_ready() && REAL(name) != NULL) {                                                         \
            REAL(name)(buffer, value);                                                                       \
        }                                                                                                    \
        __builtin_trap();                                                                                    \
    }
#define JUMP_BY_NAME(name) JUMP(name)

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-attributes"
/* jmp_buf is an array of one element; as a parameter it is a pointer. */
#pragma GCC diagnostic ignored "-Warray-parameter"

JUMP_BY_NAME(longjmp)
JUMP_BY_NAME(_longjmp)
JUMP_BY_NAME(siglongjmp)
#ifndef WIDTHWISE_HEAP_LINKED
JUMP_BY_NAME(__longjmp_chk)
#endif

int HOOK(setcontext)(const ucontext_t *context) {
    lifecycle_jumps((uintptr_t)context->uc_mcontext.gregs[STACK_REGISTER]);
    if (!real_ready()) {
        errno = ENOSYS;
        return -1;
    }
    return REAL(setcontext)(context);
}

#pragma GCC visibility pop
