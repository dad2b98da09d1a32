/* Opens a store whose bytes are whatever they are, and reads and writes all of it. Any error is right; a
 * crash is not. */
#ifndef WIDTHWISE_WINDOW_TESTS_DAMAGE_H
#define WIDTHWISE_WINDOW_TESTS_DAMAGE_H

#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

/* Whether it could be opened. */
static inline int use_damaged_store(const char *path) {
    const ww_options options = {
        .window_bytes = 65536, .address_bytes = 4 << 20, .flags = WW_NO_SYNC, .wait_ms = 1};
    ww_store *store;
    if (ww_open(path, &options, &store)) {
        CHECK(ww_error()[0]);
        return 0;
    }
    if (ww_begin(store, WW_READ) == 0) {
        ww_iterator iterator;
        uint64_t sum = 0;
        ww_verify(store);
        const uint64_t length = ww_capacity(store) < 4 << 20 ? ww_capacity(store) : 4 << 20;
        if (ww_iterate(store, at(store, 0), length, WW_ALLOCATED, &iterator) == 0)
            while (ww_next(store, &iterator) == 1)
                for (size_t i = 0; i < iterator.length; i += 512)
                    sum += ((const unsigned char *)iterator.data)[i];
        ww_handle root;
        ww_pinned pinned;
        if (ww_root(store, &root) == 0 && root && ww_pin(store, root, 8, WW_READ, &pinned) == 0) {
            memcpy(&sum, pinned.data, 8);
            CHECK(ww_unpin(store, &pinned) == 0);
        }
        CHECK(ww_abort(store) == 0);
    }
    if (ww_begin(store, WW_WRITE) == 0) {
        ww_pinned pinned;
        if (ww_pin(store, at(store, 0), 8, WW_WRITE, &pinned) == 0) {
            memset(pinned.data, 1, 8);
            CHECK(ww_unpin(store, &pinned) == 0);
        }
        if (ww_commit(store))
            ww_abort(store);
    }
    ww_checkpoint(store);
    ww_close(store);
    return 1;
}

/* The bytes of a store of 64 KiB with six commits in its log. */
static inline size_t good_store(unsigned char **bytes) {
    const ww_options options = {.log_bytes = 256 << 10, .window_bytes = 65536, .address_bytes = 4 << 20};
    ww_store *store, *reader;
    const char *path = test_path("good");
    CHECK(ww_create(path, 64 << 10, &options, &store) == 0);
    CHECK(ww_open(path, &options, &reader) == 0 && ww_begin(reader, WW_READ) == 0);
    for (uint64_t i = 0; i < 6; i++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        for (uint64_t page = i; page < 16; page += 1 + i % 3)
            put_word(store, page * 4096, page + i);
        CHECK(ww_set_root(store, at(store, i * 4096)) == 0);
        CHECK(ww_commit(store) == 0);
    }
    CHECK(ww_close(store) == 0); /* the reader's snapshot keeps the log */
    struct stat status;
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && (*bytes = malloc((size_t)status.st_size)));
    CHECK(read(fd, *bytes, (size_t)status.st_size) == status.st_size && close(fd) == 0);
    CHECK(ww_abort(reader) == 0 && ww_close(reader) == 0 && ww_remove(path) == 0);
    return (size_t)status.st_size;
}

#endif
