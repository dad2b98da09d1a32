/*
 * SIGSYS that is ignored or blocked interrupts no call, whichever it is, and no time is slept twice.
 */
#include "transcript.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static int ends[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Sends it so many times, 60 ms apart. */
static pid_t sender(int times) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < times; i++) {
            poll(NULL, 0, 60);
            kill(getppid(), SIGSYS);
        }
        _exit(0);
    }
    return child;
}

/* A call that takes 400 ms. Twice as long would be its whole time again after an interruption. */
#define LASTS(call)                                                                                          \
    do {                                                                                                     \
        double began_ = now();                                                                               \
        pid_t child_ = sender(3);                                                                            \
        long result_ = (call);                                                                               \
        int number_ = errno;                                                                                 \
        double took_ = now() - began_;                                                                       \
        while (waitpid(child_, NULL, 0) == -1)                                                               \
            ;                                                                                                \
        errno = number_;                                                                                     \
        print_result(#call, result_);                                                                        \
        IS(took_ > 0.39);                                                                                    \
    } while (0)

static void calls(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    struct timespec time = {0, 400000000}, left = {0, 400000000};
    struct timeval half = {0, 400000};
    struct epoll_event event;
    int word = 0, events = epoll_create1(0);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigset_t with_it = usr1;
    sigaddset(&with_it, SIGSYS);
    LASTS(poll(&one, 1, 400));
    LASTS(poll(NULL, 0, 400));
    LASTS(nanosleep(&time, NULL));
    LASTS(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
    LASTS(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0));
    LASTS(epoll_wait(events, &event, 1, 400));
    LASTS(epoll_pwait(events, &event, 1, 400, &with_it));
    LASTS(select(0, NULL, NULL, NULL, &half));
    LASTS(ppoll(NULL, 0, &left, &with_it));
    LASTS(sigtimedwait(&usr1, NULL, &time));
    close(events);
}

/* So that the runtime has rewritten the sites. */
static void use_often(void) {
    struct timespec time = {0, 0};
    struct timeval none = {0, 0};
    struct epoll_event event;
    int word = 0, events = epoll_create1(0);
    for (int i = 0; i < 50; i++) {
        poll(NULL, 0, 0);
        nanosleep(&time, NULL);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        syscall(SYS_futex, &word, FUTEX_WAKE, 0, NULL, NULL, 0);
        epoll_wait(events, &event, 1, 0);
        select(0, NULL, NULL, NULL, &none);
    }
    close(events);
}

static void on_signal(int number) { say("handler of %d", number); }

int main(void) {
    pipe(ends);
    use_often();
    say("ignored");
    signal(SIGSYS, SIG_IGN);
    calls();
    say("blocked");
    sigset_t only, pending;
    sigemptyset(&only);
    sigaddset(&only, SIGSYS);
    sigprocmask(SIG_BLOCK, &only, NULL);
    signal(SIGSYS, on_signal);
    calls();
    sigpending(&pending);
    IS(sigismember(&pending, SIGSYS));
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    say("let in");
    pid_t child = sender(1);
    RESULT(poll(NULL, 0, 5000));
    while (waitpid(child, NULL, 0) == -1)
        ;
    sigprocmask(SIG_BLOCK, &only, NULL);
    child = sender(1);
    RESULT(sigtimedwait(&only, NULL, &(struct timespec){5, 0}));
    while (waitpid(child, NULL, 0) == -1)
        ;
    return 0;
}
