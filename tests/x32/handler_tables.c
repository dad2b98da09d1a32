/*
 * Handlers of a process that shares its memory and nothing else with the one that made it: they are those of
 * its threads, also when its first thread has ended.
 */
#include "transcript.h"
#include <sched.h>

enum { STACK = 65536, OTHERS = 12 };

static volatile int has_begun, may_go_on, handled;
static char stacks[3][STACK] __attribute__((aligned(64)));

static void on_signal(int number) { handled += number == SIGUSR1; }

/* A thread of that process: it goes on alone. */
static int second(void *unused) {
    (void)unused;
    has_begun = 1;
    while (!may_go_on)
        syscall(SYS_sched_yield);
    for (int i = 0; i < 3; i++)
        syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGUSR1);
    syscall(SYS_exit_group, handled);
    return 0;
}

static int first(void *unused) {
    (void)unused;
    signal(SIGUSR1, on_signal);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    if (clone(second, stacks[1] + STACK, flags, NULL) < 0)
        syscall(SYS_exit_group, 99);
    syscall(SYS_exit, 0);
    return 0;
}

/* Has handlers of its own, none. */
static int other(void *unused) {
    (void)unused;
    signal(SIGUSR1, SIG_DFL);
    return 0;
}

static int is_zombie(pid_t process) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    char *end = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    return end && end[2] == 'Z';
}

int main(void) {
    pid_t process = clone(first, stacks[0] + STACK, CLONE_VM | SIGCHLD, NULL);
    SUCCESS(process);
    while (!has_begun || !is_zombie(process))
        usleep(1000);
    for (int i = 0; i < OTHERS; i++) {
        int status = -1;
        pid_t child = clone(other, stacks[2] + STACK, CLONE_VM | SIGCHLD, NULL);
        if (waitpid(child, &status, 0) != child || status != 0)
            say("child %d: %#x", i, status);
    }
    may_go_on = 1;
    ended("the process", process);
    VALUE(handled);
    struct sigaction mine;
    sigaction(SIGUSR1, NULL, &mine);
    IS(mine.sa_handler == SIG_DFL);
    return 0;
}
