// The harness: finds how many iterations fill a repetition, subtracts the empty loop, repeats, and reports
// nanoseconds per operation. docs/micro.md describes the lines that it prints.
#define _GNU_SOURCE
#include "counts.h"
#include "operation.h"
#include "valgrind.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REPETITIONS = 1000, DEFAULT_REPETITIONS = 10, DEFAULT_MS = 1, COARSEST_NS = 1000 };

static const struct {
    const struct operation *operation;
    const char *family;
} operations[] = {
#define OPERATION(name, family, noun) {&operation_##name, #family},
#include "operations.def"
#undef OPERATION
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

// Whether `all` has it.
static bool is_row(int i) { return strcmp(operations[i].family, "truth") != 0; }

DECLARE(empty);
LOOP(empty) {
    REPEAT {}
}
const struct operation operation_empty = {"empty", micro_empty, 1, NULL, NULL, NULL, 0};

static struct {
    unsigned repetitions, ms;
    // Iterations of a loop that is counted, by valgrind or between markers; 0: times are taken.
    unsigned long count;
    bool marked, user, samples, table;
} options = {DEFAULT_REPETITIONS, DEFAULT_MS, 0, false, false, false, false};

const char *fault;

const char *failure(const char *call) {
    static char text[256];
    snprintf(text, sizeof text, "%s: %s", call, strerror(errno));
    return text;
}

const char *beside(const char *name) {
    static char path[8192];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path / 2);
    path[length < 0 ? 0 : length] = 0;
    char *slash = strrchr(path, '/');
    snprintf(slash != NULL ? slash + 1 : path, sizeof path / 2, "%s", name);
    return path;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double timed(const struct operation *operation, unsigned long iterations) {
    double began = now();
    operation->loop(iterations);
    return now() - began;
}

// How many iterations last so many nanoseconds. Each step is at most fourfold, so that one slow first
// iteration decides nothing. There are as many as `unsigned long` holds, or fewer: in 32 bits, a short loop
// lasts less than a second then.
static unsigned long iterations_for(const struct operation *operation, double length) {
    unsigned long iterations = 1;
    for (;;) {
        double took = timed(operation, iterations);
        if (fault != NULL)
            return 1;
        if (took >= length / 4 || iterations > ULONG_MAX / 4) {
            double wanted = (double)iterations * length / took;
            return wanted < 1 ? 1 : wanted < (double)ULONG_MAX ? (unsigned long)wanted : ULONG_MAX;
        }
        iterations *= 4;
    }
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// Nanoseconds of an iteration, in ascending order.
static void measure(const struct operation *operation, double *samples) {
    double length = 1e6 * (operation->repetition_ms > options.ms ? operation->repetition_ms : options.ms);
    unsigned long iterations = iterations_for(operation, length);
    for (unsigned i = 0; i < options.repetitions && fault == NULL; i++)
        samples[i] = timed(operation, iterations) / (double)iterations;
    if (fault == NULL)
        qsort(samples, options.repetitions, sizeof *samples, ascending);
}

// The fastest iteration of an operation that others subtract. Each is measured once.
static double floor_of(const struct operation *operation, const char **unable) {
    static const struct operation *known[4];
    static double floors[4];
    for (int i = 0; i < 4; i++) {
        if (known[i] == operation)
            return floors[i];
        if (known[i] == NULL) {
            double samples[MOST_REPETITIONS];
            *unable = operation->prepare != NULL ? operation->prepare() : NULL;
            if (*unable != NULL)
                return 0;
            measure(operation, samples);
            if (operation->finish != NULL)
                operation->finish();
            *unable = fault;
            if (fault != NULL)
                return 0;
            known[i] = operation;
            return floors[i] = samples[0];
        }
    }
    return 0;
}

// Whether each operation waits for the one before. The loop's own instructions run meanwhile, and take no
// time.
static bool is_chain(const char *family) {
    return strcmp(family, "arithmetic") == 0 || strcmp(family, "chase") == 0 || strcmp(family, "truth") == 0;
}

static void report(const struct operation *operation, const char *family) {
    double samples[MOST_REPETITIONS];
    const char *unable = NULL;
    double less = is_chain(family) ? 0 : floor_of(&operation_empty, &unable) / operation->per_iteration;
    if (operation->subtracted != NULL)
        less = floor_of(operation->subtracted, &unable);
    if (unable == NULL && operation->prepare != NULL)
        unable = operation->prepare();
    if (unable != NULL) {
        printf("no-metric micro.%s %s\n", operation->name, unable);
        return;
    }
    measure(operation, samples);
    if (operation->finish != NULL)
        operation->finish();
    if (fault != NULL) {
        printf("no-metric micro.%s %s\n", operation->name, fault);
        return;
    }
    for (unsigned i = 0; i < options.repetitions; i++) {
        samples[i] = samples[i] / operation->per_iteration - less;
        if (options.samples)
            printf("sample micro.%s %u %.6g nanoseconds\n", operation->name, i, samples[i]);
    }
    if (options.table)
        printf("%-16s %12.4g %12.4g %12.4g %12.4g\n", operation->name, samples[0],
               samples[options.repetitions / 4], samples[options.repetitions / 2],
               samples[options.repetitions * 3 / 4]);
    else if (samples[0] > 0)
        printf("metric micro.%s %.6g nanoseconds\n", operation->name, samples[0]);
    else
        printf("no-metric micro.%s it takes no longer than the empty loop here\n", operation->name);
}

// Processes that exchange something share a CPU, and nothing moves while it is timed.
static const char *pin(void) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    int cpu = sched_getcpu();
    if (cpu < 0)
        return failure("sched_getcpu");
    CPU_SET(cpu, &allowed);
    return sched_setaffinity(0, sizeof allowed, &allowed) < 0 ? failure("sched_setaffinity") : NULL;
}

// Why the clock is no measure; NULL: it is one.
static const char *clock_fault(void) {
    static char text[160];
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC, &resolution) < 0)
        return failure("clock_getres");
    if (resolution.tv_sec > 0 || resolution.tv_nsec > COARSEST_NS) {
        snprintf(text, sizeof text, "no stable clock: CLOCK_MONOTONIC has a resolution of %lld.%09ld s",
                 (long long)resolution.tv_sec, (long)resolution.tv_nsec);
        return text;
    }
    return NULL;
}

