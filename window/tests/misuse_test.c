/* Every misuse and every bad store has one clear error, and nothing is lost. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "repair.h"

static const ww_options small = {
    .log_bytes = 1 << 20, .window_bytes = 65536, .address_bytes = 8 * 65536, .wait_ms = 20};
#define CAPACITY (4 << 20)
#define SEGMENTS 6 /* of 1 MiB: the log and the data begin at multiples of 2 MiB */

static const char *store_of_words(const char *name) {
    const char *path = test_path(name);
    ww_store *store;
    CHECK(ww_create(path, CAPACITY, &small, &store) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (uint64_t page = 0; page < 20; page++)
        put_word(store, page * 4096, page + 100);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
    return path;
}

static void check_words(const char *path) {
    ww_store *store;
    CHECK(ww_open(path, &small, &store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    for (uint64_t page = 0; page < 20; page++)
        CHECK(get_word(store, page * 4096) == page + 100);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
}

static void patch(const char *path, off_t offset, const void *bytes, size_t length) {
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, bytes, length, offset) == (ssize_t)length && close(fd) == 0);
}

static void calls_in_the_wrong_order(void) {
    ww_store *store, *other;
    ww_handle handle;
    ww_pinned pinned, twice;
    ww_iterator iterator;
    CHECK(ww_open(store_of_words("order"), &small, &store) == 0);
    FAILS(ww_create(test_path("order"), CAPACITY, &small, &other), EEXIST, "cannot be created");
    FAILS(ww_pin(store, at(store, 0), 8, WW_READ, &pinned), EINVAL, "no transaction is under way");
    FAILS(ww_commit(store), EINVAL, "no transaction is under way");
    FAILS(ww_begin(store, 0), EINVAL, "neither WW_READ nor WW_WRITE");
    FAILS(ww_begin(store, WW_READ | WW_WRITE), EINVAL, "neither WW_READ nor WW_WRITE");
    CHECK(ww_begin(store, WW_READ) == 0);
    FAILS(ww_begin(store, WW_READ), EINVAL, "is under way");
    FAILS(ww_sync(store), EINVAL, "is under way");
    FAILS(ww_checkpoint(store), EINVAL, "is under way");
    FAILS(ww_pin(store, at(store, 0), 8, WW_WRITE, &pinned), EROFS, "only reads");
    FAILS(ww_allocate(store, 8, 8, &handle), EROFS, "only reads");
    FAILS(ww_set_root(store, at(store, 0)), EROFS, "only reads");
    CHECK(ww_pin(store, at(store, 0), 8, WW_READ, &pinned) == 0);
    FAILS(ww_pin(store, at(store, 0), 8, WW_READ, NULL), EINVAL, "a pin of 8 bytes");
    FAILS(ww_commit(store), EBUSY, "1 pins are not ended");
    FAILS(ww_abort(store), EBUSY, "1 pins are not ended");
    twice = pinned;
    CHECK(ww_unpin(store, &pinned) == 0);
    FAILS(ww_unpin(store, &pinned), EINVAL, "has ended already");
    FAILS(ww_unpin(store, &twice), ESTALE, "has ended already");
    CHECK(ww_commit(store) == 0);
    FAILS(ww_iterate(store, at(store, 0), 1, 0, &iterator), EINVAL, "no transaction is under way");
    FAILS(ww_begin(NULL, WW_READ), EINVAL, "NULL");
    CHECK(ww_close(store) == 0);
    check_words(test_path("order"));
}

static void values_out_of_range(void) {
    ww_store *store;
    ww_handle handle;
    ww_pinned pinned;
    ww_window window;
    ww_options odd = small;
    CHECK(ww_open(store_of_words("range"), &small, &store) == 0);
    FAILS(ww_handle_at(store, CAPACITY, &handle), ERANGE, "beyond the store's 4194304 bytes");
    CHECK(ww_begin(store, WW_WRITE) == 0);
    FAILS(ww_pin(store, 0, 8, WW_READ, &pinned), EINVAL, "the handle is 0");
    FAILS(ww_pin(store, at(store, CAPACITY - 4), 8, WW_READ, &pinned), ERANGE, "beyond the store's");
    FAILS(ww_pin(store, at(store, 0) + CAPACITY, 8, WW_READ, &pinned), ERANGE, "beyond the store's");
    FAILS(ww_pin(store, at(store, 0), 0, WW_READ, &pinned), EINVAL, "a pin of 0 bytes");
    FAILS(ww_pin(store, at(store, 0), 8, 64, &pinned), EINVAL, "mode 64");
    FAILS(ww_attach(store, at(store, 4096), CAPACITY, &window), ERANGE, "a window of");
    FAILS(ww_allocate(store, 8, 3, &handle), EINVAL, "alignment of 3, which must be a power of two");
    FAILS(ww_allocate(store, 8, 0, &handle), EINVAL, "alignment of 0, which must be a power of two");
    FAILS(ww_allocate(store, 0, 8, &handle), EINVAL, "an allocation of 0 bytes");
    FAILS(ww_allocate(store, 8, 8, NULL), EINVAL, "the result is NULL");
    FAILS(ww_allocate(store, CAPACITY + 1, 1, &handle), ENOSPC, "are not left");
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0);
    odd.window_bytes = 5000;
    FAILS(ww_open(test_path("range"), &odd, &store), EINVAL, "power of two");
    odd = small;
    odd.address_bytes = 4096;
    FAILS(ww_open(test_path("range"), &odd, &store), EINVAL, "one window needs");
    FAILS(ww_create(test_path("none"), 0, &small, &store), EINVAL, "a capacity of 0 bytes");
    FAILS(ww_create(test_path("none"), 1ull << 44, &small, &store), EINVAL, "16 TiB");
    check_words(test_path("range"));
}

