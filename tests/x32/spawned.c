/*
 * built: static, dynamic
 *
 * A child that shares the memory has handlers of its own: what it resets stays set for its parent.
 */
#include "transcript.h"
#include <spawn.h>

extern char **environ;
static volatile int handled;
static void handler(int number) {
    (void)number;
    handled++;
}

int main(int count, char **words) {
    if (count > 1)
        return 5;
    signal(SIGUSR1, handler);
    signal(SIGUSR2, SIG_IGN);
    RESULT(raise(SIGUSR1));
    char *again[] = {words[0], "again", NULL};
    posix_spawnattr_t attributes;
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t child;
    NUMBER(posix_spawn(&child, words[0], NULL, &attributes, again, environ));
    ended("spawned", child);
    RESULT(raise(SIGUSR1));
    RESULT(raise(SIGUSR2));
    VALUE(handled);
    child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN);
        _exit(0);
    }
    ended("vfork", child);
    RESULT(raise(SIGUSR1));
    VALUE(handled);
    return 0;
}
