/* Hooks of the functions that close descriptors. The log's descriptor stays open for programs that this one
 * executes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log_file.h"
#include "real_allocator.h"
#include "state.h"

#pragma GCC visibility push(default)

int HOOK(close)(int fd) {
    if (UNLIKELY(!real_ready())) {
        return (int)syscall(SYS_close, fd);
    }
    if (UNLIKELY(log_file_is_descriptor(fd))) {
        errno = EBADF; /* as without a recorder */
        return -1;
    }
    return REAL(close)(fd);
}

int HOOK(dup2)(int old, int wanted) {
    if (UNLIKELY(!real_ready())) {
        return (int)syscall(SYS_dup2, old, wanted);
    }
    if (UNLIKELY(log_file_is_descriptor(wanted))) {
        log_file_move_descriptor();
    }
    return REAL(dup2)(old, wanted);
}

int HOOK(dup3)(int old, int wanted, int flags) {
    if (UNLIKELY(!real_ready())) {
        return (int)syscall(SYS_dup3, old, wanted, flags);
    }
    if (UNLIKELY(log_file_is_descriptor(wanted))) {
        log_file_move_descriptor();
    }
    return REAL(dup3)(old, wanted, flags);
}

#ifndef WIDTHWISE_HEAP_LINKED

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int close_some(unsigned first, unsigned last, int flags) {
    if (real_ready() && REAL(close_range) != NULL) {
        return REAL(close_range)(first, last, flags);
    }
    return (int)syscall(SYS_close_range, first, last, flags);
}

int close_range(unsigned first, unsigned last, int flags) {
    int kept = log_file_descriptor();
    if (kept < 0 || (unsigned)kept < first || (unsigned)kept > last) {
        return close_some(first, last, flags);
    }
    int result = 0;
    if ((unsigned)kept > first) {
        result = close_some(first, (unsigned)kept - 1, flags);
    }
    if (result == 0 && (unsigned)kept < last) {
        result = close_some((unsigned)kept + 1, last, flags);
    }
    return result;
}

void closefrom(int first) {
    int kept = log_file_descriptor();
    first = first < 0 ? 0 : first;
    if (kept >= first) {
        if (kept > first && close_some((unsigned)first, (unsigned)kept - 1, 0) != 0) {
            for (int fd = first; fd < kept; fd++) {
                syscall(SYS_close, fd);
            }
        }
        first = kept + 1;
    }
    if (real_ready() && REAL(closefrom) != NULL) {
        REAL(closefrom)(first);
    } else {
        close_some((unsigned)first, ~0U, 0);
    }
}

#endif

#pragma GCC visibility pop
