/* Makes the checksums of a damaged store fit: superblock, roots, and what lies in the log like a record. */
#ifndef WIDTHWISE_WINDOW_TESTS_REPAIR_H
#define WIDTHWISE_WINDOW_TESTS_REPAIR_H

#include <string.h>

#include "../src/store.h"

static inline void repair_checksums(unsigned char *bytes, size_t size) {
    if (size < LOG_OFFSET)
        return;
    struct superblock super;
    memcpy(&super, bytes, sizeof super);
    super.checksum = ww_checksum(&super, offsetof(struct superblock, checksum));
    memcpy(bytes, &super, sizeof super);
    for (unsigned slot = 0; slot < ROOTS; slot++) {
        struct root root;
        memcpy(&root, bytes + (1 + slot) * PAGE_BYTES, sizeof root);
        if (root.magic != ROOT_MAGIC)
            continue;
        root.checksum = ww_checksum(&root, offsetof(struct root, checksum));
        memcpy(bytes + (1 + slot) * PAGE_BYTES, &root, sizeof root);
    }
    for (size_t at = LOG_OFFSET; at + PAGE_BYTES <= size; at += PAGE_BYTES) {
        struct record record;
        memcpy(&record, bytes + at, sizeof record);
        const uint64_t runs = (uint64_t)record.runs * sizeof(struct run),
                       first = frame_offset(record.first_frame);
        if (record.magic != RECORD_MAGIC || runs > size - at - sizeof record)
            continue;
        if (first <= size && (uint64_t)record.frames << PAGE_BITS <= size - first)
            record.frames_checksum = ww_checksum(bytes + first, (size_t)record.frames << PAGE_BITS);
        record.checksum = 0;
        struct checksum sum;
        ww_checksum_begin(&sum);
        ww_checksum_add(&sum, &record, sizeof record);
        ww_checksum_add(&sum, bytes + at + sizeof record, (size_t)runs);
        record.checksum = ww_checksum_end(&sum);
        memcpy(bytes + at, &record, sizeof record);
    }
}

#endif
