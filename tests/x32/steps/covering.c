/*
 * Runs covered.c and steps its first thread, from one breakpoint to the next, until it is about to execute
 * the comparison of which the breakpoint tells; then its second thread is asked to call there, and steps go
 * on when it has. Built for x86-64.
 *
 * covering PROGRAM ARGUMENT...: ends as the program does.
 */
#include "two_threads.h"

static void run_to_breakpoint(void) {
    int signal = 0;
    do
        signal = resume(PTRACE_CONT, signal == SIGTRAP ? 0 : signal);
    while (signal != SIGTRAP || !is_breakpoint());
}

static void ask(const struct user_regs_struct *request) {
    poke(request->rdi, (int)request->rdx);
    while (word(request->rsi) != (int)request->rdx)
        tend_second();
}

int main(int count, char **words) {
    (void)count;
    start_traced(words + 1, PTRACE_O_TRACECLONE);
    for (;;) {
        int signal = 0, asked = 0;
        run_to_breakpoint();
        const struct user_regs_struct request = registers();
        do {
            /* Behind the runtime's check of what is there, or where there is none. */
            if (!asked && registers().rip == request.rax) {
                asked = 1;
                ask(&request);
            }
            signal = resume(PTRACE_SINGLESTEP, signal == SIGTRAP ? 0 : signal);
        } while (signal != SIGTRAP || !is_breakpoint());
        if (!asked)
            ask(&request);
    }
}
