/*
 * A table of keys and values that is larger than the address space: `table FILE GIGABYTES KEYS`, for example
 * 20 GB in a 32-bit program. The file is sparse: it takes as much of the disk as was written. Run again, it
 * finds what is there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <widthwise/window.h>

struct entry { /* the same in every ABI */
    uint64_t key;
    char value[1016];
};

static void require(int result) {
    if (result < 0) {
        fprintf(stderr, "error: %s\n", ww_error());
        exit(1);
    }
}

static uint64_t hashed(uint64_t key) {
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93;
    return key ^ key >> 32;
}

/* The entry of that key, or the free one for it, pinned. */
static struct entry *find(ww_store *store, uint64_t key, unsigned mode, ww_pinned *pinned) {
    const uint64_t entries = ww_capacity(store) / sizeof(struct entry);
    for (uint64_t i = hashed(key) % entries;; i = (i + 1) % entries) {
        ww_handle handle;
        require(ww_handle_at(store, i * sizeof(struct entry), &handle));
        require(ww_pin(store, handle, sizeof(struct entry), WW_READ, pinned));
        struct entry *entry = pinned->data;
        const int is_free = entry->key == 0, is_it = entry->key == key;
        if (is_it || is_free) {
            if (mode == WW_WRITE) {
                require(ww_unpin(store, pinned));
                require(ww_pin(store, handle, sizeof(struct entry), mode, pinned));
            }
            return pinned->data;
        }
        require(ww_unpin(store, pinned));
    }
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: table FILE GIGABYTES KEYS\n");
        return 2;
    }
    const uint64_t bytes = strtoull(arguments[2], NULL, 10) * 1000000000,
                   keys = strtoull(arguments[3], NULL, 10);
    ww_store *store;
    if (ww_open(arguments[1], NULL, &store))
        require(ww_create(arguments[1], bytes, NULL, &store));
    ww_pinned pinned;
    for (uint64_t key = 1; key <= keys;) {
        require(ww_begin(store, WW_WRITE));
        for (uint64_t end = key + 5000; key < end && key <= keys; key++) {
            struct entry *entry = find(store, key, WW_WRITE, &pinned);
            entry->key = key;
            snprintf(entry->value, sizeof entry->value, "value of %" PRIu64, key);
            require(ww_unpin(store, &pinned));
        }
        require(ww_commit(store));
    }
    uint64_t found = 0;
    require(ww_begin(store, WW_READ));
    for (uint64_t key = 1; key <= keys; key++) {
        char expected[40];
        snprintf(expected, sizeof expected, "value of %" PRIu64, key);
        const struct entry *entry = find(store, key, WW_READ, &pinned);
        found += entry->key == key && strcmp(entry->value, expected) == 0;
        require(ww_unpin(store, &pinned));
    }
    ww_statistics statistics;
    ww_statistics_of(store, &statistics);
    printf("%" PRIu64 " of %" PRIu64 " keys found, in a table of %" PRIu64 " MB with pointers of %zu bytes\n",
           found, keys, ww_capacity(store) / 1000000, sizeof(void *));
    printf("%" PRIu64 " windows attached, %" PRIu64 " evicted, %" PRIu64 " reads without a window\n",
           statistics.attached, statistics.evicted, statistics.copied);
    require(ww_commit(store));
    require(ww_close(store));
    return found == keys ? 0 : 1;
}
