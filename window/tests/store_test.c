/* What a store keeps: transactions, snapshots, windows and their eviction, in each kind of store. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../src/format.h"
#include "check.h"

#define GIB (1ull << 30)

static ww_options small(enum ww_kind kind) {
    return (ww_options){.kind = kind,
                        .log_bytes = 8 << 20,
                        .window_bytes = 65536,
                        .address_bytes = 1 << 20,
                        .segment_bytes = 1 << 20,
                        .checkpoint_bytes = 256 << 10};
}

static ww_store *created(const char *path, uint64_t capacity, const ww_options *options) {
    ww_store *store;
    CHECK(ww_create(path, capacity, options, &store) == 0);
    return store;
}

static void a_commit_is_seen_and_an_abort_is_not(ww_store *store) {
    CHECK(ww_begin(store, WW_WRITE) == 0);
    put_word(store, 4096 * 3, 11);
    put_word(store, 4096 * 3 + 8, 12);
    CHECK(get_word(store, 4096 * 3) == 11);
    CHECK(ww_commit(store) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    put_word(store, 4096 * 3, 99);
    put_word(store, 4096 * 9, 99);
    CHECK(get_word(store, 4096 * 3) == 99);
    CHECK(ww_abort(store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(get_word(store, 4096 * 3) == 11 && get_word(store, 4096 * 3 + 8) == 12 &&
          get_word(store, 4096 * 9) == 0);
    CHECK(ww_commit(store) == 0);
}

static void a_snapshot_stays_until_its_end(ww_store *store, const ww_options *options) {
    ww_store *other;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), ww_fd(store));
    CHECK(ww_open(path, options, &other) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (uint64_t page = 0; page < 40; page++)
        put_word(store, page * 4096, 1);
    CHECK(ww_commit(store) == 0);
    CHECK(ww_begin(other, WW_READ) == 0);
    const uint64_t version = ww_version(other);
    for (uint64_t round = 2; round < 30; round++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        for (uint64_t page = 0; page < 40; page++)
            put_word(store, page * 4096, round);
        CHECK(ww_commit(store) == 0);
        for (uint64_t page = 0; page < 40; page++)
            CHECK(get_word(other, page * 4096) == 1);
    }
    CHECK(ww_version(other) == version);
    CHECK(ww_commit(other) == 0);
    CHECK(ww_begin(other, WW_READ) == 0);
    for (uint64_t page = 0; page < 40; page++)
        CHECK(get_word(other, page * 4096) == 29);
    CHECK(ww_version(other) == version + 28);
    CHECK(ww_commit(other) == 0);
    CHECK(ww_close(other) == 0);
}

/* Against an array of words: random writes, aborts, checkpoints and sessions, with more windows than fit. */
static void a_store_does_what_an_array_does(ww_store *store, const ww_options *options, uint64_t pages,
                                            int rounds) {
    uint64_t *model = calloc(pages, sizeof *model), *next = calloc(pages, sizeof *next), random = pages;
    CHECK(model && next);
    CHECK(ww_begin(store, WW_READ) == 0);
    for (uint64_t page = 0; page < pages; page++)
        model[page] = next[page] = get_word(store, page * 4096 + 8);
    CHECK(ww_commit(store) == 0);
    ww_store *other;
    CHECK(ww_open_fd(ww_fd(store), options, &other) == 0);
    for (int round = 0; round < rounds; round++) {
        ww_store *writer = test_random(&random) % 2 ? store : other;
        CHECK(ww_begin(writer, WW_WRITE) == 0);
        for (uint64_t count = test_random(&random) % 30; count > 0; count--) {
            const uint64_t page = test_random(&random) % pages, length = 1 + test_random(&random) % 3;
            for (uint64_t i = page; i < page + length && i < pages; i++)
                put_word(writer, i * 4096 + 8, next[i] = test_random(&random));
        }
        if (test_random(&random) % 4) {
            CHECK(ww_commit(writer) == 0);
            memcpy(model, next, pages * sizeof *model);
        } else {
            CHECK(ww_abort(writer) == 0);
            memcpy(next, model, pages * sizeof *model);
        }
        if (test_random(&random) % 16 == 0)
            CHECK(ww_checkpoint(writer) == 0);
        ww_store *reader = test_random(&random) % 2 ? store : other;
        CHECK(ww_begin(reader, WW_READ) == 0);
        for (uint64_t page = 0; page < pages; page++)
            CHECK(get_word(reader, page * 4096 + 8) == model[page]);
        CHECK(ww_verify(reader) == 0);
        CHECK(ww_commit(reader) == 0);
    }
    CHECK(ww_close(other) == 0);
    free(model);
    free(next);
}

