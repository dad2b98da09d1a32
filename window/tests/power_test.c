/*
 * Power cuts: all that is written to a store is recorded, in sectors, with the syncs between. A cut is a
 * moment in that record: what came before the last sync is on the disk, and of what came after it a random
 * part, in any order, sector by sector. The store is then opened, and must have a commit that was complete,
 * not older than the last one that was acknowledged. Before a cut, writers may have been killed in a sync:
 * what they wrote is in the page cache, and nobody knows what of it is on the disk. `power_test CUTS`.
 *
 * The library's calls of pwrite and fdatasync go through the functions here (linked with --wrap). Writes
 * through mappings are found by comparing the file with what it was at the call before.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "../src/format.h"
#include "check.h"

#define PAGES 24u
#define CAPACITY (PAGES * 4096ull)
#define LOG (96 * 4096)
#define DATA (2u << 20)
#define SECTOR 512u
#define HEAD_SECTORS                                                                                         \
    ((32 * 4096 + LOG) / SECTOR) /* of the file up to the log's end; then those of the data */
#define SECTORS (HEAD_SECTORS + PAGES * 4096 / SECTOR)
#define MOST_COMMITS 400

enum event_kind { WRITE, SYNC, ACKNOWLEDGED };
struct event {
    enum event_kind kind;
    uint32_t sector;
    uint64_t version;
    unsigned char bytes[SECTOR];
};
static struct event *events;
static uint32_t events_count, events_size;
static unsigned char image[SECTORS][SECTOR], now[SECTORS][SECTOR];
static uint64_t states[MOST_COMMITS][PAGES], started;
static int recorded = -1; /* the file that is recorded */
static int fails_at = -1, failure, calls;
static size_t shared_written; /* of the pages that sessions map */
static int kills_at;          /* the sync in which the writer is killed; 0: none */
static jmp_buf killed;
static ww_store *killed_sessions[MOST_COMMITS];
static uint32_t killed_count;

int __real_fdatasync(int fd);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t length, off_t offset);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t length, off_t offset);

static struct event *event_new(enum event_kind kind) {
    if (events_count == events_size) {
        events_size = events_size ? events_size * 2 : 4096;
        events = realloc(events, events_size * sizeof *events);
        CHECK(events);
    }
    events[events_count].kind = kind;
    return &events[events_count++];
}

static void read_sectors(int fd, unsigned char sectors[SECTORS][SECTOR]) {
    CHECK(pread(fd, sectors, HEAD_SECTORS * SECTOR, 0) == HEAD_SECTORS * SECTOR);
    CHECK(pread(fd, sectors[HEAD_SECTORS], PAGES * 4096, DATA) == PAGES * 4096);
}

/* What has changed since the last call. */
static void record_writes(void) {
    if (recorded < 0)
        return;
    read_sectors(recorded, now);
    for (uint32_t sector = 0; sector < SECTORS; sector++)
        if (memcmp(image[sector], now[sector], SECTOR)) {
            struct event *event = event_new(WRITE);
            event->sector = sector;
            memcpy(event->bytes, now[sector], SECTOR);
            memcpy(image[sector], now[sector], SECTOR);
        }
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    record_writes();
    if (fails_at >= 0 && calls++ == fails_at) {
        errno = failure;
        return -1;
    }
    const ssize_t result = __real_pwrite64(fd, bytes, length, offset);
    if (offset >= SHARED_OFFSET && offset < SEGMENTS_OFFSET)
        shared_written += length;
    record_writes();
    return result;
}

int __wrap_fdatasync(int fd) {
    record_writes();
    if (kills_at > 0 && --kills_at == 0)
        longjmp(killed, 1);
    if (fails_at >= 0 && calls++ == fails_at) {
        errno = EIO;
        return -1;
    }
    (void)fd; /* the file is in memory */
    if (recorded >= 0)
        event_new(SYNC);
    return 0;
}

int __wrap_fsync(int fd) { return __wrap_fdatasync(fd); }

static ww_options options = {.log_bytes = LOG,
                             .window_bytes = 16384,
                             .address_bytes = 4 * 16384,
                             .checkpoint_bytes = 30 * 4096,
                             .wait_ms = 1};

static void acknowledge(uint64_t version) {
    if (recorded < 0)
        return;
    record_writes();
    event_new(ACKNOWLEDGED)->version = version;
}

/* A call that must succeed, in which the writer may be killed: then its locks end, and nothing is synced. */
static bool is_killed(int (*call)(ww_store *), ww_store *store, uint64_t *random) {
    kills_at = test_random(random) % 4 == 0 ? 1 + (int)(test_random(random) % 3) : 0;
    if (setjmp(killed)) {
        struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
        CHECK(fcntl(ww_fd(store), F_OFD_SETLK, &all) == 0);
        killed_sessions[killed_count++] = store;
        return true;
    }
    CHECK(call(store) == 0);
    kills_at = 0;
    return false;
}

