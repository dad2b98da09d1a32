/*
 * Figures of `widthwise-bench -- window`, one a line: measure FILE WHAT [NUMBER...]. Built for each ABI.
 *
 *   fill BYTES                  makes a store of so many bytes, none of them in a hole
 *   scan-direct | scan WINDOW   seconds to read it all: by one mapping; by windows of that size
 *   random-direct | random BYTES READS ADDRESS_SPACE    ns for 1000 bytes at a random place of the first
 * BYTES switch COUNT                ns for another window, and for mmap, the read of a word, and munmap
 *   extents                     seconds to open, walk by extents and close
 *   walk-paper STEPS | walk STEPS WINDOW SYSV   ns for a step in 32 segments of 1 GiB each: a segment is
 * attached, used and detached; by a store in a memfd, or (SYSV is 1) in System V segments
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "widthwise/window.h"

#define GIB (1ull << 30)
#define READ_BYTES 1000

typedef uint32_t vector
    __attribute__((vector_size(16), aligned(4), may_alias)); /* the same instructions in all ABIs */

static volatile uint32_t result;

static void require(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "error: %s: %s\n", what, ww_error());
        exit(1);
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t random_number(uint64_t *state) {
    uint64_t value = *state += 0x9e3779b97f4a7c15; /* SplitMix64 */
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

static uint32_t sum(const void *bytes, size_t length) {
    vector sums = {0};
    const vector *next = bytes;
    for (size_t i = 0; i < length / sizeof(vector); i++)
        sums += next[i];
    return sums[0] + sums[1] + sums[2] + sums[3];
}

static ww_store *opened(const char *path, uint64_t window, uint64_t address_space) {
    const ww_options options = {.window_bytes = window, .address_bytes = address_space, .flags = WW_NO_SYNC};
    ww_store *store;
    require(ww_open(path, &options, &store) == 0, path);
    return store;
}

static ww_handle handle_at(const ww_store *store, uint64_t offset) {
    ww_handle handle;
    require(ww_handle_at(store, offset, &handle) == 0, "handle");
    return handle;
}

static void fill(const char *path, uint64_t bytes) {
    const ww_options options = {.log_bytes = 256 << 20, .window_bytes = 16 << 20, .flags = WW_NO_SYNC};
    ww_store *store;
    require(ww_create(path, bytes, &options, &store) == 0, path);
    for (uint64_t offset = 0; offset < bytes; offset += 16 << 20) {
        const size_t length = bytes - offset < 16 << 20 ? (size_t)(bytes - offset) : 16 << 20;
        ww_pinned pinned;
        require(ww_begin(store, WW_WRITE) == 0, "begin");
        require(ww_pin(store, handle_at(store, offset), length, WW_WRITE | WW_FRESH, &pinned) == 0, "pin");
        memset(pinned.data, (int)(offset >> 24) + 1, length);
        require(ww_unpin(store, &pinned) == 0 && ww_commit(store) == 0, "commit");
    }
    require(ww_checkpoint(store) == 0 && ww_close(store) == 0, "checkpoint");
}

/* What a 64-bit program maps: the data, which are the file's last bytes. */
static const char *mapped(const char *path, uint64_t bytes, int *fd) {
    struct stat status;
    *fd = open(path, O_RDONLY);
    require(*fd >= 0 && fstat(*fd, &status) == 0 && bytes == (size_t)bytes, path);
    const off_t at = status.st_size - (off_t)bytes;
    const char *data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, *fd, at);
    require(data != MAP_FAILED, "mmap");
    return data;
}

static uint64_t capacity(const char *path) {
    ww_store *store = opened(path, 0, 0);
    const uint64_t bytes = ww_capacity(store);
    ww_close(store);
    return bytes;
}

static void scan_direct(const char *path) {
    const uint64_t bytes = capacity(path);
    int fd;
    const double began = seconds();
    const char *data = mapped(path, bytes, &fd);
    for (uint64_t at = 0; at < bytes; at += 1 << 20)
        result += sum(data + at, bytes - at < 1 << 20 ? (size_t)(bytes - at) : 1 << 20);
    munmap((void *)data, (size_t)bytes);
    printf("%.6f\n", seconds() - began);
    close(fd);
}

static void scan(const char *path, uint64_t window) {
    ww_store *store = opened(path, window, window * 2);
    const double began = seconds();
    ww_iterator iterator;
    require(ww_begin(store, WW_READ) == 0, "begin");
    require(ww_iterate(store, handle_at(store, 0), ww_capacity(store), 0, &iterator) == 0, "iterate");
    int more;
    while ((more = ww_next(store, &iterator)) == 1)
        for (size_t at = 0; at < iterator.length; at += 1 << 20)
            result += sum((const char *)iterator.data + at,
                          iterator.length - at < 1 << 20 ? iterator.length - at : 1 << 20);
    require(more == 0 && ww_commit(store) == 0, "next");
    printf("%.6f\n", seconds() - began);
    ww_close(store);
}

