/*
 * A sparse table of 10 GB, indexed directly, and memory that persists (trent-2003, sections 6.1.2 and 6.1.3):
 * the number of visits of each telephone number, 8 bytes for every number up to 1 250 000 000. `sparse FILE
 * NUMBER...` counts these. A 64-bit program has the whole table in one window.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <widthwise/window.h>

#define TABLE_BYTES 10000000000u

static void require(int result) {
    if (result < 0) {
        fprintf(stderr, "error: %s\n", ww_error());
        exit(1);
    }
}

static void print_counts(ww_store *store, int count, char **numbers) {
    ww_handle first;
    ww_window window;
    const void *table = NULL;
    require(ww_begin(store, WW_READ));
    require(ww_handle_at(store, 0, &first));
#if UINTPTR_MAX > UINT32_MAX
    require(ww_attach(store, first, TABLE_BYTES, &window));
    require(ww_window_data(store, window, &table));
#else
    (void)window;
#endif
    for (int i = 0; i < count; i++) {
        const uint64_t number = strtoull(numbers[i], NULL, 10);
        ww_pinned pinned;
        uint64_t visits;
        if (table) {
            visits = ((const uint64_t *)table)[number];
        } else {
            require(ww_pin(store, first + number * 8, 8, WW_READ, &pinned));
            visits = *(const uint64_t *)pinned.data;
            require(ww_unpin(store, &pinned));
        }
        printf("%" PRIu64 ": %" PRIu64 "\n", number, visits);
    }
    uint64_t allocated = 0, from = 0, begin, end;
    while (ww_extent(store, from, &begin, &end) == 1) {
        allocated += end - begin;
        from = end;
    }
    printf("%" PRIu64 " bytes of %" PRIu64 " are allocated\n", allocated, ww_capacity(store));
    require(ww_commit(store));
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: sparse FILE NUMBER...\n");
        return 2;
    }
    ww_store *store;
    if (ww_open(arguments[1], NULL, &store))
        require(ww_create(arguments[1], TABLE_BYTES, NULL, &store));
    require(ww_begin(store, WW_WRITE));
    for (int i = 2; i < count; i++) {
        ww_handle handle;
        ww_pinned pinned;
        require(ww_handle_at(store, strtoull(arguments[i], NULL, 10) * 8, &handle));
        require(ww_pin(store, handle, 8, WW_WRITE, &pinned));
        ++*(uint64_t *)pinned.data;
        require(ww_unpin(store, &pinned));
    }
    require(ww_commit(store));
    print_counts(store, count - 2, arguments + 2);
    require(ww_close(store));
    return 0;
}