static int write_some(ww_store *store, uint64_t *random, uint64_t version) {
    memcpy(states[version], states[version - 1], sizeof states[version]);
    for (uint64_t count = 1 + test_random(random) % 6; count > 0; count--) {
        const uint64_t page = test_random(random) % PAGES, value = test_random(random);
        ww_pinned pinned;
        if (ww_pin(store, at(store, page * 4096), 4096, WW_WRITE, &pinned))
            return -1;
        for (uint64_t i = 0; i < 4096; i += 8) /* all sectors of the page */
            memcpy((char *)pinned.data + i, &value, 8);
        CHECK(ww_unpin(store, &pinned) == 0);
        states[version][page] = value;
    }
    return 0;
}

/* Sessions that commit, abort, checkpoint and read old snapshots. */
static void run_workload(const char *path, int commits, uint64_t *random) {
    ww_store *store, *reader;
    CHECK(ww_open(path, &options, &store) == 0 && ww_open(path, &options, &reader) == 0);
    int reads = 0;
    for (int i = 0; i < commits; i++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        const uint64_t version = ww_version(store) + 1;
        started = version;
        const int full = write_some(store, random, version);
        if (full || test_random(random) % 5 == 0) {
            CHECK(!full || (errno == ENOSPC && reads)); /* the reader's snapshot keeps the log */
            CHECK(ww_abort(store) == 0);
            if (full)
                CHECK(ww_abort(reader) == 0);
            reads = full ? 0 : reads;
            continue;
        }
        const bool syncs = test_random(random) % 6 == 0, closes = test_random(random) % 8 == 0;
        bool is_gone = is_killed(ww_commit, store, random);
        if (!is_gone && options.flags & WW_NO_SYNC && syncs)
            is_gone = is_killed(ww_sync, store, random);
        if (!is_gone && (!(options.flags & WW_NO_SYNC) || syncs))
            acknowledge(version);
        if (!is_gone && closes) {
            is_killed(ww_close, store, random); /* killed or not, the session has ended */
            is_gone = true;
        }
        if (is_gone)
            CHECK(ww_open(path, &options, &store) == 0);
        if (i % 6 == 3) {
            if (reads)
                CHECK(ww_abort(reader) == 0);
            else
                CHECK(ww_begin(reader, WW_READ) == 0);
            reads = !reads;
        }
        if (test_random(random) % 12 == 0)
            ww_checkpoint(store);
    }
    CHECK(ww_close(store) == 0 && ww_close(reader) == 0);
}

/* The version that the store has; its content must be that commit's. */
static uint64_t check_content(ww_store *store, uint64_t least, uint64_t most) {
    CHECK(ww_begin(store, WW_READ) == 0);
    const uint64_t version = ww_version(store);
    CHECK(version >= least && version <= most);
    for (uint64_t page = 0; page < PAGES; page++)
        for (uint64_t i = 0; i < 4096; i += SECTOR)
            CHECK(get_word(store, page * 4096 + i) == states[version][page]);
    CHECK(ww_verify(store) == 0);
    CHECK(ww_commit(store) == 0);
    return version;
}

static void write_image(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)DATA + CAPACITY) == 0);
    CHECK(__real_pwrite64(fd, now, HEAD_SECTORS * SECTOR, 0) == HEAD_SECTORS * SECTOR);
    CHECK(__real_pwrite64(fd, now[HEAD_SECTORS], PAGES * 4096, DATA) == PAGES * 4096);
    close(fd);
}

/* A part of the writes that were not synced, in a random order. */
static void apply_part(uint32_t begin, uint32_t end, uint64_t *random) {
    static const unsigned shares[] = {0, 10, 50, 90, 98, 100};
    const unsigned share = shares[test_random(random) % 6];
    uint32_t count = 0, *order = malloc((end - begin + 1) * sizeof *order);
    CHECK(order);
    for (uint32_t i = begin; i < end; i++)
        if (events[i].kind == WRITE && test_random(random) % 100 < share)
            order[count++] = i;
    if (test_random(random) % 2)
        for (uint32_t i = count; i > 1; i--) {
            const uint32_t other = test_random(random) % i, moved = order[i - 1];
            order[i - 1] = order[other];
            order[other] = moved;
        }
    for (uint32_t i = 0; i < count; i++)
        memcpy(now[events[order[i]].sector], events[order[i]].bytes, SECTOR);
    free(order);
}

