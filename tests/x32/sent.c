/*
 * Signals that are sent: held back by the mask, let in all at once, on a stack that has to grow for them; and
 * what pidfd_send_signal says of itself.
 */
#include "transcript.h"

#define LAST 64

static volatile int caught[LAST + 1];
static siginfo_t received;

static void count(int signal) { caught[signal]++; }

static void receive(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    received = *info;
}

/* Stop signals and SIGCONT take each other back, and glibc keeps two for itself. */
static int left_out(int signal) {
    return signal == SIGKILL || (signal >= SIGCONT && signal <= SIGTTOU) || signal == 32 || signal == 33;
}

static int total(void) {
    int sum = 0;
    for (int signal = 1; signal <= LAST; signal++)
        sum += caught[signal];
    return sum;
}

int main(void) {
    sigset_t all, none, mask, pending;
    sigfillset(&all);
    sigemptyset(&none);
    for (int signal = 1; signal <= LAST; signal++)
        if (!left_out(signal))
            sigaction(signal, &(struct sigaction){.sa_handler = count}, NULL);

    sigprocmask(SIG_SETMASK, &all, NULL);
    int sent = 0;
    for (int signal = 1; signal <= LAST; signal++)
        if (!left_out(signal))
            sent += kill(getpid(), signal) == 0;
    say("sent %d, caught %d", sent, total());
    getppid();
    sigpending(&pending);
    say("pending: SEGV %d BUS %d SYS %d ILL %d USR1 %d", sigismember(&pending, SIGSEGV),
        sigismember(&pending, SIGBUS), sigismember(&pending, SIGSYS), sigismember(&pending, SIGILL),
        sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signal = 1; signal <= LAST; signal++)
        if (!left_out(signal) && caught[signal] != 1)
            say("%d was caught %d times", signal, caught[signal]);
    say("caught %d", total());
    sigprocmask(SIG_SETMASK, NULL, &mask);
    int blocked = 0;
    for (int signal = 1; signal <= LAST; signal++)
        blocked += sigismember(&mask, signal) == 1;
    say("blocked afterwards: %d", blocked);

    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = receive, .sa_flags = SA_SIGINFO}, NULL);
    int file = syscall(SYS_pidfd_open, getpid(), 0);
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGUSR1, info.si_code = SI_QUEUE, info.si_pid = 4711, info.si_value.sival_int = 777;
    RESULT(syscall(SYS_pidfd_send_signal, file, SIGUSR1, &info, 0));
    say("code %d, from %d, with %d", received.si_code, received.si_pid, received.si_value.sival_int);
    return 0;
}
