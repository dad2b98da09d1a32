/* A tracer of a program with two threads: it steps the first, and hands the second its signals. */
#include "traced.h"

static pid_t second;
/* Whether the second thread is to stay stopped when a call of its is caught, and whether it is. */
static int keeps_trap, has_trap;

/* Hands the second thread its signals (each call of its that is caught is one). Whether `pid` is the first.
 */
static int is_first(pid_t pid, int status) {
    if (pid == child)
        return 1;
    second = pid;
    if (WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        if (keeps_trap && signal == SIGSYS) {
            has_trap = 1;
            return 0;
        }
        ptrace(PTRACE_CONT, pid, 0, signal == SIGSTOP || signal == SIGTRAP ? 0 : signal);
    }
    return 0;
}

/* Lets the first thread go on until it stops: by what. */
static int resume(int how, int signal) {
    int status;
    pid_t pid;
    ptrace(how, child, 0, signal);
    do
        pid = waitpid(-1, &status, __WALL);
    while (!is_first(pid, status));
    return stopping_signal(status);
}

/* The second thread gets the signal of the call at which it was kept. */
__attribute__((unused)) static void release_second(void) {
    if (has_trap)
        ptrace(PTRACE_CONT, second, 0, SIGSYS);
    keeps_trap = has_trap = 0;
}

/* One look at the second thread, which runs meanwhile. */
static void tend_second(void) {
    int status;
    pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
    if (pid > 0)
        is_first(pid, status);
    else
        usleep(500);
}

/* An int of the program's, which the tracer may read and write while other threads run. */
static int word(unsigned long address) { return (int)ptrace(PTRACE_PEEKDATA, child, address, 0); }

static void poke(unsigned long address, int value) {
    long before = ptrace(PTRACE_PEEKDATA, child, address, 0);
    ptrace(PTRACE_POKEDATA, child, address, (before & ~0xffffffffL) | (long)(unsigned)value);
}
