/*
 * seconds: 120
 *
 * Signals in the middle of everything: none is lost, none comes twice, no call is torn, no state is mixed up.
 */
#include "transcript.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

static volatile unsigned handled, nested_count;
static void count_one(int number) {
    (void)number;
    handled++;
    volatile double x = handled;
    x = x / 3;
    __asm__ volatile("pxor %%xmm0, %%xmm0\n pxor %%xmm7, %%xmm7\n pxor %%xmm15, %%xmm15\n"
                     :
                     :
                     : "xmm0", "xmm7", "xmm15");
}
static void nested(int number) {
    nested_count++;
    if (number < SIGRTMIN + 5)
        raise(number + 1);
    getppid();
}
static volatile int over;
static void *sender(void *to) {
    for (int i = 0; i < 2000; i++) {
        while (pthread_sigqueue(*(pthread_t *)to, SIGRTMIN + 9, (union sigval){.sival_int = i}) != 0)
            sched_yield();
    }
    over = 1;
    return NULL;
}
static volatile int next, out_of_order;
static void in_order(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_value.sival_int != next++)
        out_of_order++;
}

int main(void) {
    struct sigaction action = {.sa_handler = count_one, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    int ends[2];
    pipe(ends);
    char out[64], in[64];
    int torn = 0, bad = 0;
    uint64_t checks = 0;
    double sum = 0, by_hand = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < 300) {
        struct iovec parts[] = {{out, 10}, {out + 10, 20}};
        memset(out, (int)checks, sizeof out);
        if (writev(ends[1], parts, 2) != 30 || read(ends[0], in, sizeof in) != 30 || memcmp(out, in, 30) != 0)
            torn++;
        if (getppid() <= 0 || close(200) != -1 || errno != EBADF)
            bad++;
        char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || munmap(page, 4096) != 0)
            bad++;
        sum += 0.5 * (checks & 7), by_hand += (checks & 7) / 2.0;
        checks++;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    VALUE(torn);
    VALUE(bad);
    IS(sum == by_hand);

    say("nested");
    for (int i = 0; i <= 5; i++)
        signal(SIGRTMIN + i, nested);
    for (int i = 0; i < 200; i++)
        raise(SIGRTMIN);
    VALUE(nested_count);

    say("queued by another thread while this one makes calls");
    action = (struct sigaction){.sa_sigaction = in_order, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN + 9, &action, NULL);
    pthread_t self = pthread_self(), thread;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 9);
    pthread_create(&thread, NULL, sender, &self);
    while (!over) {
        if (getppid() <= 0)
            bad++;
        sigprocmask(SIG_BLOCK, &set, NULL);
        int before = next;
        getppid();
        if (before != next)
            bad++;
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    pthread_join(thread, NULL);
    VALUE(next);
    VALUE(out_of_order);
    VALUE(bad);

    say("blocked, then let in");
    handled = 0;
    signal(SIGUSR1, count_one);
    signal(SIGRTMIN, count_one);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1), raise(SIGRTMIN);
    VALUE(handled);
    sigset_t none;
    sigemptyset(&none);
    RESULT(sigsuspend(&none));
    VALUE(handled);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("blocked again: %d %d", sigismember(&now, SIGUSR1), sigismember(&now, SIGRTMIN));
    return 0;
}
