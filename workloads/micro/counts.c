// Counting instead of timing. The loops are the same.
#define _GNU_SOURCE
#include "counts.h"
#include "valgrind.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

// Iterations of the shorter loop: loops of many operations an iteration take long.
static unsigned long shortened(const struct operation *operation, unsigned long iterations) {
    unsigned long shorter = iterations * 32 / operation->per_iteration;
    return shorter > iterations ? iterations : shorter < 1 ? 1 : shorter;
}

// Why valgrind cannot count an operation; NULL: it can.
static const char *uncountable(const struct operation *operation) {
    if (operation->subtracted != NULL)
        return "it is a difference, of which valgrind counts one process";
    if (operation == &operation_clock_gettime)
        return "it is a call through the vDSO, which valgrind does not have";
#if defined(__x86_64__) && defined(__ILP32__)
    if (operation == &operation_signal_deliver)
        return "callgrind's sum leaves out what a signal handler executes, a part of the x32 runtime's share";
#endif
    return NULL;
}

// Counts one loop. A function of its own, so that the same instructions surround both.
static __attribute__((noinline)) void dumped(const struct operation *operation, unsigned long iterations,
                                             const char *label) {
    valgrind_request(CALLGRIND_ZERO_STATS, NULL);
    operation->loop(iterations);
    valgrind_request(CALLGRIND_DUMP_STATS_AT, label);
}

void count_by_callgrind(const struct operation *operation, unsigned long iterations) {
    const char *unable = uncountable(operation);
    if (unable == NULL && operation->prepare != NULL)
        unable = operation->prepare();
    if (unable != NULL) {
        printf("no-count micro.%s %s\n", operation->name, unable);
        return;
    }
    iterations = shortened(operation, iterations);
    char label[64];
    operation->loop(1);
    for (unsigned times = 1; times <= 2; times++) {
        snprintf(label, sizeof label, "micro %s %u", operation->name, times);
        dumped(operation, iterations * times, label);
    }
    if (operation->finish != NULL)
        operation->finish();
    if (fault != NULL) {
        printf("no-count micro.%s %s\n", operation->name, fault);
        return;
    }
    printf("count %s %lu %u\n", operation->name, iterations, operation->per_iteration);
}

// The plugin writes its counters down where it meets `nopl 0x5744NNNN(%rax)`, which does nothing
// (runtime/plugin/plugin.c). 16 and 17 are the two ends of a stretch.
#if defined(__x86_64__) || defined(__i386__)
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #number ", 0x00, 0x44, 0x57" ::: "memory")
enum { HAS_MARKERS = 1 };
#else
#define MARK(number)
enum { HAS_MARKERS = 0 };
#endif

enum { REPETITIONS = 5, TRIES = 8, MOST_TRIES = 32 };

// So many stretches have ended.
static unsigned long stretches;

// The loop between two markers: false where the kernel's clock ticked meanwhile, whose instructions are not
// the loop's. The coarse clock is the time of the last tick. A function of its own, so that the same
// instructions surround the loops of n and of 2 n.
static __attribute__((noinline)) bool stretch(const struct operation *operation, unsigned long iterations) {
    struct timespec before = {0}, after = {0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
    MARK(0x10);
    operation->loop(iterations);
    MARK(0x11);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
    stretches++;
    return before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec;
}

// The numbers of stretches.
struct numbers {
    unsigned long of[2 * REPETITIONS];
    unsigned count;
};

// `count` stretches of n and of `factor` n iterations in turns, each made again while the clock ticks in it.
// False where some stretch had a tick every time.
static bool without_ticks(const struct operation *operation, unsigned long iterations, unsigned factor,
                          unsigned tries, struct numbers *numbers) {
    bool all = true;
    for (unsigned i = 0; i < numbers->count && fault == NULL; i++) {
        bool is_clean = false;
        for (unsigned made = 0; made < (all ? tries : 1) && !is_clean && fault == NULL; made++)
            is_clean = stretch(operation, i % 2 == 0 ? iterations : iterations * factor);
        numbers->of[i] = stretches - 1;
        all = all && is_clean;
    }
    return all;
}

static void print(const struct numbers *numbers) {
    for (unsigned i = 0; i < numbers->count; i++)
        printf(" %lu", numbers->of[i]);
}

// Why user mode alone does not show an operation as a kernel would; NULL: it does. QEMU's user emulation has
// no vDSO, through which i386 programs make their calls and all read clocks.
static const char *beyond_user_mode(const struct operation *operation, const char *family) {
    if (strcmp(family, "process") == 0 || strcmp(family, "exchange") == 0)
        return "not counted on this machine's kernel: it takes another process, and QEMU counts one";
    bool by_vdso = operation == &operation_clock_gettime;
#ifdef __i386__
    by_vdso = by_vdso || strcmp(family, "system") == 0;
#endif
    return by_vdso ? "not counted on this machine's kernel: it is a call through the vDSO, which QEMU's user "
                     "emulation does not have"
                   : NULL;
}

static void no_metric(const struct operation *operation, const char *side, const char *why) {
    printf("no-metric micro.%s.instructions_%s %s\n", operation->name, side, why);
}

// Makes the stretches of one loop and writes which they are.
static const char *counted(const struct operation *operation, unsigned long iterations, bool is_user) {
    const char *unable = operation->prepare != NULL ? operation->prepare() : NULL;
    if (unable != NULL)
        return unable;
    iterations = shortened(operation, iterations);
    struct numbers both = {.count = 2 * REPETITIONS}, once = {.count = REPETITIONS};
    operation->loop(iterations);
    bool is_clean = without_ticks(operation, iterations, 2, is_user ? 1 : TRIES, &both);
    // Fewer iterations, where so many last longer than a tick.
    while (!is_clean && !is_user && iterations > 1 && fault == NULL) {
        iterations = (iterations + 3) / 4;
        is_clean = without_ticks(operation, iterations, 2, iterations > 1 ? TRIES : MOST_TRIES, &both);
    }
    // One iteration may be short enough: the kernel has no part in the loop itself.
    bool is_once = !is_clean && !is_user && without_ticks(operation, 1, 1, MOST_TRIES, &once);
    if (operation->finish != NULL)
        operation->finish();
    if (fault != NULL)
        return fault;
    const struct operation *less = operation->subtracted != NULL ? operation->subtracted : &operation_empty;
    printf("metric stretches %s %lu %u %s", operation->name, iterations, operation->per_iteration,
           less->name);
    print(&both);
    if (is_once) {
        printf(" once");
        print(&once);
    }
    printf("\n");
    if (!is_clean && !is_once && !is_user)
        no_metric(operation, "kernel", "an iteration takes longer than a tick of the kernel's clock");
    return NULL;
}

void count_between_markers(const struct operation *operation, const char *family, unsigned long iterations,
                           bool is_user) {
    const char *unable = HAS_MARKERS ? NULL : "there are no markers for this processor";
    if (unable == NULL && is_user)
        unable = beyond_user_mode(operation, family);
    if (unable == NULL && operation->subtracted != NULL)
        unable = counted(operation->subtracted, iterations, is_user);
    if (unable == NULL)
        unable = counted(operation, iterations, is_user);
    if (unable != NULL) {
        no_metric(operation, "user", unable);
        if (!is_user)
            no_metric(operation, "kernel", unable);
    }
}
