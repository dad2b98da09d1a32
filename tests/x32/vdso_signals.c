/*
 * built: static, dynamic
 *
 * Signals that come while the thread is in the vDSO: each handler can unwind to main, jump out, or end the
 * thread.
 */
#include "transcript.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unwind.h>

#define SIGNALS 300

int main(void);

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *found) {
    int before;
    uintptr_t at = _Unwind_GetIPInfo(context, &before);
    *(int *)found |= _Unwind_FindEnclosingFunction((void *)(at - !before)) == (void *)main;
    return _URC_NO_REASON;
}

static int reaches_main(void) {
    int found = 0;
    _Unwind_Backtrace(look, &found);
    return found;
}

static volatile int handled, traced, narrow, steps;
static sigjmp_buf out;

static void trace(int number, siginfo_t *info, void *context) {
    struct timespec now;
    (void)number, (void)info;
    traced += reaches_main();
    narrow += ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] >> 32 == 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    handled++;
}

static void jump(int number) {
    (void)number;
    handled++;
    siglongjmp(out, 1);
}

static void step(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    steps += ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] >> 32 == 0;
    traced += reaches_main();
    handled++;
}

static void on(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(number, &action, NULL);
    handled = traced = narrow = 0;
}

static void every(int microseconds) {
    struct itimerval each = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &each, NULL);
}

static long long nanoseconds(clockid_t clock) {
    struct timespec now = {-1, -1};
    struct timeval day;
    if (clock_gettime(clock, &now) != 0 || gettimeofday(&day, NULL) != 0)
        say("failed");
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int runs_backwards(clockid_t clock) {
    static long long before;
    long long now = nanoseconds(clock);
    int wrong = now < before;
    before = now;
    return wrong;
}

static void *ask(void *nothing) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        nanoseconds(CLOCK_MONOTONIC);
    return nothing;
}

static void traces(void) {
    int wrong = 0;
    on(SIGALRM, trace);
    every(500);
    while (handled < SIGNALS)
        wrong += runs_backwards(CLOCK_MONOTONIC);
    every(0);
    IS(traced == handled && narrow == handled);
    VALUE(wrong);
}

static void jumps(void) {
    signal(SIGALRM, jump);
    handled = 0;
    every(500);
    sigsetjmp(out, 1);
    while (handled < SIGNALS)
        nanoseconds(CLOCK_MONOTONIC);
    every(0);
    IS(handled >= SIGNALS);
}

static void cancelled_threads(void) {
    int ended = 0;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, ask, NULL);
        usleep(2000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        ended += result == PTHREAD_CANCELED;
    }
    VALUE(ended);
}

/* At each instruction. */
static void single_steps(void) {
    struct timespec now = {0, 0};
    on(SIGTRAP, step);
    __asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "cc", "memory");
    clock_gettime(CLOCK_MONOTONIC, &now);
    __asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "cc", "memory");
    IS(handled > 10 && traced == handled && steps == handled);
    IS(now.tv_sec > 0 || now.tv_nsec > 0);
}

int main(void) {
    traces();
    jumps();
    cancelled_threads();
    single_steps();
    return 0;
}
