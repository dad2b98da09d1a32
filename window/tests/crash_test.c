/*
 * A writer is killed (SIGKILL) at random moments; what it had committed is there, and nothing else is. A
 * reader is open in half of the rounds, so that the next writer finds a store in use. `crash_test MOMENTS
 * [KIND [FLAGS]]`.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define PAGES 200u
#define CAPACITY (PAGES * 4096ull)

static ww_options options = {.log_bytes = 2 << 20,
                             .window_bytes = 65536,
                             .address_bytes = 8 * 65536,
                             .segment_bytes = 1 << 20,
                             .checkpoint_bytes = 300 * 4096};

/* The pages that a commit writes follow from its number; each gets that number. */
static unsigned pages_of(uint64_t version, uint32_t pages[16]) {
    uint64_t random = version * 977;
    const unsigned count = 1 + test_random(&random) % 16;
    for (unsigned i = 0; i < count; i++)
        pages[i] = test_random(&random) % PAGES;
    return count;
}

static void write_commits(const char *path, volatile uint64_t *acknowledged) {
    ww_store *store;
    CHECK(ww_open(path, &options, &store) == 0);
    for (;;) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        const uint64_t version = ww_version(store) + 1;
        uint32_t pages[16];
        for (unsigned i = 0, count = pages_of(version, pages); i < count; i++) {
            put_word(store, pages[i] * 4096ull, version);
            put_word(store, pages[i] * 4096ull + 4088, version);
        }
        if (version % 7 == 3 && *acknowledged != version) { /* sometimes an abort, and then the same again */
            CHECK(ww_abort(store) == 0);
            *acknowledged = version;
            continue;
        }
        CHECK(ww_commit(store) == 0);
        *acknowledged = version;
        if (version % 50 == 0)
            CHECK(ww_checkpoint(store) == 0);
    }
}

static uint64_t model[PAGES], modelled;

static void check_snapshot(ww_store *store) {
    CHECK(ww_begin(store, WW_READ) == 0);
    const uint64_t version = ww_version(store);
    CHECK(version >= modelled);
    while (modelled < version) {
        uint32_t pages[16];
        modelled++;
        for (unsigned i = 0, count = pages_of(modelled, pages); i < count; i++)
            model[pages[i]] = modelled;
    }
    for (uint64_t page = 0; page < PAGES; page++)
        CHECK(get_word(store, page * 4096) == model[page] &&
              get_word(store, page * 4096 + 4088) == model[page]);
    CHECK(ww_verify(store) == 0);
    CHECK(ww_commit(store) == 0);
}

static void sleep_us(uint64_t us) {
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&time, NULL);
}

int main(int count, char **arguments) {
    const int moments = count > 1 ? atoi(arguments[1]) : 60;
    options.kind = count > 2 ? (enum ww_kind)atoi(arguments[2]) : WW_FILE;
    options.flags = count > 3 ? (unsigned)atoi(arguments[3]) : 0;
    volatile uint64_t *acknowledged =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(acknowledged != MAP_FAILED);
    const char *path = test_path("store");
    ww_store *store, *keeper = NULL;
    CHECK(ww_create(path, CAPACITY, &options, &store) == 0 && ww_close(store) == 0);
    uint64_t random = 4711;
    for (int moment = 0; moment < moments; moment++) {
        const pid_t child = fork();
        if (child == 0)
            write_commits(path, acknowledged);
        /* From its first commit on, however slow the machine is. */
        const uint64_t before = *acknowledged;
        for (int waited = 0; *acknowledged < before + 2 && waited < 100000; waited++)
            sleep_us(100);
        sleep_us(test_random(&random) % 4000);
        CHECK(kill(child, SIGKILL) == 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        const uint64_t least = *acknowledged;
        if (!keeper || moment % 8 == 0) {
            if (keeper)
                CHECK(ww_close(keeper) == 0);
            CHECK(ww_open(path, &options, &keeper) == 0);
        }
        check_snapshot(keeper);
        /* A writer brings in order what the killed one left. */
        CHECK(ww_begin(keeper, WW_WRITE) == 0 && ww_abort(keeper) == 0);
        check_snapshot(keeper);
        CHECK(modelled + (least % 7 == 3) >= least);
        if (moment % 2 == 0) {
            CHECK(ww_close(keeper) == 0);
            keeper = NULL;
        }
    }
    if (keeper)
        CHECK(ww_close(keeper) == 0);
    CHECK(ww_remove(path) == 0);
    printf("%d moments, %llu commits\n", moments, (unsigned long long)modelled);
    CHECK(modelled >= (uint64_t)moments);
    test_end();
    return 0;
}
