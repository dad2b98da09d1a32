/* Signals at many places, and handlers that end in many ways. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t handled, nested, wrong, left, overflows, depth, deepest, in_threads;
static sigjmp_buf place;
static volatile double value = 1;
static char stack[65536];

static int deeper(int calls) {
    volatile char room[300];
    memset((char *)room, calls, sizeof room);
    return calls ? deeper(calls - 1) + room[3] : room[5];
}

static void set_handler(int signal, void (*handler)(int), int flags, int blocked) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    if (blocked)
        sigaddset(&action.sa_mask, blocked);
    sigaction(signal, &action, NULL);
}

static void second(int signal) {
    nested++;
    wrong += handled & 1;
    deeper(signal % 3 + 5);
}

static void first(int signal) {
    handled++; /* while it is odd, SIGUSR2 is blocked */
    raise(SIGUSR2);
    deeper(signal % 3 + 10);
    handled++;
}

static void jumps_out(int signal) {
    deeper(signal % 3 + 3);
    left++;
    siglongjmp(place, 1);
}

static void raise_and_leave(int times) {
    for (volatile int i = 0; i < times; i++) {
        if (sigsetjmp(place, 1) == 0) {
            raise(SIGHUP);
            wrong++;
        }
        deeper(8);
    }
}

static int overflow(int calls) {
    volatile char room[4096];
    room[0] = (char)calls;
    return calls ? overflow(calls + 1) + room[0] : 0;
}

static void on_overflow(int signal) {
    (void)signal;
    overflows++;
    siglongjmp(place, 1);
}

static void goes_deep(int signal) {
    if (++depth < 15)
        raise(signal);
    if (depth > deepest)
        deepest = depth;
    depth--;
}

static void on_alarm(int signal) {
    value = value / 3 + deeper(signal % 3);
    handled++;
}

/* Computes in registers until a signal has come, with no call on its stack. */
static void spin(void) {
    int before = handled;
    double sum = 0;
    for (int i = 1; handled == before || i % 1000; i++) {
        double part = 1.0 / i;
        sum += part * i;
        if (sum < i - 0.5 || sum > i + 0.5)
            exit(1);
    }
}

static void with_alarms(void) {
    struct itimerval interval = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}};
    set_handler(SIGALRM, on_alarm, 0, 0);
    setitimer(ITIMER_REAL, &interval, NULL);
    for (int i = 0; i < 20; i++) {
        spin();
        if (write(1, "", 0) != 0)
            exit(1);
    }
    setitimer(ITIMER_REAL, &none, NULL);
}

static void in_thread(int signal) {
    deeper(signal % 3);
    __atomic_add_fetch(&in_threads, 1, __ATOMIC_RELAXED);
}

static void *thread(void *nothing) {
    for (int i = 0; i < 4; i++)
        pthread_kill(pthread_self(), SIGUSR2);
    return nothing;
}

int main(void) {
    set_handler(SIGUSR1, first, 0, SIGUSR2);
    set_handler(SIGUSR2, second, 0, 0);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    printf("interrupted %d, nested %d, wrong %d\n", handled, nested, wrong);

    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, &before);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("both %d\n", handled);

    set_handler(SIGHUP, jumps_out, 0, 0);
    raise_and_leave(20);
    printf("left %d\n", left);

    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    set_handler(SIGUSR1, first, SA_ONSTACK, SIGUSR2);
    set_handler(SIGHUP, jumps_out, SA_ONSTACK, 0);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    raise_and_leave(5);
    printf("on its stack %d, left %d\n", handled, left);

    set_handler(SIGSEGV, on_overflow, SA_ONSTACK, 0);
    for (int i = 0; i < 2; i++)
        if (sigsetjmp(place, 1) == 0)
            overflow(1);
    printf("overflowed %d\n", overflows);

    set_handler(SIGUSR1, goes_deep, SA_NODEFER, 0);
    for (int i = 0; i < 3; i++)
        raise(SIGUSR1);
    printf("deep %d\n", deepest);

    with_alarms();
    printf("registers kept\n");

    set_handler(SIGUSR2, in_thread, 0, 0);
    pthread_t threads[40];
    for (int i = 0; i < 40; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 40; i++)
        pthread_join(threads[i], NULL);
    printf("threads %d\n", in_threads);
    return 3;
}
