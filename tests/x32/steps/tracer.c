/*
 * Runs a program (program.c) and, between each two breakpoints of its, steps one instruction further than the
 * time before, through the site, its trampoline and its stub; there it sends SIGUSR1 and lets it run. Built
 * for x86-64.
 *
 * tracer PROGRAM ARGUMENT...: a line for each kind of call with the number of its instructions, and of those
 * among them that are in a stub.
 */
#include "traced.h"

#define STUBS 0x100400000UL
#define STUBS_END 0x100410000UL

static void run_to_breakpoint(int signal) {
    do
        signal = go_on(PTRACE_CONT, signal == SIGTRAP ? 0 : signal);
    while (signal != SIGTRAP || !is_breakpoint());
}

/* Whether it came to the end, or into the runtime, before so many steps. */
static int step(unsigned long steps, unsigned *in_stub) {
    int signal = 0;
    *in_stub = 0;
    for (unsigned long i = 0; i < steps; i++) {
        do
            signal = go_on(PTRACE_SINGLESTEP, signal == SIGTRAP ? 0 : signal);
        while (signal != SIGTRAP);
        if (is_breakpoint())
            return 1;
        unsigned long rip = registers().rip;
        *in_stub += rip >= STUBS && rip < STUBS_END;
        if (rip >= STUBS_END) {
            run_to_breakpoint(0);
            return 1;
        }
    }
    return 0;
}

int main(int count, char **words) {
    (void)count;
    start_traced(words + 1, 0);
    run_to_breakpoint(0);
    for (;;) {
        struct user_regs_struct at = registers();
        unsigned in_stub;
        int over = step(at.rsi, &in_stub);
        if (!over) {
            run_to_breakpoint(SIGUSR1);
        } else if (at.rsi >= 3) {
            printf("kind %llu: %llu instructions, %u in a stub\n", at.rdi, at.rsi - 1, in_stub);
        }
        at = registers();
        at.rax = !over;
        ptrace(PTRACE_SETREGS, child, 0, &at);
        run_to_breakpoint(0);
    }
}
