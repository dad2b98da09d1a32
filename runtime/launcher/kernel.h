/*
 * The kernel's side, by hand: the few system calls and structures the launcher needs, without a C library.
 * Numbers and layouts: linux include/uapi, arch/x86/entry/syscalls/syscall_64.tbl.
 */
#ifndef WIDTHWISE_LAUNCHER_KERNEL_H
#define WIDTHWISE_LAUNCHER_KERNEL_H

#include <asm/errno.h>
#include <asm/fcntl.h>
#include <asm/poll.h>
#include <asm/unistd.h>
#include <stdint.h>

#include "../syscall.h"

#define SIGKILL 9
#define SIGCHLD 17
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define WNOHANG 1
#define WALL 0x40000000
#define P_ALL 0
#define CLD_TRAPPED 4
#define CLD_STOPPED 5
#define WEXITED 4
#define WNOWAIT 0x01000000
#define CLONE_VM 0x100
#define CLONE_VFORK 0x4000
#define CLONE_INTO_CGROUP 0x200000000ULL
#define PR_SET_NAME 15
#define PR_SET_CHILD_SUBREAPER 36
#define PR_SET_THP_DISABLE 41
#define PR_GET_THP_DISABLE 42
#define ADDR_NO_RANDOMIZE 0x0040000
#define PTRACE_CONT 7
#define PTRACE_SEIZE 0x4206
#define PTRACE_LISTEN 0x4208
#define PTRACE_GETEVENTMSG 0x4201
#define PTRACE_EVENT_EXEC 4
#define PTRACE_EVENT_EXIT 6
#define PTRACE_EVENT_STOP 128
#define PTRACE_O_TRACEFORK 0x2
#define PTRACE_O_TRACEVFORK 0x4
#define PTRACE_O_TRACECLONE 0x8
#define PTRACE_O_TRACEEXEC 0x10
#define PTRACE_O_TRACEEXIT 0x40
#define PTRACE_O_EXITKILL 0x100000

struct timeval {
    int64_t seconds, microseconds;
};

struct timespec {
    int64_t seconds, nanoseconds;
};

/* struct rusage, include/uapi/linux/resource.h */
struct rusage {
    struct timeval user, system;
    int64_t peak_resident_kib, ixrss, idrss, isrss;
    int64_t minor_faults, major_faults, nswap, inblock, oublock, msgsnd, msgrcv, nsignals;
    int64_t voluntary_switches, involuntary_switches;
};

/* struct clone_args, include/uapi/linux/sched.h */
struct clone_arguments {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size,
        cgroup;
};

struct kernel_sigaction {
    void (*handler)(int);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};

#define SYSCALL(number, a, b, c, d) syscall6((number), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline long sys_read(int fd, void *data, uint64_t size) {
    return SYSCALL(__NR_read, fd, data, size, 0);
}
static inline long sys_write(int fd, const void *data, uint64_t size) {
    return SYSCALL(__NR_write, fd, data, size, 0);
}
/* If the other end is closed, this is an error and no signal. */
static inline long sys_send(int fd, const void *data, uint64_t size) {
    return syscall6(__NR_sendto, fd, (long)data, (long)size, 0x4000 /* MSG_NOSIGNAL */, 0, 0);
}
static inline long sys_pread(int fd, void *data, uint64_t size, long offset) {
    return SYSCALL(__NR_pread64, fd, data, size, offset);
}
static inline long sys_lseek(int fd, long offset, int whence) {
    return SYSCALL(__NR_lseek, fd, offset, whence, 0);
}
/* All pages of the file are mapped at once. */
static inline long sys_map_populated(int fd, uint64_t size) {
    return syscall6(__NR_mmap, 0, (long)size, 1 /* PROT_READ */, 0x8002 /* MAP_PRIVATE | MAP_POPULATE */, fd,
                    0);
}
static inline long sys_munmap(long address, uint64_t size) {
    return SYSCALL(__NR_munmap, address, size, 0, 0);
}
static inline long sys_open(const char *path, int flags, int mode) {
    return SYSCALL(__NR_open, path, flags, mode, 0);
}
static inline long sys_mkdir(const char *path, int mode) { return SYSCALL(__NR_mkdir, path, mode, 0, 0); }
static inline long sys_rmdir(const char *path) { return SYSCALL(__NR_rmdir, path, 0, 0, 0); }
static inline long sys_close(int fd) { return SYSCALL(__NR_close, fd, 0, 0, 0); }
static inline long sys_dup2(int from, int to) { return SYSCALL(__NR_dup2, from, to, 0, 0); }
static inline long sys_chdir(const char *path) { return SYSCALL(__NR_chdir, path, 0, 0, 0); }
static inline void sys_sched_yield(void) { SYSCALL(__NR_sched_yield, 0, 0, 0, 0); }
static inline long sys_setsid(void) { return SYSCALL(__NR_setsid, 0, 0, 0, 0); }
static inline long sys_kill(long pid, int signal) { return SYSCALL(__NR_kill, pid, signal, 0, 0); }
static inline long sys_prctl(int option, long value) {
    return syscall6(__NR_prctl, option, value, 0, 0, 0, 0);
}
static inline long sys_personality(long persona) { return SYSCALL(__NR_personality, persona, 0, 0, 0); }
static inline long sys_ptrace(long request, long pid, long address, long data) {
    return SYSCALL(__NR_ptrace, request, pid, address, data);
}
static inline long sys_execve(const char *file, char **argv, char **envp) {
    return SYSCALL(__NR_execve, file, argv, envp, 0);
}
static inline long sys_wait4(long pid, int *status, int options, struct rusage *usage) {
    return SYSCALL(__NR_wait4, pid, status, options, usage);
}
/* siginfo_t of waitid(2): its first fields (include/uapi/asm-generic/siginfo.h). */
struct ended {
    int signal, error, code, padding, pid;
    int rest[27];
};
/* A process that has ended, or a traced one that has stopped, if there is one. It is not reaped. */
static inline long sys_wait_without_reaping(struct ended *ended) {
    return syscall6(__NR_waitid, P_ALL, 0, (long)ended, WEXITED | WNOWAIT | WNOHANG | WALL, 0, 0);
}
static inline long sys_getpid(void) { return SYSCALL(__NR_getpid, 0, 0, 0, 0); }
static inline long sys_sched_setaffinity(long pid, uint64_t size, const uint64_t *mask) {
    return SYSCALL(__NR_sched_setaffinity, pid, size, mask, 0);
}
static inline void sys_close_on_exec(int fd) {
    SYSCALL(__NR_fcntl, fd, 2 /* F_SETFD */, 1 /* FD_CLOEXEC */, 0);
}

