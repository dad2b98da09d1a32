/*
 * The alternate stack in a signal's frame: a handler changes it, and the return from the handler takes it, or
 * not.
 */
#include "transcript.h"
#include <ucontext.h>

static char first[65536], second[65536];
static int mode;

static void handler(int number, siginfo_t *info, void *context) {
    stack_t *stack = &((ucontext_t *)context)->uc_stack;
    (void)number, (void)info;
    switch (mode) {
    case 1:
        *stack = (stack_t){first, 0, sizeof first};
        break;
    case 2:
        stack->ss_flags = SS_DISABLE;
        break;
    case 3:
        *stack = (stack_t){second, 0, 30000};
        break;
    case 4:
        stack->ss_size = 10;
        break;
    case 5:
        *stack = (stack_t){second, 77, 30000};
        break;
    case 6:
        *stack = (stack_t){second, (int)(1u << 31), 40000}; /* SS_AUTODISARM */
        break;
    default:
        break;
    }
}

static void show(const char *what) {
    stack_t now;
    sigaltstack(NULL, &now);
    say("%s, %d: flags %#x, %s, size %d", what, mode, now.ss_flags,
        now.ss_sp == first    ? "first"
        : now.ss_sp == second ? "second"
                              : "none",
        (int)now.ss_size);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    for (int round = 0; round < 2; round++)
        for (mode = 0; mode < 7; mode++) {
            raise(round ? SIGUSR2 : SIGUSR1);
            show(round ? "on the alternate stack" : "on the program's");
        }
    return 0;
}
