/*
 * built: static, dynamic
 *
 * clone3 with CLONE_CLEAR_SIGHAND, by which glibc 2.38 and later make the children of posix_spawn, system and
 * popen: the child begins without the program's handlers, with memory of its own and with its parent's.
 */
#include "transcript.h"
#include <linux/sched.h>
#include <sys/mman.h>

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif

static volatile int handled;
static char child_stack[65536] __attribute__((aligned(16)));
static char path[512];

static void handler(int number) {
    (void)number;
    handled++;
}

/* In line: the child goes on in its parent's frame, as after vfork. */
static inline __attribute__((always_inline)) long clone3(struct clone_args *arguments) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments)
                     : "rcx", "r11", "memory");
    return result;
}

static void show(const char *what, int number) {
    struct sigaction action;
    sigaction(number, NULL, &action);
    say("%s: handler %s, flags %#x, mask %s", what,
        action.sa_handler == SIG_DFL   ? "default"
        : action.sa_handler == SIG_IGN ? "ignored"
                                       : "set",
        action.sa_flags & ~0x04000000, sigismember(&action.sa_mask, SIGUSR2) ? "holds USR2" : "empty");
}

static void show_all(void) {
    show("USR1", SIGUSR1);
    show("TERM", SIGTERM);
    show("SEGV", SIGSEGV);
    show("BUS", SIGBUS);
    show("SYS", SIGSYS);
    show("RTMIN", SIGRTMIN);
    show("CHLD", SIGCHLD);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    say("HUP blocked: %d, USR1 blocked: %d", sigismember(&mask, SIGHUP), sigismember(&mask, SIGUSR1));
}

/* What a child does, chosen by number. */
static void child_of(int what) {
    switch (what) {
    case 0:
        show_all();
        _exit(0);
    case 1:
        raise(SIGTERM);
        raise(SIGBUS);
        raise(SIGUSR1);
        _exit(1);
    case 2:
        raise(SIGSYS);
        _exit(1);
    case 3:
        raise(SIGSEGV);
        _exit(1);
    case 4:
        *(volatile char *)8 = 1;
        _exit(1);
    case 5:
        execve(path, (char *[]){"x", "state", NULL}, (char *[]){NULL});
        _exit(1);
    default:
        signal(SIGUSR1, handler);
        handled = 0;
        raise(SIGUSR1);
        _exit(handled);
    }
}

static void every_child(const char *how, unsigned long long flags) {
    say("%s", how);
    for (volatile int what = 0; what < 7; what++) {
        struct clone_args arguments = {.flags = CLONE_CLEAR_SIGHAND | flags, .exit_signal = SIGCHLD};
        pid_t child = clone3(&arguments);
        if (child == 0)
            child_of(what);
        ended("child", child);
    }
    show_all();
    handled = 0;
    raise(SIGUSR1), raise(SIGSEGV), raise(SIGSYS);
    VALUE(handled);
}

int main(void) {
    snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NODEFER};
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGSYS, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGBUS, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    every_child("memory of its own", 0);
    every_child("as vfork", CLONE_VM | CLONE_VFORK);

    say("flags that exclude each other");
    struct clone_args both = {.flags = CLONE_CLEAR_SIGHAND | CLONE_VM | CLONE_SIGHAND,
                              .exit_signal = SIGCHLD,
                              .stack = (uintptr_t)child_stack,
                              .stack_size = sizeof child_stack};
    long result = clone3(&both);
    say("CLONE_SIGHAND too: %s", error_name(-result));
    show("USR1", SIGUSR1);
    return 0;
}
