/*
 * One session of tests/abis.sh, which starts it in several ABIs on one store:
 *   session PATH create|transfer ROUNDS|watch ROUNDS|digest
 * `transfer` moves amounts between accounts, whose sum is always 0; `watch` checks that sum in snapshots.
 */
#include "check.h"

#define PAGES 2000u

static const ww_options options = {.log_bytes = 64 << 20,
                                   .window_bytes = 65536,
                                   .address_bytes = 32 * 65536,
                                   .checkpoint_bytes = 1 << 20,
                                   .flags = WW_NO_SYNC};

static void transfer(ww_store *store, int rounds) {
    uint64_t random = (uint64_t)getpid();
    for (int i = 0; i < rounds; i++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        for (int k = 0; k < 10; k++) {
            const uint64_t from = test_random(&random) % PAGES * 4096,
                           to = test_random(&random) % PAGES * 4096;
            const uint64_t amount = test_random(&random);
            put_word(store, from, get_word(store, from) - amount);
            put_word(store, to, get_word(store, to) + amount);
        }
        put_word(store, PAGES * 4096, ww_version(store) + 1);
        ww_handle handle; /* what one ABI keeps, another one reads */
        CHECK(ww_root(store, &handle) == 0 && (!handle || get_word(store, 8) == handle));
        handle = at(store, test_random(&random) % PAGES * 4096);
        put_word(store, 8, handle);
        CHECK(ww_set_root(store, handle) == 0 && ww_commit(store) == 0);
    }
}

/* The sum, and a digest of all words. */
static uint64_t digest(ww_store *store) {
    CHECK(ww_begin(store, WW_READ) == 0);
    uint64_t sum = 0, all = 1469598103934665603u;
    for (uint64_t page = 0; page < PAGES; page++) {
        const uint64_t word = get_word(store, page * 4096);
        sum += word;
        all = (all ^ word) * 1099511628211u;
    }
    CHECK(sum == 0 && get_word(store, PAGES * 4096) == ww_version(store));
    CHECK(ww_verify(store) == 0 && ww_commit(store) == 0);
    return all;
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    const char *command = arguments[2];
    ww_store *store;
    if (!strcmp(command, "create"))
        CHECK(ww_create(arguments[1], (PAGES + 1) * 4096, &options, &store) == 0);
    else
        CHECK(ww_open(arguments[1], &options, &store) == 0);
    if (!strcmp(command, "transfer"))
        transfer(store, atoi(arguments[3]));
    for (int i = 0; !strcmp(command, "watch") && i < atoi(arguments[3]); i++)
        digest(store);
    if (!strcmp(command, "digest"))
        printf("%016llx\n", (unsigned long long)digest(store));
    CHECK(ww_close(store) == 0);
    return 0;
}
