/*
 * The system call, for programs without a C library: both of runtime/'s x86-64 programs make all of theirs
 * so.
 */
#ifndef WIDTHWISE_SYSCALL_H
#define WIDTHWISE_SYSCALL_H

#if !defined(__x86_64__) || defined(__ILP32__)
#error "64-bit code for x86-64; another host needs its own instruction and registers here"
#endif

/* The kernel's answer: a result, or an error number below 0. */
static inline long syscall6(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
