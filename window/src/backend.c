/* Reading, writing and mapping of a store's bytes. System V segments have all but the first pages. */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store.h"

static bool in_segments(const struct backend *backend, uint64_t offset) {
    return backend->kind == WW_SYSV && offset >= LOG_OFFSET;
}

int ww_backend_read(const struct backend *backend, void *bytes, size_t length, uint64_t offset) {
    if (in_segments(backend, offset))
        return ww_segments_copy(backend, bytes, length, offset, false);
    char *next = bytes;
    while (length > 0) {
        const ssize_t got = pread(backend->fd, next, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ww_fail_errno(errno, "%s: %zu bytes at offset %llu cannot be read", backend->path, length,
                                 (unsigned long long)offset);
        if (got == 0)
            return ww_fail(EBADMSG, "%s: the store is truncated: it has no byte %llu", backend->path,
                           (unsigned long long)offset);
        next += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return 0;
}

int ww_backend_write(const struct backend *backend, const void *bytes, size_t length, uint64_t offset) {
    if (in_segments(backend, offset))
        return ww_segments_copy(backend, (void *)bytes, length, offset, true);
    const char *next = bytes;
    while (length > 0) {
        const ssize_t put = pwrite(backend->fd, next, length, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return ww_fail_errno(errno, "%s: %zu bytes at offset %llu cannot be written", backend->path,
                                 length, (unsigned long long)offset);
        next += put;
        offset += (uint64_t)put;
        length -= (size_t)put;
    }
    return 0;
}

#define BUFFER_BYTES 65536u

/* Through a buffer: the kernel reports a full disk here, where a mapping would raise SIGBUS. */
int ww_backend_copy(const struct backend *backend, uint64_t from, uint64_t to, uint64_t length) {
    char buffer[BUFFER_BYTES];
    for (uint64_t done = 0; done < length;) {
        const size_t part = length - done < sizeof buffer ? (size_t)(length - done) : sizeof buffer;
        if (ww_backend_read(backend, buffer, part, from + done) ||
            ww_backend_write(backend, buffer, part, to + done))
            return -1;
        done += part;
    }
    return 0;
}

int ww_backend_zero(const struct backend *backend, uint64_t offset, uint64_t length) {
    static const char zeros[BUFFER_BYTES];
    for (uint64_t done = 0; done < length;) {
        const size_t part = length - done < sizeof zeros ? (size_t)(length - done) : sizeof zeros;
        if (ww_backend_write(backend, zeros, part, offset + done))
            return -1;
        done += part;
    }
    return 0;
}

int ww_backend_sync(const struct backend *backend) {
    if (backend->no_sync)
        return 0;
    if (fdatasync(backend->fd))
        return ww_fail_errno(errno,
                             "%s: the disk did not take what was written; close the store, and open it again",
                             backend->path);
    return 0;
}

int ww_backend_map(const struct backend *backend, char *address, size_t length, uint64_t offset,
                   bool writable) {
    if (in_segments(backend, offset))
        return ww_segments_map(backend, address, length, offset, writable);
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    if (mmap(address, length, protection, MAP_SHARED | MAP_FIXED, backend->fd, (off_t)offset) == MAP_FAILED)
        return ww_fail_errno(errno, "%s: %zu bytes at offset %llu cannot be mapped", backend->path, length,
                             (unsigned long long)offset);
    return 0;
}

int ww_backend_extent(const struct backend *backend, uint64_t offset, uint64_t end, uint64_t *begin,
                      uint64_t *stop) {
    *begin = offset;
    *stop = end;
    if (offset >= end)
        return 0;
    if (backend->kind == WW_SYSV)
        return 1; /* which pages are allocated is not known */
    const off_t data = lseek(backend->fd, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return 0;
    const off_t hole = data < 0 ? -1 : lseek(backend->fd, data, SEEK_HOLE);
    if (hole < 0)
        return ww_fail_errno(errno, "%s: its extents cannot be found", backend->path);
    if ((uint64_t)data >= end)
        return 0;
    *begin = (uint64_t)data;
    *stop = (uint64_t)hole < end ? (uint64_t)hole : end;
    return 1;
}