static void handles_of_another_store(void) {
    ww_store *one, *other;
    ww_pinned pinned;
    ww_window window, others;
    const void *data;
    CHECK(ww_open(store_of_words("one"), &small, &one) == 0 &&
          ww_open(store_of_words("two"), &small, &other) == 0);
    if (at(one, 0) != at(other, 0)) { /* by chance, once in a million runs */
        CHECK(ww_begin(one, WW_READ) == 0);
        FAILS(ww_pin(one, at(other, 0), 8, WW_READ, &pinned), EXDEV, "belongs to another store");
        CHECK(ww_commit(one) == 0);
    }
    CHECK(ww_attach(one, at(one, 0), 100, &window) == 0);
    FAILS(ww_detach(other, window), ESTALE, "another store's");
    CHECK(ww_attach(other, at(other, 0), 100, &others) == 0 && others != window);
    FAILS(ww_detach(other, window), ESTALE, "another store's");
    CHECK(ww_begin(one, WW_READ) == 0);
    CHECK(ww_window_data(one, window, &data) == 0);
    CHECK(ww_detach(one, window) == 0);
    FAILS(ww_window_data(one, window, &data), ESTALE, "was detached");
    CHECK(ww_begin(other, WW_READ) == 0);
    FAILS(ww_window_data(other, window, &data), ESTALE, "another store's");
    CHECK(ww_window_data(other, others, &data) == 0 && ww_detach(other, others) == 0);
    CHECK(ww_commit(other) == 0 && ww_commit(one) == 0);
    CHECK(ww_close(one) == 0 && ww_close(other) == 0);
}

/* The same numbers of windows are in use in both sessions. */
static void pins_of_another_session(void) {
    ww_store *one, *other;
    ww_pinned first, second;
    ww_iterator iterator = {0};
    CHECK(ww_open(store_of_words("first"), &small, &one) == 0 &&
          ww_open(store_of_words("second"), &small, &other) == 0);
    CHECK(ww_begin(one, WW_READ) == 0 && ww_begin(other, WW_READ) == 0);
    FAILS(ww_next(one, &iterator), EINVAL, "the handle is 0");
    FAILS(ww_next(NULL, &iterator), EINVAL, "NULL");
    CHECK(ww_pin(one, at(one, 0), 8, WW_READ, &first) == 0 &&
          ww_pin(other, at(other, 0), 8, WW_READ, &second) == 0);
    FAILS(ww_unpin(other, &first), ESTALE, "another store's");
    FAILS(ww_unpin(one, &second), ESTALE, "another store's");
    CHECK(ww_unpin(one, &first) == 0 && ww_unpin(other, &second) == 0);
    if (at(one, 0) != at(other, 0)) { /* by chance, once in a million runs */
        CHECK(ww_iterate(one, at(one, 0), 100, 0, &iterator) == 0);
        FAILS(ww_next(other, &iterator), EXDEV, "belongs to another store");
        CHECK(ww_next(one, &iterator) == 1 && iterator.length == 100);
        FAILS(ww_next(other, &iterator), EXDEV, "belongs to another store");
        FAILS(ww_iterator_end(other, &iterator), ESTALE, "another store's");
        CHECK(ww_iterator_end(one, &iterator) == 0);
    }
    CHECK(ww_commit(one) == 0 && ww_commit(other) == 0);
    CHECK(ww_close(one) == 0 && ww_close(other) == 0);
    FAILS(ww_fd(NULL), EINVAL, "NULL");
    FAILS(ww_close(NULL), EINVAL, "NULL");
    CHECK(ww_capacity(NULL) == 0 && ww_version(NULL) == 0);
}

