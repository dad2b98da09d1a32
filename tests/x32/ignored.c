/*
 * SIGSEGV and SIGBUS that are ignored interrupt nothing when they are sent; addresses that lead nowhere are
 * errors as ever; the program's own fault ends it. SIGSYS restarts what it interrupts.
 */
#include "transcript.h"
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

static int ends[2];
static char *const nowhere = (char *)0x10000;

/* Sends it three times, and then lets the call return. */
static pid_t sender(int signal) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            poll(NULL, 0, 60);
            kill(getppid(), signal);
        }
        poll(NULL, 0, 60);
        write(ends[1], "x", 1);
        _exit(0);
    }
    return child;
}

#define SENT(signal, call)                                                                                   \
    do {                                                                                                     \
        char taken_;                                                                                         \
        pid_t child_ = sender(signal);                                                                       \
        print_result(#call " and " #signal, (call));                                                         \
        while (waitpid(child_, NULL, 0) == -1)                                                               \
            ;                                                                                                \
        struct pollfd left_ = {ends[0], POLLIN, 0};                                                          \
        while (poll(&left_, 1, 0) == 1)                                                                      \
            read(ends[0], &taken_, 1);                                                                       \
    } while (0)

static void faults(int ignored) {
    char byte[2];
    struct pollfd one = {ends[0], POLLIN, 0};
    struct timespec time = {0, 400000000}, left;
    struct iovec vector = {byte, 1};
    signal(SIGSEGV, ignored == SIGSEGV ? SIG_IGN : SIG_DFL);
    signal(SIGBUS, ignored == SIGBUS ? SIG_IGN : SIG_DFL);
    SENT(ignored, read(ends[0], byte, 1));
    SENT(ignored, readv(ends[0], &vector, 1));
    SENT(ignored, poll(&one, 1, 5000));
    SENT(ignored, poll(NULL, 0, 400));
    SENT(ignored, nanosleep(&time, &left));
    SENT(ignored, usleep(400000));
    RESULT(readv(ends[0], (struct iovec *)nowhere, 1));
    RESULT(writev(ends[1], &(struct iovec){nowhere, 1}, 1));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR1, nowhere, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, nowhere, 8));
    struct sigaction now;
    sigaction(ignored, NULL, &now);
    IS(now.sa_handler == SIG_IGN);
}

int main(void) {
    pipe(ends);
    faults(SIGSEGV);
    faults(SIGBUS);
    signal(SIGSEGV, SIG_IGN);
    signal(SIGSYS, SIG_IGN);
    char byte;
    SENT(SIGSYS, read(ends[0], &byte, 1));
    pid_t child = fork();
    if (child == 0)
        return *(volatile char *)nowhere;
    ended("a fault that is ignored", child);
    /* What is ignored stays so in the next program, and no longer when there is a handler again. */
    signal(SIGSEGV, SIG_DFL);
    child = fork();
    if (child == 0) {
        kill(getpid(), SIGSEGV);
        _exit(0);
    }
    ended("not ignored any more", child);
    return 0;
}