static uint64_t random_place(uint64_t *random, uint64_t bytes) {
    return random_number(random) % (bytes - READ_BYTES) & ~7ull;
}

/* The first reads, as many, fill page tables. */
static void random_direct(const char *path, uint64_t bytes, int reads) {
    int fd;
    const char *data = mapped(path, capacity(path), &fd);
    for (uint64_t at = 0; at < bytes; at += 4096)
        result += (uint32_t)data[at];
    uint64_t random = 1;
    const double began = seconds();
    for (int i = 0; i < reads; i++)
        result += sum(data + random_place(&random, bytes), READ_BYTES);
    printf("%.1f\n", (seconds() - began) / reads * 1e9);
    close(fd);
}

static double read_at_random(ww_store *store, uint64_t bytes, int reads, uint64_t random) {
    const ww_handle first = handle_at(store, 0);
    const double began = seconds();
    for (int i = 0; i < reads; i++) {
        ww_pinned pinned;
        require(ww_pin(store, first + random_place(&random, bytes), READ_BYTES, WW_READ, &pinned) == 0,
                "pin");
        result += sum(pinned.data, READ_BYTES);
        ww_unpin(store, &pinned);
    }
    return (seconds() - began) / reads * 1e9;
}

static void random_windows(const char *path, uint64_t bytes, int reads, uint64_t address_space) {
    ww_store *store = opened(path, 0, address_space);
    require(ww_begin(store, WW_READ) == 0, "begin");
    for (uint64_t at = 0; at < bytes; at += 4096) {
        ww_pinned pinned;
        require(ww_pin(store, handle_at(store, at), 1, WW_READ, &pinned) == 0, "pin");
        result += *(unsigned char *)pinned.data;
        ww_unpin(store, &pinned);
    }
    printf("%.1f\n", read_at_random(store, bytes, reads, 1));
    require(ww_commit(store) == 0, "commit");
    ww_close(store);
}

/* A pin in another window, where one window fits; beside it what a program does without the library. In
 * turns, so that a change of the machine's speed meets both. Each reads one word of each window. */
static void switches(const char *path, int count) {
    const size_t bytes = 1 << 20;
    ww_store *store = opened(path, bytes, bytes);
    const ww_handle first = handle_at(store, 0);
    const uint64_t windows = ww_capacity(store) / bytes;
    const int fd = open(path, O_RDONLY);
    struct stat status;
    require(fd >= 0 && fstat(fd, &status) == 0 && ww_begin(store, WW_READ) == 0, path);
    const off_t data = status.st_size - (off_t)ww_capacity(store);
    double own = 0, bare = 0;
    uint64_t random = 1;
    for (int i = 0; i < count; i += 100) {
        double began = seconds();
        for (int k = 0; k < 100; k++) {
            ww_pinned pinned;
            const ww_handle handle = first + random_number(&random) % windows * bytes;
            require(ww_pin(store, handle, bytes, WW_READ, &pinned) == 0, "pin");
            result += *(volatile uint32_t *)pinned.data;
            ww_unpin(store, &pinned);
        }
        own += seconds() - began;
        began = seconds();
        for (int k = 0; k < 100; k++) {
            const off_t at = data + (off_t)(random_number(&random) % windows * bytes);
            char *address = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, at);
            require(address != MAP_FAILED, "mmap");
            result += *(volatile uint32_t *)address;
            munmap(address, bytes);
        }
        bare += seconds() - began;
    }
    printf("%.1f %.1f\n", own / count * 1e9, bare / count * 1e9);
    close(fd);
    require(ww_commit(store) == 0, "commit");
    ww_close(store);
}

static void extents(const char *path) {
    const double began = seconds();
    ww_store *store = opened(path, 0, 0);
    require(ww_begin(store, WW_READ) == 0, "begin");
    ww_iterator iterator;
    uint64_t pieces = 0, bytes = 0;
    require(ww_iterate(store, handle_at(store, 0), ww_capacity(store), WW_ALLOCATED, &iterator) == 0,
            "iterate");
    while (ww_next(store, &iterator) == 1) {
        pieces++;
        bytes += iterator.length;
        result += *(const uint32_t *)iterator.data;
    }
    require(ww_commit(store) == 0 && ww_close(store) == 0, "close");
    printf("%.6f %" PRIu64 " %" PRIu64 "\n", seconds() - began, pieces, bytes);
}

