/* x32's iovecs, 8 bytes each, made into the kernel's, 16 bytes each. */
#ifndef X32_IOVECS_H
#define X32_IOVECS_H

#include "kernel.h"

#define VECTORS_NEAR 64
#define VECTORS_MOST 1024 /* UIO_MAXIOV */

struct vectors {
    struct iovec64 near[VECTORS_NEAR];
    struct iovec64 *at; /* near, or a mapping */
    u64 count, mapped;
};

/* 0, -EINVAL (too many, or one too long), -EFAULT or -ENOMEM. */
long vectors_read(struct vectors *vectors, u64 address, u64 count);
void vectors_free(struct vectors *vectors);

#endif