static void what_was_committed_is_there_when_opened_again(const char *path, const ww_options *options) {
    ww_store *store = created(path, 8 << 20, options);
    a_commit_is_seen_and_an_abort_is_not(store);
    a_snapshot_stays_until_its_end(store, options);
    a_store_does_what_an_array_does(store, options, 600, 40);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    ww_handle first, second, root;
    CHECK(ww_allocate(store, 100, 64, &first) == 0 && ww_allocate(store, 1, 4096, &second) == 0);
    uint64_t one, other;
    CHECK(ww_offset(store, first, &one) == 0 && ww_offset(store, second, &other) == 0);
    CHECK(one % 64 == 0 && other % 4096 == 0 && other >= one + 100);
    CHECK(ww_set_root(store, second) == 0);
    put_word(store, 4096 * 7, 77);
    CHECK(ww_commit(store) == 0);
    if (options->kind != WW_MEMFD) {
        CHECK(ww_close(store) == 0);
        CHECK(ww_open(path, options, &store) == 0);
    }
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(get_word(store, 4096 * 7) == 77);
    CHECK(ww_root(store, &root) == 0 && root == second);
    CHECK(ww_commit(store) == 0);
    CHECK(ww_close(store) == 0);
    if (options->kind != WW_MEMFD)
        CHECK(ww_remove(path) == 0 && access(path, F_OK) != 0);
}

