/*
 * The workload of workloads/window: reads pieces of a store by windows, or directly where the whole store is
 * mapped. locality MEBIBYTES READS, which are READS random ones and four times as many others. Environment:
 * LOCALITY is a list of sequential, local (a place moves slowly) and random [all three, in turn]; WINDOW is
 * the windows' size in bytes, or "direct"; SPACE is the address space for windows, in bytes [an eighth of the
 * store].
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "widthwise/window.h"

#define READ_BYTES 256

static void require(int result) {
    if (result < 0) {
        fprintf(stderr, "error: %s\n", ww_error());
        exit(1);
    }
}

static ww_handle handle_at(const ww_store *store, uint64_t offset) {
    ww_handle handle;
    require(ww_handle_at(store, offset, &handle));
    return handle;
}

static const char *setting(const char *name, const char *usual) {
    const char *value = getenv(name);
    return value && *value ? value : usual;
}

static uint64_t random_number(uint64_t *state) {
    uint64_t value = *state += 0x9e3779b97f4a7c15; /* SplitMix64 */
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

/* CPU time, the kernel's included: the store is in memory, and other programs may use the processor. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

/* Misses of the data TLB by this thread's loads in user mode, or -1 where nothing counts them. */
static int tlb_counter(void) {
    struct perf_event_attr event = {
        .type = PERF_TYPE_HW_CACHE,
        .size = sizeof event,
        .config = PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                  PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
}

static void fill(ww_store *store) {
    const uint64_t bytes = ww_capacity(store);
    for (uint64_t at = 0; at < bytes; at += 1 << 20) {
        ww_pinned pinned;
        require(ww_begin(store, WW_WRITE));
        require(ww_pin(store, handle_at(store, at), 1 << 20, WW_WRITE | WW_FRESH, &pinned));
        for (uint64_t i = 0; i < 1 << 20; i += 64)
            memcpy((char *)pinned.data + i, &(uint64_t){at + i}, 8);
        require(ww_unpin(store, &pinned));
        require(ww_commit(store));
    }
    require(ww_checkpoint(store));
}

/* The place of each read, a multiple of 64. */
static uint64_t place(char locality, uint64_t read, uint64_t bytes, uint64_t *random) {
    const uint64_t most = bytes - READ_BYTES;
    switch (locality) {
    case 's':
        return read * READ_BYTES % most & ~63ull;
    case 'l': /* 4 MiB, which move by 256 bytes with each read */
        return (read * READ_BYTES + random_number(random) % (4 << 20)) % most & ~63ull;
    default:
        return random_number(random) % most & ~63ull;
    }
}

static uint64_t sum(const void *bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < READ_BYTES; i += 64) {
        uint64_t word;
        memcpy(&word, (const char *)bytes + i, 8);
        sum += word;
    }
    return sum;
}

/* Reads, from the mapping of all or by pins; the sums must be those of what was filled in. */
static void read_all(ww_store *store, const char *all, char locality, uint64_t reads) {
    const uint64_t bytes = ww_capacity(store);
    const ww_handle first = handle_at(store, 0);
    uint64_t random = 1, result = 0, expected = 0;
    for (uint64_t read = 0; read < reads; read++) {
        const uint64_t at = place(locality, read, bytes, &random);
        expected += READ_BYTES / 64 * at + READ_BYTES / 64 * (READ_BYTES / 64 - 1) / 2 * 64;
        if (all) {
            result += sum(all + at);
        } else {
            ww_pinned pinned;
            require(ww_pin(store, first + at, READ_BYTES, WW_READ, &pinned));
            result += sum(pinned.data);
            require(ww_unpin(store, &pinned));
        }
    }
    if (result != expected) {
        fprintf(stderr, "error: the words have the sum %" PRIu64 " instead of %" PRIu64 "\n", result,
                expected);
        exit(1);
    }
}

/* In a session of its own, so that no window is attached yet; attaching is part of the time. */
static void measure(int fd, const ww_options *options, const char *locality, uint64_t reads, int is_direct) {
    ww_store *store;
    const void *all = NULL;
    ww_window attached;
    require(ww_open_fd(fd, options, &store));
    require(ww_begin(store, WW_READ));
    const int counter = tlb_counter();
    const uint64_t faults = page_faults();
    const double began = seconds();
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
    if (is_direct) {
        require(ww_attach(store, handle_at(store, 0), (size_t)ww_capacity(store), &attached));
        require(ww_window_data(store, attached, &all));
    }
    read_all(store, all, locality[0], reads);
    ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
    printf("metric %s_read %.2f nanoseconds\n", locality, (seconds() - began) / (double)reads * 1e9);
    printf("metric %s_faults %" PRIu64 " count\n", locality, page_faults() - faults);
    ww_statistics statistics;
    ww_statistics_of(store, &statistics);
    printf("metric %s_mmaps %" PRIu64 " count\n", locality, statistics.mappings);
    uint64_t misses[3]; /* and the times enabled and running: no figure unless it counted all the time */
    if (counter >= 0 && read(counter, misses, sizeof misses) == sizeof misses && misses[1] == misses[2] &&
        misses[2] > 0)
        printf("metric %s_tlb_misses %" PRIu64 " count\n", locality, misses[0]);
    if (counter >= 0)
        close(counter);
    require(ww_commit(store));
    require(ww_close(store));
}

int main(int count, char **arguments) {
    static const char *const localities[] = {"sequential", "local", "random"};
    const uint64_t bytes = count > 2 ? strtoull(arguments[1], NULL, 10) << 20 : 0;
    const uint64_t reads = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    const char *wanted = setting("LOCALITY", "sequential,local,random");
    const char *window = setting("WINDOW", "1048576");
    int measured = 0;
    const int is_direct = !strcmp(window, "direct");
    ww_options options = {.flags = WW_NO_SYNC,
                          .window_bytes = is_direct ? 0 : strtoull(window, NULL, 10),
                          .address_bytes = strtoull(setting("SPACE", "0"), NULL, 10)};
    if (!options.address_bytes)
        options.address_bytes =
            is_direct ? bytes + (512 << 20) : bytes / 8 + (2 << 20) + options.window_bytes;
    /* The same in all variants. */
    const ww_options filling = {
        .kind = WW_MEMFD, .flags = WW_NO_SYNC, .window_bytes = 1 << 20, .address_bytes = 16 << 20};
    ww_store *store = NULL;
    for (int i = 0; bytes && reads && i < 3; i++)
        if (strstr(wanted, localities[i])) {
            const uint64_t these = localities[i][0] == 'r' ? reads : 4 * reads;
            if (!store) {
                require(ww_create("locality", bytes, &filling, &store));
                fill(store);
            }
            measure(ww_fd(store), &options, localities[i], these, is_direct);
            measured++;
        }
    if (!measured) {
        fprintf(stderr,
                "usage: LOCALITY=sequential,local,random WINDOW=BYTES|direct locality MEBIBYTES READS\n");
        return 2;
    }
    printf("%d localities, all words right\n", measured);
    require(ww_close(store));
    return 0;
}
