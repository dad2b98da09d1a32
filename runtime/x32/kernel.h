/*
 * The kernel's side, as a 64-bit process sees it: raw system calls and the few structures the runtime hands
 * over. Layouts: linux include/uapi, arch/x86/include/uapi/asm/{sigcontext,ucontext}.h.
 */
#ifndef X32_KERNEL_H
#define X32_KERNEL_H

#include <asm/errno.h>
#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

#include "../syscall.h"

/* Everything is in one file: what is declared elsewhere needs no table of addresses. */
#pragma GCC visibility push(hidden)

/* Data of which few pages are ever touched, or late: it lies after the rest (a page that is touched costs as
 * much as ten calls, and again after a fork). */
#define LARGE __attribute__((section(".bss.large")))

typedef uint64_t u64;
typedef int64_t i64;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint8_t u8;

#define PAGE 4096UL
#define ROUND_UP(value, unit) (((value) + (unit)-1) & ~((unit)-1))
#define ROUND_DOWN(value, unit) ((value) & ~((unit)-1))

/* A call of the runtime's own. It is not restarted and not interrupted: whatever arrives meanwhile waits
 * until the runtime returns to the program (signals.c). */
#define KERNEL_1(n, a) syscall6((n), (long)(a), 0, 0, 0, 0, 0)
#define KERNEL_2(n, a, b) syscall6((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define KERNEL_3(n, a, b, c) syscall6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define KERNEL_4(n, a, b, c, d) syscall6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define KERNEL_5(n, a, b, c, d, e) syscall6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define KERNEL_6(n, a, b, c, d, e, f)                                                                        \
    syscall6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int failed(long result) { return (unsigned long)result > -4096UL; }

#define AT_FDCWD -100
/* For a file that may be a pipe with a name, of which the other end may never be opened. */
#define O_NONBLOCK 04000
#define O_CLOEXEC 02000000
#define O_PATH 010000000
#define AT_EMPTY_PATH 0x1000
#define F_GETFD 1
#define FD_CLOEXEC 1
#define AT_EACCESS 0x200
#define X_OK 1

#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_PRIVATE 2
#define MAP_SHARED_VALIDATE 3
#define MAP_TYPE 0xf
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_32BIT 0x40
#define MAP_GROWSDOWN 0x100
#define MAP_STACK 0x20000
#define MAP_NORESERVE 0x4000
#define MAP_LOCKED 0x2000
#define MAP_HUGETLB 0x40000
#define MAP_HUGE_SHIFT 26
#define MAP_HUGE_MASK 0x3f
#define MAP_FIXED_NOREPLACE 0x100000
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#define MREMAP_DONTUNMAP 4

#define READ_IMPLIES_EXEC 0x400000

#define MADV_DONTNEED 4
#define MADV_FREE 8
#define MADV_DONTNEED_LOCKED 24
#define MADV_GUARD_INSTALL 102

#define RLIMIT_DATA 2
#define RLIMIT_STACK 3
#define RLIM_INFINITY (~0UL)

struct rlimit {
    u64 current, maximum;
};

#define PR_SET_NAME 15
#define PR_SET_SECCOMP 22
#define PR_SET_MM 35
#define PR_SET_MM_MAP 14
#define PR_SET_NO_NEW_PRIVS 38
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#define SECCOMP_MODE_FILTER 2

#define ARCH_SET_GS 0x1001
#define ARCH_GET_GS 0x1004
#define ARCH_SHSTK_ENABLE 0x5001

#define CLONE_VM 0x100
#define CLONE_SIGHAND 0x800
#define CLONE_VFORK 0x4000
#define CLONE_THREAD 0x10000
#define CLONE_CHILD_SETTID 0x01000000
#define CLONE_CLEAR_SIGHAND 0x100000000UL
#define MFD_CLOEXEC 1U

#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGALRM 14
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGWINCH 28
#define SIGPOLL 29
#define SIGSYS 31
#define SIGRTMIN 32
#define SIGNALS 64
#define SIGNAL_BIT(signal) (1UL << ((signal)-1))

#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define SIG_DFL 0
#define SIG_IGN 1

#define SA_NOCLDSTOP 0x1U
#define SA_NOCLDWAIT 0x2U
#define SA_SIGINFO 0x4U
#define SA_EXPOSE_TAGBITS 0x800U
#define SA_RESTORER 0x04000000U
#define SA_ONSTACK 0x08000000U
#define SA_RESTART 0x10000000U
#define SA_NODEFER 0x40000000U
#define SA_RESETHAND 0x80000000U

#define SS_ONSTACK 1
#define SS_DISABLE 2
#define SS_AUTODISARM (1U << 31)
#define MINSIGSTKSZ 2048

#define TRAP_TRACE 2
#define SYS_SECCOMP 1
#define SYS_USER_DISPATCH 2

struct kernel_sigaction {
    u64 handler;
    u64 flags;
    u64 restorer;
    u64 mask;
};

struct kernel_stack {
    u64 sp;
    i32 flags;
    u32 padding;
    u64 size;
};

/* The kernel's siginfo, 128 bytes; the union begins at 16 (at 12 for x32). */
struct siginfo64 {
    i32 signo, error, code, padding;
    u8 rest[112];
};

/* struct sigcontext_64: the same for both widths, but for what `fpstate` may point to. */
struct sigcontext {
    u64 r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
    u16 cs, gs, fs, ss;
    u64 error, trap, oldmask, cr2, fpstate, reserved[8];
};

struct ucontext64 {
    u64 flags, link;
    struct kernel_stack stack;
    struct sigcontext registers;
    u64 mask;
};

struct iovec64 {
    u64 base, size;
};

struct msghdr64 {
    u64 name;
    u32 name_size, padding;
    u64 vectors, vector_count, control, control_size;
    u32 flags, padding_end;
};

struct clone_args {
    u64 flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size,
        cgroup;
};

/* struct prctl_mm_map, include/uapi/linux/prctl.h */
struct mm_map {
    u64 start_code, end_code, start_data, end_data, start_brk, brk, start_stack, arg_start, arg_end,
        env_start, env_end, auxv;
    u32 auxv_size, exe_fd;
};

static inline void *copy_bytes(void *to, const void *from, size_t size) {
    u8 *target = to;
    const u8 *source = from;
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(size) : : "memory");
    return to;
}

static inline void clear_bytes(void *to, size_t size) {
    u8 *target = to;
    __asm__ volatile("rep stosb" : "+D"(target), "+c"(size) : "a"(0) : "memory");
}

static inline size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length] != 0) {
        length++;
    }
    return length;
}

static inline int same_text(const char *a, const char *b) {
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

#endif
