/*
 * core
 *
 * rt_sigaction, row 512: what is kept and given back, and what its flags do.
 */
#include "transcript.h"
#include <setjmp.h>

/* The x32 kernel's own structure: three 32-bit words and the mask. */
struct raw {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long long mask;
} __attribute__((packed, aligned(4)));

static volatile int depth, deepest, count, raised;
static void count_one(int number) { count += number > 0; }
static void nested(int number) {
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (raised++ < 3)
        raise(number);
    depth--;
    count++;
}
static void print_blocked(int number) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    char line[200] = "";
    for (int one = 1; one < NSIG; one++)
        if (sigismember(&now, one) == 1 && sigabbrev_np(one))
            strcat(strcat(line, " "), sigabbrev_np(one));
    say("in the handler of %s, blocked:%s", sigabbrev_np(number), line);
}
static void with_info(int number, siginfo_t *info, void *context) {
    say("info: signo %d code %d errno %d, context %s", info->si_signo, info->si_code, info->si_errno,
        context ? "given" : "missing");
    IS(info->si_signo == number);
    IS(info->si_pid == getpid());
    IS(info->si_uid == getuid());
}
static void print_action(const char *what, struct sigaction *action) {
    sigset_t *mask = &action->sa_mask;
    say("%s: %s, flags %#x, mask HUP %d USR2 %d RTMIN %d RTMAX %d KILL %d", what,
        action->sa_handler == SIG_DFL     ? "default"
        : action->sa_handler == SIG_IGN   ? "ignored"
        : action->sa_handler == count_one ? "count_one"
                                          : "other",
        (unsigned)action->sa_flags & ~0x04000000u, sigismember(mask, SIGHUP), sigismember(mask, SIGUSR2),
        sigismember(mask, SIGRTMIN), sigismember(mask, SIGRTMAX), sigismember(mask, SIGKILL));
}

int main(void) {
    struct sigaction old, action = {.sa_handler = count_one, .sa_flags = SA_RESTART};
    RESULT(sigaction(SIGUSR1, NULL, &old));
    print_action("at first", &old);
    sigfillset(&action.sa_mask);
    RESULT(sigaction(SIGUSR1, &action, &old));
    print_action("old", &old);
    action.sa_handler = SIG_IGN;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESETHAND | SA_ONSTACK | SA_NOCLDWAIT | SA_NOCLDSTOP;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGRTMAX);
    sigaddset(&action.sa_mask, SIGUSR2);
    RESULT(sigaction(SIGUSR1, &action, &old));
    print_action("with every signal in the mask", &old);
    RESULT(sigaction(SIGUSR1, NULL, &old));
    print_action("with every flag", &old);
    RESULT(sigaction(SIGKILL, &action, NULL));
    RESULT(sigaction(SIGSTOP, &action, NULL));
    RESULT(sigaction(SIGKILL, NULL, &old));
    RESULT(sigaction(0, &action, NULL));
    RESULT(sigaction(65, &action, NULL));
    RESULT(sigaction(64, &action, NULL));

    say("the raw call");
    struct raw raw, set = {count_one, 0x10000000 | 0x04000000 | 0x800, (void (*)(void))0x12345678, ~0ULL};
    VALUE(sizeof raw);
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, &set, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 8));
    IS(raw.handler == count_one);
    HEX(raw.flags);
    HEX((uintptr_t)raw.restorer);
    HEX(raw.mask);
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 4));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 16));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, (void *)8, NULL, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, (void *)8, 8));
    set.flags = 0xffffffff & ~0x400;
    set.handler = (void (*)(int))1;
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, &set, &raw, 8));
    RESULT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 8));
    HEX(raw.flags);
    IS(raw.handler == SIG_IGN);

    say("flags at work");
    signal(SIGUSR1, count_one);
    raise(SIGUSR1);
    VALUE(count);
    action = (struct sigaction){.sa_handler = nested, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    VALUE(deepest);
    action.sa_flags = 0, deepest = count = raised = 0;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    VALUE(deepest);
    VALUE(count);
    action = (struct sigaction){.sa_handler = count_one, .sa_flags = SA_RESETHAND};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &old);
    print_action("after it was reset", &old);
    action = (struct sigaction){.sa_handler = print_blocked};
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGRTMIN + 3);
    sigaddset(&action.sa_mask, SIGSYS);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    IS(sigismember(&now, SIGSYS));
    action = (struct sigaction){.sa_sigaction = with_info, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    return 0;
}
