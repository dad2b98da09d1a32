/*
 * Threads and processes that come and go, and what each of them did.
 *
 *   pools SHAPE N MS [FILE]
 *
 * N workers use MS milliseconds of CPU time each. SHAPE says how they come to be:
 *
 *   one        a pool of N threads
 *   two        a pool of N threads that do little, and when it has ended the pool that works
 *   nested     a thread starts the N threads that work
 *   main       N threads work, and the main thread as much as each of them
 *   team       N - 1 threads and the main thread work, as OpenMP has it
 *   detached   a pool of N threads ends soon; N detached threads go on
 *   helper     two threads sleep all the time, started before and between the workers
 *   many       3 N threads work a third of the time each
 *   phases     20 pools one after the other
 *   forks      N children
 *   refork     N children that do little, and when they have ended the N that work
 *   exec       N children, each of which executes this program anew
 *   double     N children fork the worker and end
 *   orphans    N children, which end 10 ms after their parent, whose end they wait for
 *   ignored    N children without a wait (SIGCHLD is ignored)
 *   alone      works itself
 *
 * Each process appends to FILE, at its end, its CPU time: `cpu NANOSECONDS`; each worker where it was allowed
 * to run at its end: `on CPU,CPU...`. The first process also appends the time that it took: `elapsed
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long workers;
static double milliseconds;
static const char *shape, *file, *self;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static long left;

static long long clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* One write each: lines of several writers stay whole. */
static void tell(const char *line) {
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    if (write(fd, line, strlen(line)) < 0)
        abort();
    close(fd);
}

static void tell_number(const char *name, long long number) {
    char line[64];
    snprintf(line, sizeof line, "%s %lld\n", name, number);
    tell(line);
}

static void tell_cpus(void) {
    cpu_set_t set;
    char line[256] = "on";
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && strlen(line) + 8 < sizeof line; cpu++)
        if (CPU_ISSET(cpu, &set))
            snprintf(line + strlen(line), 8, "%s%d", line[2] ? "," : " ", cpu);
    strcat(line, "\n");
    tell(line);
}

static void use(double ms) {
    long long end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (long long)(ms * 1e6);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            __asm__ volatile("");
}

static void *work(void *ms) {
    use(*(double *)ms);
    tell_cpus();
    return NULL;
}

static void *work_detached(void *ms) {
    work(ms);
    pthread_mutex_lock(&mutex);
    left--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *nap(void *unused) {
    while (pause() < 0)
        continue;
    return unused;
}

static void *idle(void *unused) {
    (void)unused;
    use(5);
    return NULL;
}

static void pool(long threads, void *(*what)(void *), double ms) {
    pthread_t all[1024];
    for (long i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, what, &ms);
    for (long i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
}

static void *nested(void *ms) {
    pool(workers, work, *(double *)ms);
    return NULL;
}

static int is(const char *name) { return strcmp(shape, name) == 0; }

static void threads(void) {
    pthread_t thread, all[1024];
    double ms = milliseconds;
    if (is("one")) {
        pool(workers, work, ms);
    } else if (is("two")) {
        pool(workers, idle, 0);
        pool(workers, work, ms);
    } else if (is("nested")) {
        pthread_create(&thread, NULL, nested, &ms);
        pthread_join(thread, NULL);
    } else if (is("main") || is("team")) {
        long others = is("main") ? workers : workers - 1;
        for (long i = 0; i < others; i++)
            pthread_create(&all[i], NULL, work, &ms);
        work(&ms);
        for (long i = 0; i < others; i++)
            pthread_join(all[i], NULL);
    } else if (is("detached")) {
        left = workers;
        for (long i = 0; i < workers; i++) {
            pthread_create(&thread, NULL, work_detached, &ms);
            pthread_detach(thread);
        }
        pool(workers, idle, 0);
        pthread_mutex_lock(&mutex);
        while (left > 0)
            pthread_cond_wait(&ended, &mutex);
        pthread_mutex_unlock(&mutex);
    } else if (is("helper")) {
        for (long i = 0; i < workers; i++) {
            if (i < 2) {
                pthread_create(&thread, NULL, nap, NULL);
                pthread_detach(thread);
            }
            pthread_create(&all[i], NULL, work, &ms);
        }
        for (long i = 0; i < workers; i++)
            pthread_join(all[i], NULL);
    } else if (is("many")) {
        pool(3 * workers, work, ms / 3);
    } else if (is("phases")) {
        for (int phase = 0; phase < 20; phase++)
            pool(workers, work, ms / 20);
    } else {
        work(&ms);
    }
}

__attribute__((noreturn)) static void leave(void) {
    tell_number("cpu", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    _exit(0);
}

static void child(double ms, int ready) {
    pid_t parent = getpid();
    if (fork() != 0)
        return;
    if (is("exec")) {
        char time[32];
        snprintf(time, sizeof time, "%f", ms);
        execl(self, self, "child", "1", time, file, NULL);
        _exit(127);
    }
    if (is("double") && fork() != 0)
        leave();
    use(ms);
    if (is("orphans")) {
        const struct timespec pause = {0, 10000000};
        if (write(ready, "", 1) < 0)
            abort();
        while (getppid() == parent)
            usleep(500);
        nanosleep(&pause, NULL);
    }
    if (ms > 5)
        tell_cpus();
    leave();
}

static void children(void) {
    if (is("ignored"))
        signal(SIGCHLD, SIG_IGN);
    /* The pipe shows which child has ended, whichever process waits for it. */
    int pipes[2];
    if (pipe(pipes) < 0)
        abort();
    fcntl(pipes[0], F_SETFD, FD_CLOEXEC);
    if (is("refork")) {
        for (long i = 0; i < workers; i++)
            child(5, pipes[1]);
        while (wait(NULL) > 0)
            continue;
    }
    for (long i = 0; i < workers; i++)
        child(milliseconds, pipes[1]);
    close(pipes[1]);
    char byte;
    if (is("orphans")) {
        for (long i = 0; i < workers; i++)
            if (read(pipes[0], &byte, 1) < 0)
                abort();
        return;
    }
    while (read(pipes[0], &byte, 1) > 0)
        continue;
    while (wait(NULL) > 0)
        continue;
}

int main(int count, char **arguments) {
    long long began = clock_ns(CLOCK_MONOTONIC);
    if (count < 4)
        return 2;
    self = arguments[0];
    shape = arguments[1];
    workers = atol(arguments[2]);
    milliseconds = atof(arguments[3]);
    file = count > 4 ? arguments[4] : NULL;
    if (workers < 1 || workers > 300)
        return 2;
    if (is("child")) {
        work(&milliseconds);
        leave();
    }
    if (is("forks") || is("refork") || is("exec") || is("double") || is("orphans") || is("ignored"))
        children();
    else
        threads();
    puts("done");
    fflush(stdout);
    tell_number("elapsed", clock_ns(CLOCK_MONOTONIC) - began);
    leave();
}
