/*
 * sigaltstack, row 525.
 */
#include "transcript.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static char *stack;
enum { SIZE = 64 << 10 };
static const int size = SIZE;
static sigjmp_buf back;

static void print_stack(const char *what) {
    stack_t now;
    sigaltstack(NULL, &now);
    say("%s: flags %#x, size %d, %s", what, now.ss_flags, (int)now.ss_size,
        now.ss_sp == stack  ? "ours"
        : now.ss_sp == NULL ? "none"
                            : "other");
}
static int on_it(void) {
    char local;
    return &local >= stack && &local < stack + size;
}
static void handler(int number, siginfo_t *info, void *context) {
    (void)info;
    ucontext_t *u = context;
    say("handler of %s on the alternate stack: %s", sigabbrev_np(number), on_it() ? "yes" : "no");
    print_stack("inside");
    say("in the frame: flags %#x, size %d, %s", u->uc_stack.ss_flags, (int)u->uc_stack.ss_size,
        u->uc_stack.ss_sp == stack ? "ours" : "other");
    /* Kernels before 6.12 and after it restore what was changed here in another order. */
    if (u->uc_stack.ss_flags & SS_AUTODISARM)
        return;
    stack_t other = {.ss_sp = stack, .ss_size = size};
    RESULT(sigaltstack(&other, NULL));
    other.ss_flags = SS_DISABLE;
    RESULT(sigaltstack(&other, NULL));
    if (number == SIGUSR1)
        raise(SIGUSR2);
}
static void overflowed(int number, siginfo_t *info, void *context) {
    (void)context;
    say("%s, code %d, on the alternate stack: %s", sigabbrev_np(number), info->si_code,
        on_it() ? "yes" : "no");
    siglongjmp(back, 1);
}
static void handle(int number, void (*with)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = with, .sa_flags = SA_SIGINFO | flags};
    sigaction(number, &action, NULL);
}
__attribute__((noinline)) static int deep(int level) {
    volatile char room[1024];
    room[0] = level;
    return level < 0 ? 0 : deep(level + 1) + room[0];
}

int main(void) {
    stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    print_stack("at first");
    stack_t one = {.ss_sp = stack, .ss_size = SIZE}, old;
    RESULT(sigaltstack(&one, &old));
    VALUE(old.ss_flags);
    print_stack("set");
    one.ss_size = 2047;
    RESULT(sigaltstack(&one, NULL));
    one.ss_size = 0;
    RESULT(sigaltstack(&one, NULL));
    one = (stack_t){.ss_sp = stack, .ss_size = SIZE, .ss_flags = 4};
    RESULT(sigaltstack(&one, NULL));
    one.ss_flags = SS_ONSTACK;
    RESULT(sigaltstack(&one, NULL));
    print_stack("with SS_ONSTACK");
    RESULT(sigaltstack((stack_t *)8, NULL));
    RESULT(sigaltstack(NULL, (stack_t *)8));

    handle(SIGUSR1, handler, SA_ONSTACK);
    handle(SIGUSR2, handler, SA_ONSTACK);
    raise(SIGUSR1);
    print_stack("afterwards");
    handle(SIGUSR1, handler, 0);
    handle(SIGUSR2, handler, 0);
    raise(SIGUSR1);
    /* The handler without SA_ONSTACK switched it off. */
    print_stack("afterwards");

    say("SS_AUTODISARM");
    one = (stack_t){.ss_sp = stack, .ss_size = SIZE, .ss_flags = SS_AUTODISARM};
    RESULT(sigaltstack(&one, NULL));
    print_stack("set");
    handle(SIGUSR2, handler, SA_ONSTACK);
    raise(SIGUSR2);
    print_stack("afterwards");

    say("the stack overflows");
    one = (stack_t){.ss_sp = stack, .ss_size = SIZE};
    sigaltstack(&one, NULL);
    handle(SIGSEGV, overflowed, SA_ONSTACK);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            deep(0);
    print_stack("afterwards");
    one.ss_flags = SS_DISABLE;
    RESULT(sigaltstack(&one, &old));
    say("was: flags %#x size %d", old.ss_flags, (int)old.ss_size);
    print_stack("off");
    pid_t child = fork();
    if (child == 0)
        deep(0);
    ended("without one", child);
    return 0;
}
