/*
 * Everything at once, for so many seconds: two threads make calls; one makes code and runs it; one makes text
 * writable and executable again in which the others make calls; one loads libraries and unloads them; one
 * forks; one queues signals, which another takes in calls that block. A timer sends a signal every 50
 * microseconds to the process. Prints what went wrong, and which of it happened at all: built for x32 and
 * for x86-64, both say the same.
 *
 * program SECONDS LIBRARY LIBRARY
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CALLERS,
    MAKER,
    CHANGER,
    LOADER,
    FORKER,
    SENDER,
    RECEIVER,
    TIMER,
    KINDS,
    PLACES = 40,
    APART = 64,
    SIZE = 4096
};
static const char *const kinds[] = {"calls", "code made",      "text changed",  "libraries",
                                    "forks", "signals queued", "signals taken", "signals of the timer"};

static volatile int over, stopped_sending;
static volatile unsigned long done[KINDS];
static volatile unsigned long wrong[KINDS];
static unsigned char *shared_text;
static char *const *libraries;
static pthread_t receiver;
static int first_process;

static void check(int kind, int is_right) {
    __atomic_add_fetch(&done[kind], 1, __ATOMIC_RELAXED);
    if (!is_right)
        __atomic_add_fetch(&wrong[kind], 1, __ATOMIC_RELAXED);
}

/* getppid(), its number just before the call, or far before a comparison of the result. */
typedef int function(void);
static void write_code(unsigned char *to, int compared, int number) {
    static const unsigned char near[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
    static const unsigned char far[] = {0xb8, 0,    0,    0,    0,    0xeb, 0,    0x0f,
                                        0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0xc3};
    memcpy(to, compared ? far : near, compared ? sizeof far : sizeof near);
    memcpy(to + 1, &number, sizeof number);
}

static void on_timer(int number) {
    int saved = errno;
    (void)number;
    check(TIMER, getppid() > 0);
    errno = saved;
}

static volatile int next;
static void on_queued(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    check(RECEIVER, info->si_value.sival_int == next);
    next = info->si_value.sival_int + 1;
}

static void *callers(void *nothing) {
    int ends[2], parent = getppid();
    char out[64], in[64];
    pipe(ends);
    for (unsigned round = 0; !over; round++) {
        struct iovec parts[] = {{out, 10}, {out + 10, 20}};
        memset(out, (int)round, sizeof out);
        check(CALLERS, writev(ends[1], parts, 2) == 30);
        check(CALLERS, read(ends[0], in, sizeof in) == 30 && memcmp(in, out, 30) == 0);
        check(CALLERS, close(-1) == -1 && errno == EBADF);
        for (int i = 0; i < PLACES; i++)
            check(CALLERS, ((function *)(shared_text + i * APART))() == parent);
    }
    return nothing;
}

static void *maker(void *nothing) {
    int parent = getppid();
    for (unsigned round = 0; !over; round++) {
        unsigned char *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        unsigned char *code = page + round * 8 % 2048;
        for (int again = 0; again < 2; again++) {
            write_code(code, again, again ? SYS_getpid : SYS_getppid);
            mprotect(page, SIZE, PROT_READ | PROT_EXEC);
            for (int i = 0; i < 4; i++)
                check(MAKER, ((function *)code)() == (again ? first_process : parent));
            mprotect(page, SIZE, PROT_READ | PROT_WRITE);
        }
        munmap(page, SIZE);
    }
    return nothing;
}

static void *changer(void *nothing) {
    while (!over) {
        check(CHANGER, mprotect(shared_text, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
        shared_text[SIZE - 1]++;
        check(CHANGER, mprotect(shared_text, SIZE, PROT_READ | PROT_EXEC) == 0);
        usleep(300);
    }
    return nothing;
}

static void *loader(void *nothing) {
    for (int round = 0; !over; round ^= 1) {
        void *library = dlopen(libraries[round], RTLD_NOW | RTLD_LOCAL);
        function *called = library ? (function *)dlsym(library, "makes_calls") : NULL;
        for (int i = 0; i < 3; i++)
            check(LOADER, called && called() == round + 1);
        check(LOADER, library && dlclose(library) == 0);
    }
    return nothing;
}

/* What the child of a process with threads may do: calls, and the end. */
static void *forker(void *nothing) {
    int parent = getpid();
    for (unsigned round = 0; !over; round++) {
        int status = 0, right = 1;
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < PLACES; i++)
                right &= ((function *)(shared_text + i * APART))() == parent;
            _exit(right ? (int)(round & 63) : 99);
        }
        while (waitpid(child, &status, 0) == -1 && errno == EINTR)
            ;
        check(FORKER, child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == (int)(round & 63));
        usleep(2000);
    }
    return nothing;
}

/* RLIMIT_SIGPENDING counts what is queued for all processes of the user: a receiver that waits for a CPU must
 * not use up what the tests beside this one need. */
enum { MOST_QUEUED = 1000 };
static void *sender(void *nothing) {
    for (int i = 0; !over; i++) {
        while (!over && done[SENDER] - done[RECEIVER] >= MOST_QUEUED)
            sched_yield();
        while (pthread_sigqueue(receiver, SIGRTMIN, (union sigval){.sival_int = i}) != 0)
            sched_yield();
        check(SENDER, 1);
        if (i % 16 == 0)
            usleep(50);
    }
    stopped_sending = 1;
    return nothing;
}

static void *receives(void *nothing) {
    sigset_t none;
    struct timespec time = {0, 200000};
    sigemptyset(&none);
    while (!stopped_sending || done[RECEIVER] != done[SENDER]) {
        struct pollfd nobody = {-1, 0, 0};
        poll(&nobody, 1, 1);
        nanosleep(&time, NULL);
        ppoll(&nobody, 1, &time, &none);
        if (over && stopped_sending)
            break;
    }
    /* All that was queued for this thread is there, or lost. */
    for (int i = 0; i < 1000 && done[RECEIVER] != done[SENDER]; i++)
        nanosleep(&time, NULL);
    return nothing;
}

static void start(int seconds) {
    struct sigaction timer = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigaction queued = {.sa_sigaction = on_queued, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct itimerval often = {{0, 50}, {0, 50}};
    void *(*const work[])(void *) = {callers, callers, maker, changer, loader, forker, sender};
    enum { WORK = sizeof work / sizeof *work };
    pthread_t threads[WORK];
    sigaction(SIGALRM, &timer, NULL);
    sigaction(SIGRTMIN, &queued, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_create(&receiver, NULL, receives, NULL);
    for (int i = 0; i < WORK; i++)
        pthread_create(&threads[i], NULL, work[i], NULL);
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        ;
    clock_gettime(CLOCK_MONOTONIC, &now);
    over = 1;
    for (int i = 0; i < WORK; i++)
        pthread_join(threads[i], NULL);
    pthread_join(receiver, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    libraries = words + 2;
    first_process = getpid();
    shared_text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PLACES; i++)
        write_code(shared_text + i * APART, i % 2, SYS_getppid);
    mprotect(shared_text, SIZE, PROT_READ | PROT_EXEC);
    start(atoi(words[1]));
    for (int i = 0; i < KINDS; i++) {
        printf("%s: %s, wrong: %lu\n", kinds[i], done[i] > 0 ? "some" : "none", wrong[i]);
        fprintf(stderr, "%s: %lu\n", kinds[i], done[i]);
    }
    printf("signals lost: %ld\n", (long)(done[SENDER] - done[RECEIVER]));
    return 0;
}
