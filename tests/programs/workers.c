/*
 * Work whose growth with the number of processes is known.
 *
 *   workers fork|threads|alone N EVENTS [WORD=VALUE]...
 *
 * N children or threads take every Nth event; `alone` does all of them itself. Words: seq=US, what is done
 * before any event; event=US, what an event takes; lock=PERCENT of it that only one can do at a time; with
 * spin=1 all of this is computed (some 250 steps to a microsecond), with spin=2 until the thread has had so
 * much CPU time, otherwise slept. stream=MIB copies so much in each event. shared=MIB is
 * written before the fork; touch=MIB of it by each child after; own=MIB are each child's own. hold=MS, for
 * which each waits at its end. die=K, hang=K: child K does; pin=C: children put themselves on CPU C, once
 * they have been put on one CPU, or after 1 s. log=1 writes a line for each event to a file log-PID; marks=1
 * marks each event.
 *
 * Where CREW_TRUTH names a file, the time from the beginning of main to its end is appended to it: `elapsed
 * NANOSECONDS`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "widthwise-marks.h"

static long events, workers, value[16];
static char *shared;
static pthread_mutex_t *mutex;

enum { SEQ, EVENT, LOCK, SPIN, STREAM, SHARED, TOUCH, OWN, HOLD, DIE, HANG, PIN, LOG, MARKS, WORDS };
static const char *const words[WORDS] = {"seq", "event", "lock", "spin", "stream", "shared", "touch",
                                         "own", "hold",  "die",  "hang", "pin",    "log",    "marks"};

static volatile unsigned long sink;

static void compute(long steps) {
    unsigned long sum = 0;
    for (long i = 0; i < steps; i++)
        __asm__ volatile("" : "+r"(sum));
    sink = sum;
}

/* In nanoseconds. */
static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long used(void) { return now(CLOCK_THREAD_CPUTIME_ID); }

/* In one write: lines of several programs stay whole. */
static void tell_elapsed(long long began) {
    const char *file = getenv("CREW_TRUTH");
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    char line[64];
    int length = snprintf(line, sizeof line, "elapsed %lld\n", now(CLOCK_MONOTONIC) - began);
    if (write(fd, line, (size_t)length) < 0)
        abort();
    close(fd);
}

/* So much work, so much CPU time, or so much time. */
static void pass(long us) {
    if (value[SPIN] == 1) {
        compute(us * 250);
    } else if (value[SPIN] == 2) {
        for (long long end = used() + us * 1000LL; used() < end;)
            compute(1000);
    } else {
        struct timespec time = {us / 1000000, us % 1000000 * 1000};
        while (nanosleep(&time, &time) < 0)
            continue;
    }
}

static void event(char *from, char *to) {
    long locked = value[EVENT] * value[LOCK] / 100;
    pass(value[EVENT] - locked);
    if (locked) {
        pthread_mutex_lock(mutex);
        pass(locked);
        pthread_mutex_unlock(mutex);
    }
    if (value[STREAM])
        memcpy(to, from, (size_t)value[STREAM] << 20);
}

/* Not before the caller of the program has put it on a CPU, and left it there for a while: that would undo a
 * change made between the caller's look at the affinity and its own change. */
static void pin(long cpu) {
    cpu_set_t set;
    for (int turn = 0, alone = 0; turn < 1000 && alone < 20; turn++) {
        int is_alone = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
        alone = is_alone ? alone + 1 : 0;
        usleep(1000);
    }
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *work(void *argument) {
    long number = (long)argument;
    if (value[PIN] >= 0)
        pin(value[PIN]);
    if (number == value[DIE])
        raise(SIGSEGV);
    while (number == value[HANG])
        pause();
    if (value[TOUCH])
        memset(shared, 2, (size_t)value[TOUCH] << 20);
    char *own = value[OWN] ? malloc((size_t)value[OWN] << 20) : NULL;
    if (own)
        memset(own, 3, (size_t)value[OWN] << 20);
    char *from = value[STREAM] ? malloc((size_t)value[STREAM] << 20) : NULL;
    char *to = value[STREAM] ? malloc((size_t)value[STREAM] << 20) : NULL;
    if (from)
        memset(from, 1, (size_t)value[STREAM] << 20);
    FILE *log = NULL;
    char line[64];
    if (value[LOG]) {
        snprintf(line, sizeof line, "log-%d", getpid());
        log = fopen(line, "w");
    }
    for (long e = number; e < events; e += workers) {
        event(from, to);
        if (log)
            fprintf(log, "event %ld took %.6f s\n", e, (double)value[EVENT] / 1e6);
        if (value[MARKS]) {
            snprintf(line, sizeof line, "event %ld", number);
            widthwise_mark(line);
        }
    }
    if (log)
        fclose(log);
    if (value[HOLD])
        usleep((useconds_t)value[HOLD] * 1000);
    return NULL;
}

int main(int count, char **arguments) {
    long long began = now(CLOCK_MONOTONIC);
    if (count < 4)
        return 2;
    workers = atol(arguments[2]);
    events = atol(arguments[3]);
    value[DIE] = value[HANG] = value[PIN] = -1;
    for (int i = 4; i < count; i++)
        for (int word = 0; word < WORDS; word++) {
            size_t length = strlen(words[word]);
            if (strncmp(arguments[i], words[word], length) == 0 && arguments[i][length] == '=')
                value[word] = atol(arguments[i] + length + 1);
        }
    mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    if (value[SHARED]) {
        shared = malloc((size_t)value[SHARED] << 20);
        memset(shared, 1, (size_t)value[SHARED] << 20);
    }
    pass(value[SEQ]);
    int failed = 0;
    if (arguments[1][0] == 'f') {
        for (long k = 0; k < workers; k++)
            if (fork() == 0) {
                work((void *)k);
                _exit(0);
            }
        for (int status; wait(&status) > 0;)
            failed |= status != 0;
    } else if (arguments[1][0] == 't') {
        pthread_t threads[4096];
        for (long k = 0; k < workers; k++)
            pthread_create(&threads[k], NULL, work, (void *)k);
        for (long k = 0; k < workers; k++)
            pthread_join(threads[k], NULL);
    } else {
        workers = 1;
        work(NULL);
    }
    printf("%ld events\n", events);
    fflush(stdout);
    tell_elapsed(began);
    return failed && value[DIE] < 0;
}
