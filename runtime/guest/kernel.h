/*
 * The kernel's side for 32-bit x86 programs without a C library: the few calls and structures that the
 * guest's first process needs. Numbers and layouts: linux arch/x86/entry/syscalls/syscall_32.tbl,
 * include/uapi. Both a 32-bit kernel and a 64-bit kernel (CONFIG_IA32_EMULATION) have them.
 */
#ifndef WIDTHWISE_GUEST_KERNEL_H
#define WIDTHWISE_GUEST_KERNEL_H

#include <stdint.h>

#if !defined(__i386__)
#error "the guest's first process is a 32-bit program, so that it starts on kernels of either width"
#endif

enum {
    CALL_EXIT = 1,
    CALL_FORK = 2,
    CALL_READ = 3,
    CALL_WRITE = 4,
    CALL_OPEN = 5,
    CALL_CLOSE = 6,
    CALL_EXECVE = 11,
    CALL_CHDIR = 12,
    CALL_LSEEK = 19,
    CALL_MOUNT = 21,
    CALL_MKDIR = 39,
    CALL_DUP2 = 63,
    CALL_SETSID = 66,
    CALL_IOPERM = 101,
    CALL_WAIT4 = 114,
    CALL_KILL = 37,
    CALL_MMAP = 90,
    CALL_MUNMAP = 91,
    CALL_PREAD64 = 180,
    CALL_PWRITE64 = 181,
    CALL_FTRUNCATE64 = 194,
    CALL_CLOCK_GETTIME = 265,
};

enum { O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_TRUNC = 01000, O_APPEND = 02000 };
enum { O_CLOEXEC = 02000000, O_LARGEFILE = 0100000 };
enum { PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1, MAP_ANONYMOUS = 0x20, MAP_POPULATE = 0x8000 };
enum { CLOCK_MONOTONIC = 1 };
enum { SIGKILL = 9 };

/* struct rusage of a 32-bit program. */
struct rusage {
    int32_t user_seconds, user_microseconds, system_seconds, system_microseconds;
    int32_t peak_resident_kib, ixrss, idrss, isrss;
    int32_t minor_faults, major_faults, nswap, inblock, oublock, msgsnd, msgrcv, nsignals;
    int32_t voluntary_switches, involuntary_switches;
};

/* struct timespec of a 32-bit program. */
struct timespec {
    int32_t seconds, nanoseconds;
};

/* The argument of CALL_MMAP, which takes one: its sixth has no register here. */
struct mapping {
    uint32_t address, length, protection, flags, file, offset;
};

/* The kernel's answer: a result, or an error number below 0. */
static inline int32_t call(int32_t number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
    int32_t result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory");
    return result;
}

#endif
