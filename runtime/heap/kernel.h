/*
 * The system calls that the recorder makes for itself. The C library's functions of these names would be
 * recorded, some are points at which a thread may be cancelled, and some take locks.
 *
 * All return what syscall() returns: -1 and errno if they fail.
 */
#ifndef WIDTHWISE_HEAP_KERNEL_H
#define WIDTHWISE_HEAP_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
/* Since Linux 5.14: allocates the pages now. Where there is no room it fails, and no SIGBUS comes later. */
#define POPULATE_WRITE 23

/* Where a call takes 64-bit numbers, i386 takes each as two registers. */
#ifdef __i386__
#define WIDE(value) (uint32_t)(value), (uint32_t)((uint64_t)(value) >> 32)
#else
#define WIDE(value) (value)
#endif

/* NULL: it failed. */
static inline void *kernel_map(void *at, uint64_t size, int flags, int fd, uint64_t offset) {
    if (size > SIZE_MAX) {
        errno = ENOMEM;
        return NULL;
    }
#ifdef SYS_mmap2
    long where =
        syscall(SYS_mmap2, at, (size_t)size, PROT_READ | PROT_WRITE, flags, fd, (long)(offset / PAGE));
#else
    long where = syscall(SYS_mmap, at, (size_t)size, PROT_READ | PROT_WRITE, flags, fd, (long)offset);
#endif
    return where == -1 ? NULL : (void *)(uintptr_t)(unsigned long)where;
}

static inline void kernel_unmap(void *address, uint64_t size) { syscall(SYS_munmap, address, (size_t)size); }

static inline int kernel_open(const char *name, int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC | O_NOCTTY, 0600);
}

static inline void kernel_close(int fd) { syscall(SYS_close, fd); }

static inline int kernel_truncate(int fd, uint64_t size) {
#ifdef __i386__
    return (int)syscall(SYS_ftruncate64, fd, WIDE(size));
#else
    return (int)syscall(SYS_ftruncate, fd, size);
#endif
}

static inline int kernel_truncate_path(const char *name, uint64_t size) {
#ifdef __i386__
    return (int)syscall(SYS_truncate64, name, WIDE(size));
#else
    return (int)syscall(SYS_truncate, name, size);
#endif
}

static inline int kernel_allocate(int fd, uint64_t from, uint64_t size) {
    return (int)syscall(SYS_fallocate, fd, 0, WIDE(from), WIDE(size));
}

static inline long kernel_write_at(int fd, const void *data, size_t size, uint64_t offset) {
    return syscall(SYS_pwrite64, fd, data, size, WIDE(offset));
}

static inline long kernel_read_at(int fd, void *data, size_t size, uint64_t offset) {
    return syscall(SYS_pread64, fd, data, size, WIDE(offset));
}

/* Which file a descriptor is. */
static inline int kernel_status(int fd, struct statx *status) {
    return (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_SIZE, status);
}

static inline int kernel_status_of_path(const char *name, struct statx *status) {
    return (int)syscall(SYS_statx, AT_FDCWD, name, 0, STATX_TYPE | STATX_INO | STATX_SIZE, status);
}

/* The soft limit; RLIM_INFINITY's 64-bit form where there is none. */
static inline uint64_t kernel_limit(int resource) {
    uint64_t limits[2] = {~0ULL, ~0ULL};
    syscall(SYS_prlimit64, 0, resource, NULL, limits);
    return limits[0];
}

/* Blocks signals of the thread. What it does until they are unblocked happens once, even if a handler forks,
 * and no handler runs on the recorder's stack. */
static inline uint64_t kernel_hold_signals(void) {
    uint64_t all = ~0ULL, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
    return before;
}

static inline void kernel_allow_signals(uint64_t before) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

/* Takes a signal that the recorder's own file operation has raised while signals were blocked. */
static inline void kernel_take_signal(int number) {
    uint64_t set = 1ULL << (number - 1);
    uint64_t none[2] = {0, 0};
#ifdef SYS_rt_sigtimedwait_time64
    syscall(SYS_rt_sigtimedwait_time64, &set, NULL, none, sizeof set);
#else
    syscall(SYS_rt_sigtimedwait, &set, NULL, none, sizeof set);
#endif
}

static inline uint64_t kernel_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

#endif
