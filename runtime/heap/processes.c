/* Hooks of the functions that execute programs: these are recorded too, and each execution is written to the
 * log. */
#define _GNU_SOURCE
#include "environment.h"
#include "kernel.h"
#include "lifecycle.h"
#include "real_allocator.h"
#include "recorder.h"

#include <stdarg.h>
#include <stdlib.h>

/* `process`: 0 where it is not known. */
static void write_execution(uint64_t process, enum log_exec state, const char *path, uintptr_t entered) {
    int error = errno;
    struct stream *stream = lifecycle_enter(entered);
    lifecycle_forks();
    if (stream != NULL) {
        uint64_t numbers[2] = {process, state};
        recorder_write_text(stream, LOG_EXEC, 2, numbers, path != NULL ? path : "");
        lifecycle_leave(stream);
    }
    errno = error;
}

static char *const *prepared(char *const *environment, uintptr_t entered) {
    int error = errno;
    struct stream *stream = lifecycle_enter(entered);
    if (stream != NULL) {
        environment = environment_completed(stream, environment);
        lifecycle_leave(stream);
    }
    errno = error;
    return environment;
}

#define OWN_NUMBER ((uint64_t)syscall(SYS_getpid))

/* Executes: `call` does it with `environment`. */
#define EXECUTE(path, environment, call)                                                                     \
    do {                                                                                                     \
        if (UNLIKELY(!real_ready())) {                                                                       \
            errno = ENOSYS;                                                                                  \
            return -1;                                                                                       \
        }                                                                                                    \
        environment = prepared(environment, ENTERED);                                                        \
        write_execution(OWN_NUMBER, LOG_ABOUT_TO, path, ENTERED);                                            \
        int result = call;                                                                                   \
        write_execution(OWN_NUMBER, LOG_FAILED, path, ENTERED);                                              \
        return result;                                                                                       \
    } while (0)

/* The arguments of execl, execle and execlp as an array on the stack, as in glibc. */
#define GATHER(words, first, last)                                                                           \
    va_list more;                                                                                            \
    size_t count = 1;                                                                                        \
    va_start(more, first);                                                                                   \
    while (va_arg(more, char *) != NULL) {                                                                   \
        count++;                                                                                             \
    }                                                                                                        \
    va_end(more);                                                                                            \
    char *words[count + 1];                                                                                  \
    va_start(more, first);                                                                                   \
    words[0] = (char *)first;                                                                                \
    for (size_t i = 1; i <= count; i++) {                                                                    \
        words[i] = va_arg(more, char *);                                                                     \
    }                                                                                                        \
    last;                                                                                                    \
    va_end(more)

#pragma GCC visibility push(default)

int HOOK(execve)(const char *path, char *const *words, char *const *environment) {
    EXECUTE(path, environment, REAL(execve)(path, words, environment));
}

int HOOK(execvpe)(const char *path, char *const *words, char *const *environment) {
    EXECUTE(path, environment, REAL(execvpe)(path, words, environment));
}

int HOOK(fexecve)(int fd, char *const *words, char *const *environment) {
    EXECUTE("a file of its own", environment, REAL(fexecve)(fd, words, environment));
}

static int spawned(int result, const pid_t *process, const char *path, uintptr_t entered) {
    if (result == 0) {
        write_execution((uint64_t)*process, LOG_STARTED, path, entered);
    }
    return result;
}

int HOOK(posix_spawn)(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const *words, char *const *environment) {
    if (UNLIKELY(!real_ready())) {
        return ENOSYS;
    }
    pid_t own = 0;
    process = process != NULL ? process : &own;
    environment = prepared(environment, ENTERED);
    return spawned(REAL(posix_spawn)(process, path, actions, attributes, words, environment), process, path,
                   ENTERED);
}

int HOOK(posix_spawnp)(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *words, char *const *environment) {
    if (UNLIKELY(!real_ready())) {
        return ENOSYS;
    }
    pid_t own = 0;
    process = process != NULL ? process : &own;
    environment = prepared(environment, ENTERED);
    return spawned(REAL(posix_spawnp)(process, path, actions, attributes, words, environment), process, path,
                   ENTERED);
}

/* system and popen use the environment as it is, and do not return the process number. The log gets the
 * command only if it will not be recorded. */
int HOOK(system)(const char *command) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOSYS;
        return -1;
    }
    lifecycle_forks();
    if (command != NULL && !environment_is_complete(environ)) {
        write_execution(0, LOG_STARTED, command, ENTERED);
    }
    return REAL(system)(command);
}

/* _exit runs no destructor. Without these hooks the log would look as if a signal had killed the process. */
void HOOK(_exit)(int status) {
    if (real_ready()) {
        lifecycle_ends();
        REAL(_exit)(status);
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

void HOOK(_Exit)(int status) {
    if (real_ready()) {
        lifecycle_ends();
        REAL(_Exit)(status);
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

/* glibc ends the process by an _exit of its own, without a hook. */
void HOOK(quick_exit)(int status) {
    if (real_ready()) {
        lifecycle_ends();
        REAL(quick_exit)(status);
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

/* The parent ends in the same way. If there is no child it goes on; the child describes itself. */
int HOOK(daemon)(int keeps_folder, int keeps_files) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOSYS;
        return -1;
    }
    lifecycle_ends();
    int result = REAL(daemon)(keeps_folder, keeps_files);
    int error = errno;
    lifecycle_goes_on();
    errno = error;
    return result;
}

FILE *HOOK(popen)(const char *command, const char *type) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOSYS;
        return NULL;
    }
    lifecycle_forks();
    if (!environment_is_complete(environ)) {
        write_execution(0, LOG_STARTED, command, ENTERED);
    }
    return REAL(popen)(command, type);
}

#ifndef WIDTHWISE_HEAP_LINKED

int execv(const char *path, char *const *words) {
    char *const *environment = environ;
    EXECUTE(path, environment, REAL(execve)(path, words, environment));
}

int execvp(const char *path, char *const *words) {
    char *const *environment = environ;
    EXECUTE(path, environment, REAL(execvpe)(path, words, environment));
}

int execveat(int folder, const char *path, char *const *words, char *const *environment, int flags) {
    if (real_ready() && REAL(execveat) == NULL) {
        environment = prepared(environment, ENTERED);
        return (int)syscall(SYS_execveat, folder, path, words, environment, flags);
    }
    EXECUTE(path, environment, REAL(execveat)(folder, path, words, environment, flags));
}

int execl(const char *path, const char *first, ...) {
    GATHER(words, first, (void)0);
    return execv(path, words);
}

int execlp(const char *path, const char *first, ...) {
    GATHER(words, first, (void)0);
    return execvp(path, words);
}

int execle(const char *path, const char *first, ...) {
    char *const *environment;
    GATHER(words, first, environment = va_arg(more, char *const *));
    EXECUTE(path, environment, REAL(execve)(path, words, environment));
}

pid_t _Fork(void) {
    if (UNLIKELY(!real_ready() || REAL(_Fork) == NULL)) {
        errno = ENOSYS;
        return -1;
    }
    lifecycle_forks();
    pid_t child = REAL(_Fork)();
    if (child == 0) {
        lifecycle_forked();
    }
    return child;
}

#endif

#pragma GCC visibility pop
