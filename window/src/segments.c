/*
 * Stores in System V segments (trent-2003, section 5.2). A segment can only be attached as a whole: it is
 * attached somewhere, a part of that is mapped a second time where it is wanted (mremap of a shared mapping
 * with an old size of 0), and it is detached again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "store.h"

int ww_segments_create(struct backend *backend, uint64_t bytes) {
    const uint64_t count = (bytes + backend->segment_bytes - 1) / backend->segment_bytes;
    if (count > MOST_SEGMENTS)
        return ww_fail(
            EINVAL,
            "%s: %llu segments of %llu bytes are needed, and %u is the most; give larger segment_bytes",
            backend->path, (unsigned long long)count, (unsigned long long)backend->segment_bytes,
            MOST_SEGMENTS);
    backend->identifiers = calloc(MOST_SEGMENTS, sizeof *backend->identifiers);
    backend->attachments = calloc(MOST_ATTACHMENTS, sizeof *backend->attachments);
    if (!backend->identifiers || !backend->attachments)
        return ww_fail_errno(ENOMEM, "%s", backend->path);
    for (uint32_t i = 0; i < count; i++) {
        const int identifier = shmget(IPC_PRIVATE, (size_t)backend->segment_bytes,
                                      IPC_CREAT | SHM_NORESERVE | S_IRUSR | S_IWUSR);
        if (identifier < 0)
            return ww_fail_errno(errno, "%s: System V segment %u of %llu bytes cannot be made", backend->path,
                                 i, (unsigned long long)backend->segment_bytes);
        backend->identifiers[i] = identifier;
        backend->segments = i + 1;
    }
    return ww_backend_write(backend, backend->identifiers, backend->segments * sizeof *backend->identifiers,
                            SEGMENTS_OFFSET);
}

int ww_segments_read(struct backend *backend, const struct superblock *super) {
    backend->identifiers = calloc(MOST_SEGMENTS, sizeof *backend->identifiers);
    if (!backend->identifiers)
        return ww_fail_errno(ENOMEM, "%s: %u System V segments", backend->path, super->segments);
    if (ww_backend_read(backend, backend->identifiers, super->segments * sizeof *backend->identifiers,
                        SEGMENTS_OFFSET))
        return -1;
    backend->segment_bytes = super->segment_bytes;
    backend->segments = super->segments;
    return 0;
}

int ww_segments_open(struct backend *backend, const struct superblock *super) {
    if (ww_segments_read(backend, super))
        return -1;
    backend->attachments = calloc(MOST_ATTACHMENTS, sizeof *backend->attachments);
    if (!backend->attachments)
        return ww_fail_errno(ENOMEM, "%s", backend->path);
    for (uint32_t i = 0; i < backend->segments; i++) {
        struct shmid_ds status;
        if (shmctl(backend->identifiers[i], IPC_STAT, &status) ||
            (uint64_t)status.shm_segsz != backend->segment_bytes)
            return ww_fail(EIDRM,
                           "%s: System V segment %u of the store is gone; ww_remove removes what is left",
                           backend->path, i);
    }
    return 0;
}

void ww_segments_remove(const struct backend *backend) {
    for (uint32_t i = 0; i < backend->segments; i++) {
        struct shmid_ds status;
        /* An identifier may have been given to another program's segment since. */
        if (!shmctl(backend->identifiers[i], IPC_STAT, &status) &&
            (uint64_t)status.shm_segsz == backend->segment_bytes)
            shmctl(backend->identifiers[i], IPC_RMID, NULL);
    }
}

/* Attachments that are kept, since one costs more than the mappings that are made from it. */
static const uint64_t kept_bytes = sizeof(void *) == 4 ? 512u << 20 : 16ull << 30;

static void detach_all(const struct backend *backend) {
    for (unsigned i = 0; i < MOST_ATTACHMENTS; i++)
        if (backend->attachments[i].address) {
            shmdt(backend->attachments[i].address);
            backend->attachments[i].address = NULL;
        }
}

void ww_segments_close(struct backend *backend) {
    if (backend->attachments)
        detach_all(backend);
    free(backend->attachments);
    free(backend->identifiers);
}

static char *attached(const struct backend *backend, uint64_t segment) {
    if (segment >= backend->segments) {
        ww_fail(EBADMSG, "%s: the store has no segment %llu", backend->path, (unsigned long long)segment);
        return NULL;
    }
    uint64_t most = kept_bytes / backend->segment_bytes;
    most = most < 1 ? 1 : most > MOST_ATTACHMENTS ? MOST_ATTACHMENTS : most;
    struct attachment *attachment = &backend->attachments[segment % most];
    if (attachment->address && attachment->segment == segment)
        return attachment->address;
    if (attachment->address)
        shmdt(attachment->address);
    attachment->address = NULL;
    char *address = shmat(backend->identifiers[segment], NULL, 0);
    if (address == (char *)-1 && errno == ENOMEM) {
        detach_all(backend);
        address = shmat(backend->identifiers[segment], NULL, 0);
    }
    if (address == (char *)-1) {
        ww_fail_errno(errno, "%s: System V segment %llu cannot be attached", backend->path,
                      (unsigned long long)segment);
        return NULL;
    }
    *attachment = (struct attachment){(uint32_t)segment, address};
    return address;
}

/* Calls for each part that is in one segment. */
static int each_part(const struct backend *backend, char *bytes, size_t length, uint64_t offset,
                     bool (*part)(char *attached, char *bytes, size_t length)) {
    offset -= LOG_OFFSET;
    while (length > 0) {
        const uint64_t within = offset % backend->segment_bytes;
        const uint64_t left = backend->segment_bytes - within;
        const size_t now = length < left ? length : (size_t)left;
        char *address = attached(backend, offset / backend->segment_bytes);
        if (!address)
            return -1;
        if (!part(address + within, bytes, now))
            return ww_fail_errno(errno, "%s: a part of a System V segment cannot be mapped", backend->path);
        bytes += now;
        offset += now;
        length -= now;
    }
    return 0;
}

static bool map_part(char *attached, char *bytes, size_t length) {
    return mremap(attached, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, bytes) != MAP_FAILED;
}

static bool map_part_to_read(char *attached, char *bytes, size_t length) {
    return map_part(attached, bytes, length) && mprotect(bytes, length, PROT_READ) == 0;
}

static bool read_part(char *attached, char *bytes, size_t length) {
    memcpy(bytes, attached, length);
    return true;
}

static bool write_part(char *attached, char *bytes, size_t length) {
    memcpy(attached, bytes, length);
    return true;
}

int ww_segments_map(const struct backend *backend, char *address, size_t length, uint64_t offset,
                    bool writable) {
    return each_part(backend, address, length, offset, writable ? map_part : map_part_to_read);
}

int ww_segments_copy(const struct backend *backend, void *bytes, size_t length, uint64_t offset, bool write) {
    return each_part(backend, bytes, length, offset, write ? write_part : read_part);
}