// Marks the operations of a word: `all`, or the name of one; false: there is none. They are made in the
// table's order, whatever the order of the words: an operation may change the process for those after it.
static bool ask(const char *word, bool *asked) {
    bool is_all = strcmp(word, "all") == 0, is_known = is_all;
    for (int i = 0; i < OPERATIONS; i++) {
        if (is_all ? is_row(i) : strcmp(operations[i].operation->name, word) == 0)
            is_known = asked[i] = true;
    }
    return is_known;
}

static int usage(FILE *to) {
    fprintf(to,
            "usage: micro [OPTION...] all|OPERATION...\n"
            "  --repetitions N  repetitions of each operation (10); the fastest is reported\n"
            "  --time MS        the least time of a repetition (1)\n"
            "  --samples        each repetition on a line of its own, too\n"
            "  --table          a table for readers: minimum, lower quartile, median, upper quartile in ns\n"
            "  --count N        for callgrind: count N and 2 N iterations of each loop; nothing is timed\n"
            "  --marked N       the same for the counting plugin of QEMU, between markers\n"
            "  --user           with --marked: QEMU emulates user mode alone\n"
            "  --list           the operations\n");
    return to == stdout ? 0 : 2;
}

// The number after an option, from 1 to `most`; 0 where it is none.
static unsigned long number(const char *text, unsigned long most) {
    char *end;
    errno = 0;
    unsigned long value = text == NULL || *text == '-' ? 0 : strtoul(text, &end, 10);
    return value == 0 || *end != 0 || errno != 0 || value > most ? 0 : value;
}

// Reads an option, the first of these words; how many words it is, or 0 where it is wrong.
static int option(char **arguments) {
    const char *name = arguments[0];
    if (strcmp(name, "--samples") == 0)
        return options.samples = true;
    if (strcmp(name, "--table") == 0)
        return options.table = true;
    if (strcmp(name, "--user") == 0)
        return options.user = true;
    options.marked = options.marked || strcmp(name, "--marked") == 0;
    bool is_count = strcmp(name, "--count") == 0 || strcmp(name, "--marked") == 0;
    unsigned long value = number(arguments[1], is_count ? 1000000 : MOST_REPETITIONS);
    if (value != 0 && strcmp(name, "--repetitions") == 0)
        options.repetitions = (unsigned)value;
    else if (value != 0 && strcmp(name, "--time") == 0)
        options.ms = (unsigned)value;
    else if (value != 0 && is_count)
        options.count = value;
    else
        return 0;
    return 2;
}

// Sorts the words of the command line: options are read, operations are left, `*count` of them; -1: an option
// is wrong.
static bool sorted(char **arguments, int *count) {
    *count = 0;
    for (int i = 1; arguments[i] != NULL;) {
        if (strncmp(arguments[i], "--", 2) != 0) {
            arguments[(*count)++] = arguments[i++];
            continue;
        }
        int words = option(arguments + i);
        if (words == 0) {
            *count = -1;
            return false;
        }
        i += words;
    }
    return *count > 0;
}

static void made(const struct operation *operation, const char *family, const char *unmeasurable) {
    fault = NULL;
    if (options.count != 0 && options.marked)
        count_between_markers(operation, family, options.count, options.user);
    else if (options.count != 0)
        count_by_callgrind(operation, options.count);
    else if (unmeasurable != NULL)
        printf("no-metric micro.%s %s\n", operation->name, unmeasurable);
    else
        report(operation, family);
    // A child must not write its parent's lines once more.
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--help") == 0)
        return usage(stdout);
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (int i = 0; i < OPERATIONS; i++)
            if (is_row(i))
                printf("%s\n", operations[i].operation->name);
        return 0;
    }
    if (!sorted(arguments, &count)) {
        usage(stderr);
        fprintf(stderr, "micro: %s\n",
                count < 0 ? "an option is unknown or has a wrong number" : "no operation is named");
        return 2;
    }
    bool asked[OPERATIONS] = {false};
    for (int i = 0; i < count; i++) {
        if (!ask(arguments[i], asked)) {
            fprintf(stderr, "micro: unknown operation %s; `micro --list` lists them\n", arguments[i]);
            return 2;
        }
    }
    if (options.count != 0 && !options.marked && valgrind_request(RUNNING_ON_VALGRIND, NULL) == 0) {
        fprintf(stderr, "micro: --count needs valgrind --tool=callgrind\n");
        return 2;
    }
    // Where another process has ended, a write fails, and its row has no metric.
    signal(SIGPIPE, SIG_IGN);
    const char *unpinned = pin();
    const char *unmeasurable = clock_fault();
    if (unmeasurable == NULL)
        unmeasurable = unpinned;
    printf("micro 1\n");
    if (options.table)
        printf("%-16s %12s %12s %12s %12s\n", "ns", "minimum", "quartile", "median", "quartile");
    fflush(stdout);
    if (options.count != 0)
        made(&operation_empty, "", NULL);
    for (int i = 0; i < OPERATIONS; i++)
        if (asked[i])
            made(operations[i].operation, operations[i].family, unmeasurable);
    return fflush(stdout) == 0 ? 0 : 1;
}