/* What a failed call made is removed; a session that waited for it, or for ww_remove, finds no store. */
static void a_failed_creation_leaves_nothing(void) {
    ww_store *store;
    ww_options odd = small;
    odd.window_bytes = 5000;
    FAILS(ww_create(test_path("left"), CAPACITY, &odd, &store), EINVAL, "power of two");
    CHECK(access(test_path("left"), F_OK) == -1);
    for (unsigned flags = 8; flags != 0; flags <<= 1) {
        odd = small;
        odd.flags = flags;
        FAILS(ww_create(test_path("left"), CAPACITY, &odd, &store), EINVAL, "flags");
    }
    odd.flags = WW_STRICT | WW_LENIENT;
    FAILS(ww_create(test_path("left"), CAPACITY, &odd, &store), EINVAL, "WW_STRICT with WW_LENIENT");
    CHECK(access(test_path("left"), F_OK) == -1);
    const char *path = store_of_words("removed");
    const int fd = open(path, O_RDWR);
    const char *other = test_path("other name");
    CHECK(fd >= 0 && link(path, other) == 0 && ww_remove(path) == 0 && access(path, F_OK) == -1);
    check_words(other); /* the file still has a name */
    CHECK(ww_remove(other) == 0 && access(other, F_OK) == -1);
    FAILS(ww_open_fd(fd, &small, &store), EINVAL, "not a store");
    CHECK(close(fd) == 0);
}