__attribute__((noreturn)) static inline void sys_exit_group(int status) {
    for (;;)
        SYSCALL(__NR_exit_group, status, 0, 0, 0);
}

/* Sleeps until that time of CLOCK_MONOTONIC; returns immediately if it is past. */
static inline void sleep_until(uint64_t at_ns) {
    struct timespec at = {(int64_t)(at_ns / 1000000000), (int64_t)(at_ns % 1000000000)};
    while (SYSCALL(__NR_clock_nanosleep, 1 /* CLOCK_MONOTONIC */, 1 /* TIMER_ABSTIME */, &at, 0) == -EINTR) {
    }
}
static inline uint64_t now_ns(void) {
    struct timespec time = {0, 0};
    SYSCALL(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, &time, 0, 0);
    return (uint64_t)time.seconds * 1000000000 + (uint64_t)time.nanoseconds;
}

/* A crashing program must not spend its time, and our disk, on a core file. */
static inline void sys_no_core_files(void) {
    uint64_t limit[2] = {0, 0};
    SYSCALL(__NR_prlimit64, 0, 4 /* RLIMIT_CORE */, limit, 0);
}

static inline void sys_unblock_all_signals(void) {
    uint64_t none = 0;
    SYSCALL(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, sizeof none);
}

/* SIGCHLD must have a handler to interrupt ppoll, and be blocked outside it, so that no end is missed. */
static inline void on_sigchld(int signal) { (void)signal; }
__attribute__((naked)) static void return_from_signal(void) {
    __asm__ volatile("mov %0, %%eax; syscall" : : "i"(__NR_rt_sigreturn));
}
static inline void sys_prepare_sigchld(void) {
    struct kernel_sigaction action = {on_sigchld, 0x04000000 /* SA_RESTORER */, return_from_signal, 0};
    SYSCALL(__NR_rt_sigaction, SIGCHLD, &action, 0, 8);
    uint64_t blocked = 1ull << (SIGCHLD - 1);
    SYSCALL(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &blocked, 0, sizeof blocked);
}

/* Waits for input on `poll` (if any), for a child, or for so many milliseconds (-1: for ever). */
static inline long sys_ppoll_with_sigchld(struct pollfd *poll, long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    uint64_t none = 0;
    return syscall6(__NR_ppoll, (long)poll, poll ? 1 : 0, milliseconds < 0 ? 0 : (long)&time, (long)&none, 8,
                    0);
}

/* Starts `function(argument)` in a child with a stack of its own; returns the child's number (entry.S). */
long sys_clone3(struct clone_arguments *arguments, int (*function)(void *), void *argument);
long sys_clone(struct clone_arguments *arguments, int (*function)(void *), void *argument);

static inline uint64_t length(const char *text) {
    uint64_t n = 0;
    while (text[n])
        n++;
    return n;
}

static inline void clear(void *data, uint64_t size) {
    volatile char *at = data; /* volatile: or the compiler makes a call to memset of it, and there is none */
    while (size-- > 0)
        *at++ = 0;
}

/* Copies `text` to `at` with its NUL; returns where the NUL is. */
static inline char *append(char *at, const char *text) {
    while ((*at = *text))
        at++, text++;
    return at;
}

static inline char *append_number(char *at, uint64_t number) {
    char digits[24];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0)
        *at++ = digits[--n];
    *at = 0;
    return at;
}

#endif
