/* What is refused of a file that is no store, one of another machine or format, and one that is damaged at
 * its beginning. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "store.h"

int ww_check_super(const struct ww_store *store, struct superblock *super) {
    const char *path = store->backend.path;
    struct stat status;
    if (fstat(store->backend.fd, &status))
        return ww_fail_errno(errno, "%s", path);
    if (status.st_size < LOG_OFFSET)
        return ww_fail(EINVAL, "%s: not a store: it has %llu bytes, and the smallest store has %u", path,
                       (unsigned long long)status.st_size, LOG_OFFSET);
    if (ww_backend_read(&store->backend, super, sizeof *super, 0))
        return -1;
    if (memcmp(super->magic, MAGIC, sizeof super->magic))
        return ww_fail(EINVAL, "%s: not a store, or one whose creation was interrupted", path);
    if (super->byte_order == __builtin_bswap32(BYTE_ORDER_MARK))
        return ww_fail(ENOTSUP, "%s: the store was made by a machine of the other byte order", path);
    if (super->version != FORMAT_VERSION)
        return ww_fail(ENOTSUP, "%s: the store has format %u, and this library reads format %u", path,
                       super->version, FORMAT_VERSION);
    if (super->page_bytes != PAGE_BYTES)
        return ww_fail(ENOTSUP, "%s: the store has pages of %u bytes, and those of this ABI have %u", path,
                       super->page_bytes, PAGE_BYTES);
    if (super->checksum != ww_checksum(super, offsetof(struct superblock, checksum)))
        return ww_fail(EBADMSG, "%s: the superblock is damaged", path);
    const uint64_t most = (uint64_t)MOST_SEGMENTS << OFFSET_BITS;
    if (super->byte_order != BYTE_ORDER_MARK || super->kind > WW_SYSV || super->tag == 0 ||
        super->tag >> 20 || super->capacity == 0 || super->capacity % PAGE_BYTES ||
        super->capacity > OFFSET_MASK || super->log_bytes % PAGE_BYTES || super->log_bytes > OFFSET_MASK ||
        super->data_offset !=
            ((LOG_OFFSET + super->log_bytes + DATA_ALIGNMENT - 1) & ~(uint64_t)(DATA_ALIGNMENT - 1)) ||
        super->data_offset + super->capacity > OFFSET_MASK || super->segments > MOST_SEGMENTS ||
        super->segment_bytes % PAGE_BYTES || super->segment_bytes > most ||
        (super->kind == WW_SYSV && super->segment_bytes == 0))
        return ww_fail(EBADMSG, "%s: the superblock is damaged", path);
    const uint64_t wanted = super->kind == WW_SYSV ? LOG_OFFSET : super->data_offset + super->capacity;
    if ((uint64_t)status.st_size < wanted)
        return ww_fail(EBADMSG, "%s: the store is truncated: it has %llu bytes of %llu", path,
                       (unsigned long long)status.st_size, (unsigned long long)wanted);
    return 0;
}