/* A store of 1 TiB, with an allocated page in every 256 MiB. */
static void make_sparse(const char *path) {
    const ww_options options = {.log_bytes = 64 << 20, .flags = WW_NO_SYNC};
    ww_store *store;
    require(ww_create(path, 1024 * GIB, &options, &store) == 0 && ww_begin(store, WW_WRITE) == 0, path);
    for (uint64_t at = 0; at < 1024 * GIB; at += GIB / 4) {
        ww_pinned pinned;
        require(ww_pin(store, handle_at(store, at), 4, WW_WRITE, &pinned) == 0, "pin");
        *(uint32_t *)pinned.data = 1;
        ww_unpin(store, &pinned);
    }
    require(ww_commit(store) == 0 && ww_checkpoint(store) == 0 && ww_close(store) == 0, "commit");
}

#define SEGMENTS 32
#define PLACES 1024 /* of each segment, so that all of them take 128 MiB */

static uint64_t place_of(uint64_t number) { return number % PLACES * (GIB / PLACES); }

/* Program 2 of trent-2003, at random: shmat, use, shmdt. */
static void walk_paper(int steps) {
    int segments[SEGMENTS];
    for (int i = 0; i < SEGMENTS; i++)
        require((segments[i] = shmget(IPC_PRIVATE, GIB, SHM_NORESERVE | S_IRUSR | S_IWUSR)) >= 0, "shmget");
    uint64_t random = 1;
    double began = 0;
    for (int i = -steps; i < steps; i++) {
        if (i == 0)
            began = seconds();
        const uint64_t number = random_number(&random);
        char *address = shmat(segments[number % SEGMENTS], NULL, 0);
        require(address != (char *)-1, "shmat");
        ++*(volatile uint64_t *)(address + place_of(number >> 5));
        shmdt(address);
    }
    printf("%.1f\n", (seconds() - began) / steps * 1e9);
    for (int i = 0; i < SEGMENTS; i++)
        shmctl(segments[i], IPC_RMID, NULL);
}

static void walk(const char *path, int steps, uint64_t window, enum ww_kind kind) {
    const ww_options options = {.kind = kind,
                                .segment_bytes = GIB,
                                .log_bytes = GIB,
                                .window_bytes = window,
                                .address_bytes = sizeof(void *) == 4 ? GIB : 0};
    ww_store *store;
    require(ww_create(path, SEGMENTS * GIB, &options, &store) == 0, path);
    uint64_t random = 1;
    double began = 0;
    require(ww_begin(store, WW_WRITE) == 0, "begin");
    for (int i = -steps; i < steps; i++) {
        if (i == 0)
            began = seconds();
        const uint64_t number = random_number(&random);
        const ww_handle handle = handle_at(store, number % SEGMENTS * GIB + place_of(number >> 5));
        ww_pinned pinned;
        require(ww_pin(store, handle, 8, WW_WRITE, &pinned) == 0, "pin");
        ++*(volatile uint64_t *)pinned.data;
        ww_unpin(store, &pinned);
    }
    printf("%.1f\n", (seconds() - began) / steps * 1e9);
    require(ww_commit(store) == 0 && ww_close(store) == 0, "commit");
    if (kind != WW_MEMFD)
        ww_remove(path);
}

int main(int count, char **arguments) {
    const char *path = count > 2 ? arguments[1] : "", *what = count > 2 ? arguments[2] : "";
    uint64_t numbers[3] = {0};
    for (int i = 3; i < count && i < 6; i++)
        numbers[i - 3] = strtoull(arguments[i], NULL, 10);
    if (!strcmp(what, "fill"))
        fill(path, numbers[0]);
    else if (!strcmp(what, "scan-direct"))
        scan_direct(path);
    else if (!strcmp(what, "scan"))
        scan(path, numbers[0]);
    else if (!strcmp(what, "random-direct"))
        random_direct(path, numbers[0], (int)numbers[1]);
    else if (!strcmp(what, "random"))
        random_windows(path, numbers[0], (int)numbers[1], numbers[2]);
    else if (!strcmp(what, "switch"))
        switches(path, (int)numbers[0]);
    else if (!strcmp(what, "sparse"))
        make_sparse(path);
    else if (!strcmp(what, "extents"))
        extents(path);
    else if (!strcmp(what, "walk-paper"))
        walk_paper((int)numbers[0]);
    else if (!strcmp(what, "walk"))
        walk(path, (int)numbers[0], numbers[1], numbers[2] ? WW_SYSV : WW_MEMFD);
    else
        return fprintf(stderr, "usage: see the beginning of measure.c\n"), 2;
    return 0;
}
