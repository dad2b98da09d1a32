/*
 * built: static, dynamic
 *
 * Masks, with SIGSYS in them above all: it is a signal like any other, to block, wait for, ignore and handle.
 */
#include "transcript.h"
#include <poll.h>
#include <time.h>

static volatile int handled;
static siginfo_t last;
static void handler(int number, siginfo_t *info, void *context) {
    (void)context;
    last = *info;
    handled += number;
    /* Calls work with every signal blocked. */
    if (getppid() <= 0 || access("/", F_OK) != 0)
        say("calls fail in the handler");
}
static void print_mask(const char *what) {
    unsigned long long raw = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &raw, 8);
    say("%s: %#llx", what, raw);
}
static void in_child(const char *what, void (*act)(void)) {
    pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    ended(what, child);
}
static void by_default(void) { raise(SIGSYS); }
static void ignored(void) {
    signal(SIGSYS, SIG_IGN);
    raise(SIGSYS);
    say("still there");
}
static void blocked_then_not(void) {
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGSYS);
    sigset_t pending;
    sigpending(&pending);
    say("pending: %d", sigismember(&pending, SIGSYS));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    say("not reached");
}

int main(void) {
    print_mask("at first");
    sigset_t all, none, old, only;
    sigfillset(&all);
    sigemptyset(&none);
    sigemptyset(&only);
    sigaddset(&only, SIGSYS);
    unsigned long long raw = ~0ULL;
    RESULT(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &raw, NULL, 8));
    print_mask("everything");
    raw = 1ULL << (SIGSYS - 1) | 1;
    RESULT(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &raw, NULL, 8));
    print_mask("without SYS and HUP");
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raw, &raw, 8));
    HEX(raw);
    RESULT(syscall(SYS_rt_sigprocmask, 9, &raw, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raw, NULL, 4));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8));
    RESULT(syscall(SYS_rt_sigprocmask, 9, NULL, &raw, 8));
    RESULT(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, (void *)8, 8));
    print_mask("after a bad pointer for the old one");
    sigprocmask(SIG_SETMASK, &none, NULL);

    say("SIGSYS");
    in_child("by default", by_default);
    in_child("ignored", ignored);
    in_child("blocked, then not", blocked_then_not);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;
    action.sa_mask = all;
    RESULT(sigaction(SIGSYS, NULL, &before));
    IS(before.sa_handler == SIG_DFL);
    RESULT(sigaction(SIGSYS, &action, NULL));
    RESULT(sigaction(SIGSYS, NULL, &before));
    IS(before.sa_sigaction == handler && sigismember(&before.sa_mask, SIGSYS) == 1);
    raise(SIGSYS);
    say("handled %d, code %d", handled, last.si_code);
    sigqueue(getpid(), SIGSYS, (union sigval){.sival_int = 66});
    say("handled %d, code %d value %d", handled, last.si_code, last.si_value.sival_int);
    sigprocmask(SIG_BLOCK, &only, NULL);
    raise(SIGSYS);
    VALUE(handled);
    struct timespec second = {1, 0};
    RESULT(sigtimedwait(&only, NULL, &second));
    raise(SIGSYS);
    RESULT(ppoll(NULL, 0, &second, &none));
    VALUE(handled);
    raise(SIGSYS);
    RESULT(sigsuspend(&none));
    VALUE(handled);
    sigprocmask(SIG_BLOCK, NULL, &old);
    IS(sigismember(&old, SIGSYS));

    say("everything blocked");
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; i < 100; i++)
        if (getppid() <= 0 || syscall(0x40000000 + 1000) != -1 || errno != ENOSYS)
            say("calls fail");
    struct timespec soon = {0, 10000000};
    RESULT(ppoll(NULL, 0, &soon, &all));
    RESULT(pselect(0, NULL, NULL, NULL, &soon, &all));
    pid_t child = fork();
    if (child == 0) {
        sigset_t now;
        sigprocmask(SIG_BLOCK, NULL, &now);
        _exit(10 + sigismember(&now, SIGSYS) + sigismember(&now, SIGKILL));
    }
    ended("child", child);
    child = vfork();
    if (child == 0) {
        char path[512];
        snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
        raise(SIGSYS);
        execl("/not there", "x", NULL);
        execl(path, "x", "state", NULL);
        _exit(1);
    }
    ended("child", child);
    raise(SIGSYS);
    child = fork();
    if (child == 0) {
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&pending, SIGSYS));
    }
    ended("child of one for whom it waits", child);
    return 0;
}
