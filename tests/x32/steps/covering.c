/*
 * Runs covered.c and steps its first thread, from one breakpoint to the next, until it is about to execute
 * the comparison of which the breakpoint tells; then its second thread is asked to call there, and steps go
 * on when it has. Built for x86-64.
 *
 * covering PROGRAM ARGUMENT...: ends as the program does.
 */
#include "traced.h"

#include <stdlib.h>

/* Hands the second thread its signals (each call of its that is caught is one). Whether `pid` is the first.
 */
static int is_first(pid_t pid, int status) {
    if (pid == child)
        return 1;
    if (WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
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
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        printf("ended by signal %d\n", WTERMSIG(status));
        exit(4);
    }
    return WSTOPSIG(status);
}

static void run_to_breakpoint(void) {
    int signal = 0;
    do
        signal = resume(PTRACE_CONT, signal == SIGTRAP ? 0 : signal);
    while (signal != SIGTRAP || !is_breakpoint());
}

/* An int of the program's. */
static int word(unsigned long address) { return (int)ptrace(PTRACE_PEEKDATA, child, address, 0); }

static void ask(const struct user_regs_struct *told) {
    long value = ptrace(PTRACE_PEEKDATA, child, told->rdi, 0);
    ptrace(PTRACE_POKEDATA, child, told->rdi, (value & ~0xffffffffL) | (long)told->rdx);
    while (word(told->rsi) != (int)told->rdx) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
        if (pid > 0)
            is_first(pid, status);
        else
            usleep(1000);
    }
}

int main(int count, char **words) {
    (void)count;
    start_traced(words + 1, PTRACE_O_TRACECLONE);
    for (;;) {
        struct user_regs_struct told, now;
        int signal = 0, asked = 0;
        run_to_breakpoint();
        ptrace(PTRACE_GETREGS, child, 0, &told);
        do {
            ptrace(PTRACE_GETREGS, child, 0, &now);
            /* Behind the runtime's check of what is there, or where there is none. */
            if (!asked && now.rip == told.rax) {
                asked = 1;
                ask(&told);
            }
            signal = resume(PTRACE_SINGLESTEP, signal == SIGTRAP ? 0 : signal);
        } while (signal != SIGTRAP || !is_breakpoint());
        if (!asked)
            ask(&told);
    }
}
