/*
 * built: static, dynamic
 * flags: -Wno-clobbered
 *
 * fork, vfork, clone, clone3, posix_spawn, system, popen.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>

static char path[512];
static int shared_value;
static char *plain[] = {"ONE=1", NULL};

static int in_clone(void *argument) {
    shared_value += (int)(uintptr_t)argument;
    return 9;
}
static void *forks(void *nothing) {
    pid_t child = fork();
    if (child == 0) {
        say("in a child of a thread: thread is leader %d", gettid() == getpid());
        _exit(4);
    }
    ended("fork of a thread", child);
    return nothing;
}
static int prepared, parents;
static void prepare(void) { prepared++; }
static void parent(void) { parents += prepared; }
static void *execs(void *nothing) {
    execve(path, (char *[]){"x", "exit", "44", NULL}, plain);
    return nothing;
}

int main(void) {
    snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
    say("vfork");
    volatile int stays = 1;
    pid_t child = vfork();
    if (child == 0) {
        stays = 2;
        _exit(5);
    }
    VALUE(stays);
    ended("vfork", child);
    for (int i = 0; i < 3; i++) {
        child = vfork();
        if (child == 0) {
            execve(path, (char *[]){"x", "exit", "6", NULL}, plain);
            _exit(1);
        }
        ended("vfork and exec", child);
    }
    child = vfork();
    if (child == 0) {
        execve("missing", (char *[]){"x", NULL}, plain);
        _exit(errno == ENOENT ? 77 : 1);
    }
    ended("vfork and no exec", child);

    say("clone");
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    child = clone(in_clone, stack + 65536, CLONE_VM | SIGCHLD, (void *)3);
    ended("clone with memory shared", child);
    VALUE(shared_value);
    child = clone(in_clone, stack + 65536, SIGCHLD, (void *)3);
    ended("clone", child);
    VALUE(shared_value);
    child = clone(in_clone, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)3);
    VALUE(shared_value);
    ended("clone as vfork", child);
    pid_t stored = 0, cleared = 0;
    child = clone(in_clone, stack + 65536, CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
                  (void *)1, &stored, NULL, &cleared);
    IS(stored == child);
    ended("clone", child);
    RESULT(clone(in_clone, stack + 65536, CLONE_SIGHAND | SIGCHLD, NULL));
    RESULT(clone(in_clone, stack + 65536, CLONE_THREAD, NULL));

    say("clone3");
    int file = -1;
    struct clone_args arguments = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&file, .exit_signal = SIGCHLD};
    VALUE(sizeof arguments);
    child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(13);
    IS(file > 2);
    siginfo_t info;
    RESULT(waitid(P_PIDFD, file, &info, WEXITED));
    VALUE(info.si_status);
    RESULT(syscall(SYS_clone3, &arguments, 8));
    RESULT(syscall(SYS_clone3, (void *)8, sizeof arguments));
    arguments.flags = 1ULL << 60;
    RESULT(syscall(SYS_clone3, &arguments, sizeof arguments));

    say("spawning");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 5, "made", O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, 5, 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    posix_spawnattr_setsigmask(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    NUMBER(posix_spawn(&child, path, &actions, &attributes, (char *[]){"x", "state", NULL}, plain));
    ended("posix_spawn", child);
    char text[100] = "";
    int made = open("made", O_RDONLY);
    IS(read(made, text, 99) > 10);
    say("%.20s", text);
    NUMBER(posix_spawn(&child, "missing", NULL, NULL, (char *[]){"x", NULL}, plain));
    NUMBER(posix_spawnp(&child, path, NULL, NULL, (char *[]){"x", "exit", "3", NULL}, plain));
    ended("posix_spawnp", child);

    say("atfork and threads");
    pthread_atfork(prepare, parent, NULL);
    child = fork();
    if (child == 0)
        _exit(0);
    ended("fork", child);
    pthread_t thread;
    pthread_create(&thread, NULL, forks, NULL);
    pthread_join(thread, NULL);
    say("prepared %d, parents %d", prepared, parents);
    child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, execs, NULL);
        for (;;)
            pause();
    }
    ended("exec of a thread", child);
    RESULT(kill(1 << 30, 0));
    RESULT(getpgid(1 << 30));
    IS(getsid(0) == getpgrp());
    child = fork();
    if (child == 0) {
        RESULT(setpgid(0, 0));
        IS(getpgrp() == getpid());
        IS(setsid() == -1);
        _exit(0);
    }
    ended("groups", child);
    int orphan[2];
    pipe(orphan);
    for (int i = 0; i < 200; i++) {
        child = fork();
        if (child == 0)
            _exit(i & 127);
        int status;
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (i & 127))
            say("child %d went wrong", i);
    }
    return 0;
}
