/* Many readers and one writer at a time, in threads with a session each: every snapshot is consistent. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

#define PAGES 300u
#define READERS 4
#define WRITERS 2

static const ww_options options = {.log_bytes = 8 << 20,
                                   .window_bytes = 65536,
                                   .address_bytes = 8 * 65536,
                                   .checkpoint_bytes = 200 * 4096,
                                   .flags = WW_NO_SYNC};
static char path[160];
static atomic_int writers_left = WRITERS;
static int rounds = 200;

/* Moves an amount from one account to another; the sum of all stays 0. */
static void *write_transfers(void *seed) {
    ww_store *store;
    uint64_t random = (uintptr_t)seed;
    CHECK(ww_open(path, &options, &store) == 0);
    for (int i = 0; i < rounds; i++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        for (int k = 0; k < 5; k++) {
            const uint64_t from = test_random(&random) % PAGES * 4096,
                           to = test_random(&random) % PAGES * 4096;
            const uint64_t amount = test_random(&random) % 1000;
            put_word(store, from, get_word(store, from) - amount);
            put_word(store, to, get_word(store, to) + amount);
        }
        put_word(store, PAGES * 4096, ww_version(store) + 1);
        CHECK(ww_commit(store) == 0);
    }
    CHECK(ww_close(store) == 0);
    atomic_fetch_sub(&writers_left, 1);
    return NULL;
}

static void *read_snapshots(void *unused) {
    (void)unused;
    ww_store *store;
    uint64_t last = 0, snapshots = 0;
    CHECK(ww_open(path, &options, &store) == 0);
    for (int left = 1; left > 0;) {
        left = atomic_load(&writers_left);
        CHECK(ww_begin(store, WW_READ) == 0);
        uint64_t sum = 0;
        for (uint64_t page = 0; page < PAGES; page++)
            sum += get_word(store, page * 4096);
        CHECK(sum == 0);
        CHECK(get_word(store, PAGES * 4096) == ww_version(store) && ww_version(store) >= last);
        last = ww_version(store);
        snapshots++;
        CHECK(ww_commit(store) == 0);
    }
    CHECK(last == (uint64_t)rounds * WRITERS && snapshots > 1);
    CHECK(ww_close(store) == 0);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        rounds = atoi(arguments[1]);
    ww_store *store;
    snprintf(path, sizeof path, "%s", test_path("accounts"));
    CHECK(ww_create(path, (PAGES + 1) * 4096, &options, &store) == 0);
    pthread_t threads[READERS + WRITERS];
    for (uintptr_t i = 0; i < READERS + WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, i < READERS ? read_snapshots : write_transfers, (void *)i) ==
              0);
    for (int i = 0; i < READERS + WRITERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(ww_checkpoint(store) == 0);
    CHECK(ww_close(store) == 0);
    test_end();
    return 0;
}