/* 6 GiB, of which a 32-bit program has at most 2 GiB at once; every GiB has a word of its own. */
static void more_than_an_address_space_is_used(enum ww_kind kind) {
    const ww_options options = {.kind = kind,
                                .flags = WW_NO_SYNC | WW_LENIENT,
                                .window_bytes = 16 << 20,
                                .address_bytes = 256 << 20,
                                .segment_bytes = GIB};
    ww_store *store = created(test_path("large"), 6 * GIB, &options);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (uint64_t offset = 0; offset < 6 * GIB; offset += GIB / 16)
        put_word(store, offset, offset + 1);
    CHECK(ww_commit(store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    for (int round = 0; round < 2; round++)
        for (uint64_t offset = 0; offset < 6 * GIB; offset += GIB / 16)
            CHECK(get_word(store, offset) == offset + 1);
    ww_statistics statistics;
    ww_statistics_of(store, &statistics);
    CHECK(statistics.mapped_bytes <= 256 << 20 && statistics.evicted > 0);
    CHECK(ww_commit(store) == 0);
    CHECK(ww_close(store) == 0);
    if (kind != WW_MEMFD)
        CHECK(ww_remove(test_path("large")) == 0);
}

static void the_least_recently_used_window_is_evicted(void) {
    const ww_options options = {
        .kind = WW_MEMFD, .flags = WW_LENIENT, .window_bytes = 65536, .address_bytes = 4 * 65536};
    ww_store *store = created("lru", 1 << 20, &options);
    ww_pinned pins[4];
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(ww_pin(store, at(store, (uint64_t)i * 65536), 8, WW_READ, &pins[i]) == 0);
    const void *second = pins[1].data;
    for (int i = 0; i < 4; i++)
        CHECK(ww_unpin(store, &pins[i]) == 0);
    get_word(store, 0); /* the first again: now the second is the oldest */
    ww_pinned fifth;
    CHECK(ww_pin(store, at(store, 4 * 65536), 8, WW_READ, &fifth) == 0);
    ww_statistics statistics;
    ww_statistics_of(store, &statistics);
    CHECK(statistics.evicted == 1 && fifth.data == second);
    CHECK(ww_unpin(store, &fifth) == 0);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

static void pins_may_have_any_length_and_place(void) {
    const ww_options options = {
        .kind = WW_MEMFD, .flags = WW_LENIENT, .window_bytes = 65536, .address_bytes = 2 << 20};
    ww_store *store = created("lengths", 4 << 20, &options);
    unsigned char *model = calloc(1, 4 << 20);
    uint64_t random = 5;
    for (int round = 0; round < 60; round++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        for (int i = 0; i < 4; i++) {
            const uint64_t offset = test_random(&random) % (4 << 20);
            uint64_t length = 1 + test_random(&random) % (i ? 5000 : 300000);
            if (length > (4 << 20) - offset)
                length = (4 << 20) - offset;
            const unsigned fresh = test_random(&random) % 2 ? WW_FRESH : 0;
            ww_pinned pinned;
            CHECK(ww_pin(store, at(store, offset), length, WW_WRITE | fresh, &pinned) == 0);
            if (fresh)
                memset(model + offset, 0, length);
            CHECK(memcmp(pinned.data, model + offset, length) == 0);
            memset(pinned.data, round + i, length);
            memset(model + offset, round + i, length);
            CHECK(ww_unpin(store, &pinned) == 0);
        }
        CHECK(ww_commit(store) == 0);
        CHECK(ww_begin(store, WW_READ) == 0);
        ww_iterator iterator;
        uint64_t next = 0;
        CHECK(ww_iterate(store, at(store, 0), 4 << 20, 0, &iterator) == 0);
        while (ww_next(store, &iterator) == 1) {
            CHECK(memcmp(iterator.data, model + next, iterator.length) == 0);
            next += iterator.length;
        }
        CHECK(next == 4 << 20);
        for (int i = 0; i < 20; i++) {
            const uint64_t offset = test_random(&random) % ((4 << 20) - 20000),
                           length = 1 + test_random(&random) % 20000;
            ww_pinned pinned;
            CHECK(ww_pin(store, at(store, offset), length, WW_READ, &pinned) == 0);
            CHECK(memcmp(pinned.data, model + offset, length) == 0 &&
                  (uintptr_t)pinned.data % 4096 == offset % 4096);
            CHECK(ww_unpin(store, &pinned) == 0);
        }
        CHECK(ww_commit(store) == 0);
    }
    free(model);
    CHECK(ww_close(store) == 0);
}

static void attached_windows_follow_the_snapshot(void) {
    const ww_options options = small(WW_FILE);
    ww_store *store = created(test_path("attached"), 8 << 20, &options), *other;
    CHECK(ww_open(test_path("attached"), &options, &other) == 0);
    ww_window window;
    CHECK(ww_attach(store, at(store, 100008), 300000, &window) == 0);
    for (uint64_t round = 1; round < 40; round++) {
        CHECK(ww_begin(other, WW_WRITE) == 0);
        for (uint64_t offset = 100008; offset < 400000; offset += 40000)
            put_word(other, offset, round);
        CHECK(ww_commit(other) == 0);
        if (round % 8 == 0)
            CHECK(ww_checkpoint(other) == 0);
        const void *data;
        CHECK(ww_begin(store, WW_READ) == 0);
        CHECK(ww_window_data(store, window, &data) == 0);
        for (uint64_t offset = 100008; offset < 400000; offset += 40000)
            CHECK(!memcmp((const char *)data + (offset - 100008), &round, 8));
        CHECK(ww_commit(store) == 0);
    }
    CHECK(ww_detach(store, window) == 0);
    FAILS(ww_detach(store, window), ESTALE, "was detached");
    CHECK(ww_close(store) == 0 && ww_close(other) == 0);
}

/* 1 TiB, of which 3 pieces are there: the iterator finds these. */
static void a_sparse_store_is_walked_by_its_extents(void) {
    const ww_options options = {.log_bytes = 8 << 20, .window_bytes = 1 << 20};
    ww_store *store = created(test_path("sparse"), 1024 * GIB, &options);
    const uint64_t places[] = {5 << 20, 400 * GIB + 4096, 1024 * GIB - 4096};
    for (int step = 0; step < 3; step++) {
        CHECK(ww_begin(store, WW_WRITE) == 0);
        put_word(store, places[step], (uint64_t)step + 1);
        CHECK(ww_commit(store) == 0);
        if (step == 1)
            CHECK(ww_checkpoint(store) == 0);
        CHECK(ww_begin(store, WW_READ) == 0);
        ww_iterator iterator;
        int found = 0;
        uint64_t bytes = 0;
        CHECK(ww_iterate(store, at(store, 0), 1024 * GIB, WW_ALLOCATED, &iterator) == 0);
        while (ww_next(store, &iterator) == 1) {
            bytes += iterator.length;
            for (int i = 0; i <= step; i++)
                if (iterator.handle <= at(store, places[i]) &&
                    at(store, places[i]) < iterator.handle + iterator.length) {
                    uint64_t value;
                    memcpy(&value, (const char *)iterator.data + (at(store, places[i]) - iterator.handle), 8);
                    CHECK(value == (uint64_t)i + 1);
                    found++;
                }
        }
        CHECK(found == step + 1 && bytes <= 4 << 20);
        CHECK(ww_commit(store) == 0);
    }
    uint64_t begin = 1, end = 2;
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(ww_extent(store, 1024 * GIB, &begin, &end) == 0 && begin == 1024 * GIB && end == 1024 * GIB);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

/* The child opens the parent's memfd, and sees and adds commits. */
static void a_memfd_is_shared_with_a_child(void) {
    const ww_options options = {.kind = WW_MEMFD};
    ww_store *store = created("shared", 1 << 20, &options);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    put_word(store, 0, 5);
    CHECK(ww_commit(store) == 0);
    ww_pinned pinned;
    CHECK(ww_begin(store, WW_READ) == 0 && get_word(store, 0) == 5);
    const pid_t child = fork();
    if (child == 0) {
        ww_store *own;
        FAILS(ww_pin(store, at(store, 0), 8, WW_READ, &pinned), EPERM,
              "after fork"); /* its window is attached */
        FAILS(ww_commit(store), EPERM, "after fork");
        FAILS(ww_begin(store, WW_READ), EPERM, "after fork");
        CHECK(ww_open_fd(ww_fd(store), &options, &own) == 0);
        CHECK(ww_begin(own, WW_WRITE) == 0);
        put_word(own, 8, get_word(own, 0) + 1);
        CHECK(ww_commit(own) == 0 && ww_close(own) == 0 && ww_close(store) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(get_word(store, 8) == 0 && ww_commit(store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(get_word(store, 8) == 6);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

static void lock(int fd, int byte, short type) {
    const struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    CHECK(fcntl(fd, F_OFD_SETLK, &lock) == 0);
}

static int is_locked(int fd, int byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    CHECK(fcntl(fd, F_OFD_GETLK, &lock) == 0);
    return lock.l_type != F_UNLCK;
}

/* The parent takes the locks of a session that opens the store, and has found it whole when ww_remove begins.
 */
static void a_store_that_is_being_opened_is_not_removed(void) {
    const ww_options options = small(WW_FILE);
    const char *path = test_path("opened");
    CHECK(ww_close(created(path, 1 << 20, &options)) == 0);
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    lock(fd, LOCK_SETUP, F_WRLCK);
    const pid_t child = fork();
    if (child == 0) {
        FAILS(ww_remove(path), EBUSY, "the store is open");
        _exit(0);
    }
    usleep(100000);
    lock(fd, LOCK_OPEN, F_RDLCK);
    lock(fd, LOCK_SETUP, F_UNLCK);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && access(path, F_OK) == 0);
    CHECK(close(fd) == 0 && ww_remove(path) == 0 && access(path, F_OK) == -1);
}

static int times_open(pid_t process, const struct stat *file) {
    int times = 0;
    for (int fd = 0; fd < 64; fd++) {
        char path[64];
        struct stat status;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)process, fd);
        times += !stat(path, &status) && status.st_dev == file->st_dev && status.st_ino == file->st_ino;
    }
    return times;
}

/* A file that takes the store's place while ww_remove waits stays. */
static void another_store_of_the_name_is_not_removed(void) {
    const ww_options options = small(WW_FILE);
    const char *path = test_path("replaced"), *other = test_path("replacement");
    CHECK(ww_close(created(path, 1 << 20, &options)) == 0 &&
          ww_close(created(other, 1 << 20, &options)) == 0);
    const int fd = open(path, O_RDWR);
    struct stat status;
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    lock(fd, LOCK_SETUP, F_WRLCK);
    const pid_t child = fork();
    if (child == 0) {
        FAILS(ww_remove(path), ENOENT, "names another file by now");
        _exit(0);
    }
    while (times_open(child, &status) < 2) /* the first is the parent's */
        usleep(1000);
    CHECK(rename(other, path) == 0);
    lock(fd, LOCK_SETUP, F_UNLCK);
    int result;
    CHECK(waitpid(child, &result, 0) == child && result == 0 && access(path, F_OK) == 0);
    CHECK(close(fd) == 0 && ww_remove(path) == 0);
}

/* A session that commits and begins again at once does not keep others from writing. */
static void a_writer_that_waits_is_not_overtaken(void) {
    ww_options options = small(WW_FILE);
    options.wait_ms = 600000;
    ww_store *store = created(test_path("waits"), 1 << 20, &options);
    int ends[2];
    char byte = 0;
    CHECK(pipe(ends) == 0 && ww_begin(store, WW_WRITE) == 0);
    const pid_t child = fork();
    if (child == 0) {
        ww_store *own;
        close(ends[1]); /* the parent's end is the only one */
        CHECK(ww_open(test_path("waits"), &options, &own) == 0);
        CHECK(ww_begin(own, WW_WRITE) == 0 && read(ends[0], &byte, 1) == 1);
        put_word(own, 0, 7);
        CHECK(ww_commit(own) == 0 && ww_close(own) == 0);
        _exit(0);
    }
    const int fd = open(test_path("waits"), O_RDWR);
    CHECK(fd >= 0);
    while (!is_locked(fd, LOCK_NEXT_WRITER))
        usleep(1000);
    CHECK(ww_commit(store) == 0);
    for (int i = 0; i < 100; i++)
        FAILS(ww_begin(store, WW_WRITE | WW_NO_WAIT), EBUSY, "the store is locked");
    CHECK(write(ends[1], &byte, 1) == 1);
    CHECK(ww_begin(store, WW_WRITE) == 0 && get_word(store, 0) == 7);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(close(fd) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

/* A writer whose log is nearly full waits for a snapshot that ends, instead of failing when it is full. */
static void a_snapshot_that_ends_is_waited_for(void) {
    const ww_options options = {.log_bytes = 16 * 4096, .flags = WW_NO_SYNC, .wait_ms = 600000};
    ww_store *store = created(test_path("nearly"), 1 << 20, &options);
    int ends[2];
    char byte = 0;
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        ww_store *own;
        CHECK(ww_open(test_path("nearly"), &options, &own) == 0 && ww_begin(own, WW_READ) == 0);
        close(ends[0]);
        CHECK(write(ends[1], &byte, 1) == 1);
        usleep(500000);
        CHECK(ww_commit(own) == 0 && ww_close(own) == 0);
        _exit(0);
    }
    close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1);
    for (uint64_t value = 1; value <= 40; value++) { /* the log holds eight */
        CHECK(ww_begin(store, WW_WRITE) == 0);
        put_word(store, 0, value);
        CHECK(ww_commit(store) == 0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && close(ends[0]) == 0);
    CHECK(ww_begin(store, WW_READ) == 0 && get_word(store, 0) == 40);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

int main(void) {
    for (enum ww_kind kind = WW_FILE; kind <= WW_SYSV; kind++) {
        ww_options options = small(kind);
        what_was_committed_is_there_when_opened_again(test_path("store"), &options);
        options.flags = WW_NO_SYNC | WW_STRICT;
        what_was_committed_is_there_when_opened_again(test_path("store"), &options);
        more_than_an_address_space_is_used(kind);
    }
    the_least_recently_used_window_is_evicted();
    pins_may_have_any_length_and_place();
    attached_windows_follow_the_snapshot();
    a_sparse_store_is_walked_by_its_extents();
    a_memfd_is_shared_with_a_child();
    a_store_that_is_being_opened_is_not_removed();
    another_store_of_the_name_is_not_removed();
    a_writer_that_waits_is_not_overtaken();
    a_snapshot_that_ends_is_waited_for();
    test_end();
    return 0;
}