static void more_pins_than_fit(void) {
    ww_store *store;
    ww_pinned pins[8], more;
    CHECK(ww_open(store_of_words("pins"), &small, &store) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(ww_pin(store, at(store, (uint64_t)i * 65536), 20000, WW_WRITE, &pins[i]) == 0);
    FAILS(ww_pin(store, at(store, 8 * 65536), 20000, WW_WRITE, &more), ENOMEM,
          "8 pins and the attached windows");
    FAILS(ww_pin(store, at(store, 0), 70000, WW_READ, &more), ENOMEM, "larger address_bytes");
    CHECK(ww_unpin(store, &pins[3]) == 0);
    CHECK(ww_pin(store, at(store, 8 * 65536), 20000, WW_WRITE, &pins[3]) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(ww_unpin(store, &pins[i]) == 0);
    CHECK(ww_abort(store) == 0 && ww_close(store) == 0);
    check_words(test_path("pins"));
}

static void a_transaction_larger_than_the_log(void) {
    ww_store *store;
    ww_pinned pinned;
    CHECK(ww_open(store_of_words("log"), &small, &store) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    for (uint64_t offset = 0;; offset += 65536)
        if (ww_pin(store, at(store, offset), 65536, WW_WRITE | WW_FRESH, &pinned)) {
            CHECK(errno == ENOSPC && strstr(ww_error(), "commit in smaller parts") && offset >= 13 * 65536);
            break;
        } else {
            memset(pinned.data, 1, 65536);
            CHECK(ww_unpin(store, &pinned) == 0);
        }
    CHECK(ww_abort(store) == 0 && ww_close(store) == 0);
    check_words(test_path("log"));
}

static void a_store_that_another_writes(void) {
    ww_store *one, *other;
    char words[64];
    CHECK(ww_open(store_of_words("locked"), &small, &one) == 0 &&
          ww_open(test_path("locked"), &small, &other) == 0);
    CHECK(ww_begin(one, WW_WRITE) == 0);
    snprintf(words, sizeof words, "the store is locked: process %d writes", (int)getpid());
    FAILS(ww_begin(other, WW_WRITE | WW_NO_WAIT), EBUSY, words);
    FAILS(ww_begin(other, WW_WRITE), EBUSY, words);
    FAILS(ww_remove(test_path("locked")), EBUSY, "is open");
    CHECK(ww_begin(other, WW_READ) == 0 && ww_commit(other) == 0);
    CHECK(ww_commit(one) == 0);
    CHECK(ww_begin(other, WW_WRITE | WW_NO_WAIT) == 0 && ww_commit(other) == 0);
    CHECK(ww_begin(one, WW_WRITE) == 0);
    put_word(one, 0, 100);
    CHECK(ww_commit(one) == 0);
    CHECK(ww_begin(other, WW_READ) == 0);
    CHECK(ww_begin(one, WW_WRITE) == 0);
    put_word(one, 0, 100);
    CHECK(ww_commit(one) == 0);
    snprintf(words, sizeof words, "process %d still reads commit", (int)getpid());
    FAILS(ww_checkpoint(one), EBUSY, words);
    CHECK(ww_commit(other) == 0 && ww_checkpoint(one) == 0);
    CHECK(ww_close(one) == 0 && ww_close(other) == 0);
    check_words(test_path("locked"));
}

/* A child that lives on has the session's descriptor; the locks end with the session all the same. */
static void a_child_of_a_session_that_ends(void) {
    ww_store *store, *other;
    int tells[2];
    char byte;
    const char *path = store_of_words("parent");
    CHECK(ww_open(path, &small, &store) == 0 && ww_begin(store, WW_WRITE) == 0);
    put_word(store, 0, 100);
    CHECK(ww_commit(store) == 0 && pipe(tells) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(tells[1]);
        _exit(read(tells[0], &byte, 1) != 0);
    }
    CHECK(child > 0 && close(tells[0]) == 0 && ww_close(store) == 0);
    CHECK(ww_open(path, &small, &other) == 0 && ww_begin(other, WW_WRITE | WW_NO_WAIT) == 0);
    CHECK(ww_abort(other) == 0 && ww_close(other) == 0 && ww_remove(path) == 0);
    int status;
    CHECK(close(tells[1]) == 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* Offsets are those of struct superblock. */
static void stores_that_cannot_be_read(void) {
    ww_store *store;
    const uint32_t other_order = __builtin_bswap32(0x01020304), version = 7, pages = 65536;
    FAILS(ww_open(test_path("absent"), &small, &store), ENOENT, "cannot be opened");
    patch(store_of_words("order2"), 8, &other_order, 4);
    FAILS(ww_open(test_path("order2"), &small, &store), ENOTSUP, "other byte order");
    patch(store_of_words("version"), 12, &version, 4);
    FAILS(ww_open(test_path("version"), &small, &store), ENOTSUP, "has format 7");
    patch(store_of_words("pages"), 16, &pages, 4);
    FAILS(ww_open(test_path("pages"), &small, &store), ENOTSUP, "pages of 65536 bytes");
    patch(store_of_words("super"), 32, &pages, 4);
    FAILS(ww_open(test_path("super"), &small, &store), EBADMSG, "superblock is damaged");
    patch(store_of_words("magic"), 0, "something", 8);
    FAILS(ww_open(test_path("magic"), &small, &store), EINVAL, "not a store");
    CHECK(truncate(store_of_words("short"), 1000) == 0);
    FAILS(ww_open(test_path("short"), &small, &store), EINVAL, "not a store");
    CHECK(truncate(store_of_words("truncated"), 3 << 20) == 0);
    FAILS(ww_open(test_path("truncated"), &small, &store), EBADMSG, "truncated");
    const char *roots = store_of_words("roots");
    for (int slot = 1; slot <= 3; slot++)
        patch(roots, slot * 4096 + 16, "damage", 6);
    FAILS(ww_open(roots, &small, &store), EBADMSG, "no root and log fit together");
    FAILS(ww_open(test_path(""), &small, &store), EISDIR, "cannot be opened");
}

static int segments_left(const int32_t *identifiers) {
    int left = 0;
    for (int i = 0; i < SEGMENTS; i++) {
        struct shmid_ds status;
        left += shmctl(identifiers[i], IPC_STAT, &status) == 0;
    }
    return left;
}

static void store_of_segments(const ww_options *options, int32_t *identifiers) {
    ww_store *store;
    CHECK(ww_create(test_path("sysv"), CAPACITY, options, &store) == 0 && ww_close(store) == 0);
    const int fd = open(test_path("sysv"), O_RDONLY);
    CHECK(pread(fd, identifiers, SEGMENTS * 4, SEGMENTS_OFFSET) == SEGMENTS * 4 && close(fd) == 0);
    CHECK(segments_left(identifiers) == SEGMENTS);
}

static void segments_that_are_gone(void) {
    ww_store *store;
    ww_options options = small;
    int32_t identifiers[SEGMENTS];
    options.kind = WW_SYSV;
    options.segment_bytes = 1 << 20;
    store_of_segments(&options, identifiers);
    CHECK(shmctl(identifiers[0], IPC_RMID, NULL) == 0);
    FAILS(ww_open(test_path("sysv"), &options, &store), EIDRM, "segment 0 of the store is gone");
    CHECK(ww_remove(test_path("sysv")) == 0 && segments_left(identifiers) == 0);
    /* After the system started again the identifiers may be those of other programs' segments. */
    store_of_segments(&options, identifiers);
    unsigned char head[LOG_OFFSET];
    const int fd = open(test_path("sysv"), O_RDONLY);
    CHECK(pread(fd, head, sizeof head, 0) == sizeof head && close(fd) == 0);
    char *namespace = (char *)head + offsetof(struct superblock, ipc_namespace), own[40];
    memcpy(own, namespace, sizeof own);
    memcpy(namespace, "another boot", 12);
    patch(test_path("sysv"), 0, head, sizeof head);
    FAILS(ww_open(test_path("sysv"), &options, &store), EBADMSG, "superblock is damaged");
    repair_checksums(head, sizeof head);
    patch(test_path("sysv"), 0, head, sizeof head);
    FAILS(ww_open(test_path("sysv"), &options, &store), EIDRM, "ended with the system that made them");
    CHECK(ww_remove(test_path("sysv")) == 0 && segments_left(identifiers) == SEGMENTS);
    /* A container of this boot: nothing is opened, and nothing is removed. */
    memcpy(namespace, own, sizeof own);
    memcpy(namespace + 32, "00000001", 8);
    repair_checksums(head, sizeof head);
    const int other = open(test_path("sysv"), O_WRONLY | O_CREAT, 0600);
    CHECK(write(other, head, sizeof head) == sizeof head && close(other) == 0);
    FAILS(ww_open(test_path("sysv"), &options, &store), EIDRM, "another IPC namespace");
    FAILS(ww_remove(test_path("sysv")), EIDRM, "another IPC namespace");
    CHECK(segments_left(identifiers) == SEGMENTS && unlink(test_path("sysv")) == 0);
    for (int i = 0; i < SEGMENTS; i++)
        CHECK(shmctl(identifiers[i], IPC_RMID, NULL) == 0);
}

/* It fails in its last page, for which the log has no place: no byte has changed. */
static void a_fresh_pin_that_fails(void) {
    ww_store *store;
    ww_pinned pinned;
    CHECK(ww_open(store_of_words("fresh"), &small, &store) == 0 && ww_begin(store, WW_WRITE) == 0);
    for (uint64_t i = 1; i <= 4; i++) {
        CHECK(ww_pin(store, at(store, i << 18), 60 * 4096, WW_WRITE, &pinned) == 0);
        CHECK(ww_unpin(store, &pinned) == 0);
    }
    put_word(store, 2 * 4096, 7);
    FAILS(ww_pin(store, at(store, 0), 15 * 4096 + 8, WW_WRITE | WW_FRESH, &pinned), ENOSPC, "is full");
    CHECK(get_word(store, 4096) == 101);
    put_word(store, 3 * 4096, 8); /* in the place that is free again */
    CHECK(ww_commit(store) == 0 && ww_begin(store, WW_READ) == 0);
    for (uint64_t page = 0; page < 20; page++)
        CHECK(get_word(store, page * 4096) == (page == 2 ? 7 : page == 3 ? 8 : page + 100));
    CHECK(ww_verify(store) == 0 && ww_commit(store) == 0 && ww_close(store) == 0);
}

/* The file may not grow beyond the limit: a write sees that as it sees a full disk. The transaction can be
 * ended. */
static void a_full_disk(void) {
    ww_store *store;
    ww_pinned first, second;
    const char *path = store_of_words("full");
    const struct rlimit limit = {.rlim_cur = (32 + 10) * 4096, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(ww_open(path, &small, &store) == 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(ww_begin(store, WW_WRITE) == 0);
    CHECK(ww_pin(store, at(store, 0), 20000, WW_WRITE, &first) == 0);
    memset(first.data, 1, 20000);
    FAILS(ww_pin(store, at(store, 65536), 60000, WW_WRITE, &second), EFBIG, "cannot be written");
    CHECK(ww_unpin(store, &first) == 0);
    CHECK(ww_abort(store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(get_word(store, 4096) == 101 && ww_commit(store) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(ww_close(store) == 0);
    check_words(path);
}

static sigjmp_buf jump;
static volatile sig_atomic_t calls;

static void programs_handler(int signal) {
    (void)signal;
    calls++;
    siglongjmp(jump, 1);
}

static void sigbus_below_a_window(void) {
    ww_store *store;
    ww_pinned pinned;
    const char *path = store_of_words("sigbus"), *plain = test_path("plain");
    const int fd = open(plain, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    char *own = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(own != MAP_FAILED && ftruncate(fd, 0) == 0);
    signal(SIGBUS, programs_handler);
    CHECK(ww_catch_sigbus() == 0 && ww_catch_sigbus() == 0);

    CHECK(ww_open(path, &small, &store) == 0);
    CHECK(ww_begin(store, WW_READ) == 0);
    CHECK(ww_pin(store, at(store, 8192), 8, WW_READ, &pinned) == 0);
    CHECK(ww_owner(pinned.data) == store && ww_owner(own) == NULL && ww_owner(&store) == NULL);
    CHECK(truncate(path, 4096) == 0);
    CHECK(*(volatile uint64_t *)pinned.data == 0);
    FAILS(ww_unpin(store, &pinned), EIO, "SIGBUS at byte 819");
    FAILS(ww_pin(store, at(store, 8192), 8, WW_READ, &pinned), EIO, "SIGBUS");
    FAILS(ww_commit(store), EIO, "SIGBUS");
    FAILS(ww_close(store), EIO, "SIGBUS");

    if (sigsetjmp(jump, 1) == 0) {
        (void)*(volatile char *)own;
        CHECK(!"a page that is gone was read");
    }
    CHECK(calls == 1);
    close(fd);
    munmap(own, 4096);
}

/* The shared pages are gone as well. A transaction that did not begin keeps nothing: when the file is whole
 * again, another session writes. */
static void sigbus_below_the_shared_pages(void) {
    ww_store *store, *other;
    const char *path = store_of_words("shared");
    static unsigned char head[LOG_OFFSET];
    struct stat status;
    CHECK(ww_catch_sigbus() == 0);
    CHECK(ww_open(path, &small, &store) == 0 && ww_open(path, &small, &other) == 0);
    const int fd = open(path, O_RDONLY);
    CHECK(pread(fd, head, sizeof head, 0) == sizeof head && fstat(fd, &status) == 0 && close(fd) == 0);
    CHECK(truncate(path, 0) == 0);
    FAILS(ww_begin(store, WW_WRITE), EIO, "SIGBUS");
    CHECK(ww_version(store) == 0);
    FAILS(ww_commit(store), EIO, "SIGBUS");
    CHECK(truncate(path, status.st_size) == 0);
    patch(path, 0, head, sizeof head);
    CHECK(ww_begin(other, WW_WRITE | WW_NO_WAIT) == 0 && ww_version(other) == 1);
    put_word(other, 0, 100);
    CHECK(ww_commit(other) == 0 && ww_close(other) == 0);
    FAILS(ww_close(store), EIO, "SIGBUS");

    CHECK(unlink(path) == 0 && ww_open(store_of_words("shared"), &small, &store) == 0);
    CHECK(truncate(path, SLOTS_OFFSET) == 0); /* the state is there, the slots are gone */
    FAILS(ww_begin(store, WW_READ), EIO, "SIGBUS");
    CHECK(ww_version(store) == 0);
    FAILS(ww_close(store), EIO, "SIGBUS");
}

/* Calls outside of transactions write nothing, whichever of the shared pages are gone: a root of zeros must
 * not replace a durable one, and readers whose slots are gone still read. */
static void sigbus_in_a_sync_or_a_checkpoint(void) {
    int (*const calls_outside[])(ww_store *) = {ww_sync, ww_checkpoint};
    const off_t sizes[] = {0, SHARED_OFFSET, SLOTS_OFFSET};
    ww_options options = small;
    options.flags = WW_NO_SYNC; /* so that ww_sync has something to do */
    CHECK(ww_catch_sigbus() == 0);
    for (int call = 0; call < 2; call++)
        for (int i = 0; i < 3; i++) {
            if (call == 0 && sizes[i] == SLOTS_OFFSET)
                continue; /* it does not look at slots */
            ww_store *store;
            struct stat status;
            char before[SHARED_OFFSET], after[SHARED_OFFSET];
            const char *path = store_of_words("outside");
            CHECK(ww_open(path, &options, &store) == 0 && ww_begin(store, WW_WRITE) == 0);
            put_word(store, 0, 100);
            CHECK(ww_commit(store) == 0 && truncate(path, sizes[i]) == 0);
            const int fd = open(path, O_RDONLY);
            CHECK(fd >= 0 && pread(fd, before, sizeof before, 0) == (sizes[i] ? (ssize_t)sizeof before : 0));
            FAILS(calls_outside[call](store), EIO, "SIGBUS");
            CHECK(fstat(fd, &status) == 0 && status.st_size == sizes[i]);
            CHECK(pread(fd, after, sizeof after, 0) == (sizes[i] ? (ssize_t)sizeof after : 0));
            CHECK(sizes[i] == 0 || memcmp(before, after, sizeof before) == 0);
            FAILS(ww_close(store), EIO, "SIGBUS");
            CHECK(close(fd) == 0 && unlink(path) == 0);
        }
}

static int syncs_before_a_truncation;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
    if (syncs_before_a_truncation > 0 && --syncs_before_a_truncation == 0)
        CHECK(ftruncate(fd, 0) == 0);
    return __real_fdatasync(fd);
}

/* A commit fails before its changes are published, and writes nothing; or it succeeds, whatever is caught
 * later.
 */
static void sigbus_in_a_commit(void) {
    ww_store *store;
    ww_options options = small;
    struct stat status;
    options.checkpoint_bytes = 1; /* each commit copies the log */
    const char *path = store_of_words("commit");
    CHECK(ww_catch_sigbus() == 0);
    CHECK(ww_open(path, &options, &store) == 0 && ww_begin(store, WW_WRITE) == 0);
    CHECK(ww_set_root(store, at(store, 0)) == 0 && truncate(path, 0) == 0);
    FAILS(ww_commit(store), EIO, "SIGBUS");
    CHECK(stat(path, &status) == 0 && status.st_size == 0);
    FAILS(ww_close(store), EIO, "SIGBUS");

    for (int syncs = 1; syncs <= 2; syncs++) { /* that of the commit, and the first of the checkpoint */
        CHECK(unlink(path) == 0 && ww_open(store_of_words("commit"), &options, &store) == 0);
        CHECK(ww_begin(store, WW_WRITE) == 0);
        put_word(store, 0, 100);
        syncs_before_a_truncation = syncs;
        if (syncs == 1)
            FAILS(ww_commit(store), EIO, "SIGBUS");
        else
            CHECK(ww_commit(store) == 0);
        CHECK(syncs_before_a_truncation == 0);
        FAILS(ww_begin(store, WW_READ), EIO, "SIGBUS");
        FAILS(ww_close(store), EIO, "SIGBUS");
    }
}

/* Without a handler of the program's, its own fault ends it, as it would without the library. */
static void sigbus_elsewhere(void) {
    const pid_t child = fork();
    if (child == 0) {
        const int fd = open(test_path("empty"), O_RDWR | O_CREAT, 0600);
        char *own = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        const struct rlimit no_core = {0, 0};
        CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
        signal(SIGBUS, SIG_DFL);
        CHECK(ww_catch_sigbus() == 0);
        _exit(*(volatile char *)own);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* A SIGBUS that another process sends has no address: it does what it would do without the library. */
static void sigbus_that_is_sent(void) {
    for (int is_ignored = 0; is_ignored <= 1; is_ignored++) {
        const pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
            signal(SIGBUS, is_ignored ? SIG_IGN : SIG_DFL);
            CHECK(ww_catch_sigbus() == 0 && kill(getpid(), SIGBUS) == 0);
            _exit(7);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(is_ignored ? WIFEXITED(status) && WEXITSTATUS(status) == 7
                         : WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

static int mappings_fail;

void *__real_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    if (mappings_fail && fd >= 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap64(address, length, protection, flags, fd, offset);
}

/* The log began anew, and an attached window cannot show the data: the transaction fails. The window does not
 * show what the log has later. */
static void a_window_that_cannot_be_mapped_anew(void) {
    ww_store *store, *other;
    ww_window window;
    const void *data;
    const char *path = store_of_words("anew");
    CHECK(ww_open(path, &small, &store) == 0 && ww_open(path, &small, &other) == 0);
    CHECK(ww_attach(store, at(store, 0), 20 * 4096, &window) == 0);
    CHECK(ww_begin(other, WW_WRITE) == 0);
    put_word(other, 0, 7);
    CHECK(ww_commit(other) == 0 && ww_begin(store, WW_READ) == 0 && ww_commit(store) == 0);
    CHECK(ww_checkpoint(other) == 0 && ww_begin(other, WW_WRITE) == 0);
    mappings_fail = 1;
    FAILS(ww_begin(store, WW_READ), ENOMEM, path);
    mappings_fail = 0;
    put_word(other, 4096, 8); /* in the frame that page 0 had */
    CHECK(ww_commit(other) == 0 && ww_begin(store, WW_READ) == 0);
    CHECK(ww_window_data(store, window, &data) == 0);
    CHECK(*(const uint64_t *)data == 7 && ((const uint64_t *)data)[512] == 8);
    CHECK(ww_commit(store) == 0 && ww_close(store) == 0 && ww_close(other) == 0);
}

/* In a strict session a pointer kept beyond its pin faults at once. */
static void a_pointer_kept_too_long(void) {
    ww_options options = small;
    options.flags = WW_STRICT;
    const char *path = store_of_words("kept");
    for (uint64_t offset = 8192; offset <= 65532; offset += 65532 - 8192) { /* in a window, and in a copy */
        const pid_t child = fork();
        if (child == 0) {
            ww_store *store;
            ww_pinned pinned;
            const struct rlimit no_core = {0, 0};
            CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
            signal(SIGSEGV, SIG_DFL);
            CHECK(ww_open(path, &options, &store) == 0 && ww_begin(store, WW_READ) == 0);
            CHECK(ww_pin(store, at(store, offset), 8, WW_READ, &pinned) == 0);
            volatile char *kept = pinned.data;
            (void)*kept;
            CHECK(ww_unpin(store, &pinned) == 0);
            (void)*kept;
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

int main(void) {
    calls_in_the_wrong_order();
    values_out_of_range();
    handles_of_another_store();
    pins_of_another_session();
    a_failed_creation_leaves_nothing();
    more_pins_than_fit();
    a_transaction_larger_than_the_log();
    a_store_that_another_writes();
    a_child_of_a_session_that_ends();
    stores_that_cannot_be_read();
    segments_that_are_gone();
    a_fresh_pin_that_fails();
    a_full_disk();
    sigbus_elsewhere();
    sigbus_that_is_sent();
    sigbus_below_a_window();
    sigbus_below_the_shared_pages();
    sigbus_in_a_sync_or_a_checkpoint();
    sigbus_in_a_commit();
    a_window_that_cannot_be_mapped_anew();
    a_pointer_kept_too_long();
    test_end();
    return 0;
}