static void replay(const unsigned char first[SECTORS][SECTOR], int cuts, uint64_t *random) {
    uint64_t after = 0;
    for (int cut = 0; cut < cuts; cut++) {
        uint32_t moment = test_random(random) % (events_count + 1);
        /* Half of the cuts are in a sync: there most can be lost. */
        while (cut % 2 && moment < events_count && events[moment].kind != SYNC)
            moment++;
        uint32_t synced = 0;
        uint64_t acknowledged = 0;
        for (uint32_t i = 0; i < moment; i++) {
            if (events[i].kind == SYNC)
                synced = i;
            if (events[i].kind == ACKNOWLEDGED)
                acknowledged = events[i].version;
        }
        memcpy(now, first, sizeof now);
        for (uint32_t i = 0; i < synced; i++)
            if (events[i].kind == WRITE)
                memcpy(now[events[i].sector], events[i].bytes, SECTOR);
        apply_part(synced, moment, random);
        const char *path = test_path("cut");
        write_image(path);
        ww_store *store;
        CHECK(ww_open(path, &options, &store) == 0);
        const uint64_t version = check_content(store, acknowledged, started);
        after += version > acknowledged;
        /* The store can be used on. */
        uint64_t saved[PAGES];
        memcpy(saved, states[version + 1], sizeof saved);
        CHECK(ww_begin(store, WW_WRITE) == 0 && write_some(store, random, version + 1) == 0 &&
              ww_commit(store) == 0);
        CHECK(ww_close(store) == 0 && ww_open(path, &options, &store) == 0);
        check_content(store, version + 1, version + 1);
        CHECK(ww_close(store) == 0);
        memcpy(states[version + 1], saved, sizeof saved);
        unlink(path);
    }
    printf("%d cuts in %u events; %llu had a commit that was not acknowledged yet\n", cuts, events_count,
           (unsigned long long)after);
}

static void cut_power(unsigned flags, int cuts, uint64_t seed) {
    static unsigned char first[SECTORS][SECTOR];
    uint64_t random = seed;
    ww_store *store;
    const char *path = test_path("recorded");
    options.flags = flags;
    memset(states, 0, sizeof states);
    CHECK(ww_create(path, CAPACITY, &options, &store) == 0 && ww_close(store) == 0);
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    read_sectors(fd, image);
    memcpy(first, image, sizeof first);
    events_count = 0;
    recorded = fd;
    run_workload(path, 150, &random);
    recorded = -1;
    close(fd);
    CHECK(ww_remove(path) == 0);
    replay(first, cuts, &random);
}

/* Each call that writes or syncs fails once: a full disk, or one that fails. */
static void fail_each_call(int error) {
    int total = 0;
    for (int at_call = -1; at_call < total; at_call++) { /* first none, to count them */
        uint64_t random = 3;
        ww_store *store;
        const char *path = test_path("failing");
        options.flags = 0;
        memset(states, 0, sizeof states);
        CHECK(ww_create(path, CAPACITY, &options, &store) == 0);
        calls = 0;
        failure = error;
        fails_at = at_call < 0 ? INT32_MAX : at_call;
        uint64_t acknowledged = 0, tried = 0;
        for (int i = 0; i < 12; i++) {
            if (ww_begin(store, WW_WRITE))
                break;
            tried = ww_version(store) + 1;
            if (write_some(store, &random, tried)) {
                CHECK(errno == error);
                CHECK(ww_abort(store) == 0);
            } else if (ww_commit(store)) {
                CHECK(errno == error || errno == EIO);
                ww_abort(store);
            } else {
                acknowledged = tried;
            }
        }
        total = at_call < 0 ? calls : total;
        fails_at = -1;
        ww_close(store);
        CHECK(ww_open(path, &options, &store) == 0);
        check_content(store, acknowledged, tried);
        CHECK(ww_close(store) == 0 && ww_remove(path) == 0);
    }
    CHECK(total > 20);
}

/* A store that could not be created is not left behind. What is mapped later is written before: a full disk
 * is an error, and not a SIGBUS. */
static void fail_each_call_of_a_creation(int error) {
    ww_store *store = NULL;
    const char *path = test_path("created");
    options.flags = 0;
    failure = error;
    for (int at_call = 0; !store; at_call++) {
        calls = 0;
        fails_at = at_call;
        shared_written = 0;
        FAILS(ww_close(NULL), EINVAL, "NULL"); /* another message than that of the creation */
        if (ww_create(path, CAPACITY, &options, &store)) {
            CHECK((errno == error || errno == EIO) && strstr(ww_error(), path));
            CHECK(access(path, F_OK) == -1);
            store = NULL;
        }
        CHECK(at_call < 100);
    }
    CHECK(calls > 4 && shared_written == SEGMENTS_OFFSET - SHARED_OFFSET);
    fails_at = -1;
    CHECK(ww_close(store) == 0 && ww_remove(path) == 0);
}

int main(int count, char **arguments) {
    const int cuts = count > 1 ? atoi(arguments[1]) : 400;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        cut_power(0, cuts, seed);
        cut_power(WW_NO_SYNC, cuts, seed);
    }
    fail_each_call(ENOSPC);
    fail_each_call(EIO);
    fail_each_call_of_a_creation(ENOSPC);
    fail_each_call_of_a_creation(EIO);
    free(events);
    test_end();
    return 0;
}
