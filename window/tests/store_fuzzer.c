/*
 * libFuzzer's target for the reader of stores. The input is a list of patches of a good store, 12 bytes each:
 * which region (superblock, root or page of the log), the place in it, how many bytes, and up to 8 of these.
 * The checksums are made to fit, unless the input's first byte is odd.
 */
#include <sys/mman.h>

#include "damage.h"
#include "repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static size_t patch_place(const uint8_t *patch) {
    const size_t within = (size_t)patch[1] | (size_t)(patch[2] & 15) << 8;
    const unsigned region = patch[0] % 70;
    const size_t page = region < 4 ? region : LOG_OFFSET / PAGE_BYTES + region - 4;
    return page * PAGE_BYTES + (region < 4 ? within % 112 : within);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length) {
    static unsigned char *good, *bytes;
    static size_t size;
    static int fd;
    static char path[64];
    if (!good) {
        size = good_store(&good);
        test_end();
        fd = memfd_create("fuzzed", 0);
        CHECK(fd >= 0 && (bytes = malloc(size)));
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (length == 0)
        return 0;
    memcpy(bytes, good, size);
    for (const uint8_t *patch = input + 1; input + length - patch >= 12; patch += 12)
        memcpy(bytes + patch_place(patch), patch + 4, 1 + patch[3] % 8);
    if (input[0] % 2 == 0)
        repair_checksums(bytes, size);
    /* What lies between the log and the data stays a hole. */
    const size_t head = LOG_OFFSET + (256 << 10), data = 2 << 20;
    CHECK(ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)size) == 0);
    CHECK(pwrite(fd, bytes, head, 0) == (ssize_t)head);
    CHECK(pwrite(fd, bytes + data, size - data, (off_t)data) == (ssize_t)(size - data));
    use_damaged_store(path);
    return 0;
}
