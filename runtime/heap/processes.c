/* Hooks of the functions that execute programs. If a program has emptied its environment, the hooks add the
 * variables that the dynamic linker and the recorder need. */
#define _GNU_SOURCE
#include "processes.h"
#include "kernel.h"
#include "log_file.h"
#include "real.h"
#include "recorder.h"

#include <stdarg.h>
#include <stdlib.h>

#define VARIABLES 3
#define PRELOAD "LD_PRELOAD="

static const char *const names[VARIABLES] = {PRELOAD, "WIDTHWISE_HEAP_LOG=", "WIDTHWISE_HEAP_STACKS="};
static char values[VARIABLES][4096]; /* NAME=VALUE; LD_PRELOAD with the recorder's own entry only */
static int has_children;

void processes_fork(void) { has_children = 1; }

int processes_is_alone(void) { return !has_children && recorder.process_chunk == 0; }

static int begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static const char *find(char *const *environment, const char *name) {
    for (; environment != NULL && *environment != NULL; environment++) {
        if (begins_with(*environment, name)) {
            return *environment;
        }
    }
    return NULL;
}

/* The recorder's entry of LD_PRELOAD: colons and spaces separate entries (ld.so(8)). */
static void keep_entry(const char *list) {
    const char *at = list + strlen(PRELOAD);
    while (*at != 0) {
        size_t length = strcspn(at, ": ");
        const char *library = "libwidthwise-heap.so";
        size_t ending = strlen(library);
        if (length >= ending && memcmp(at + length - ending, library, ending) == 0 &&
            length + strlen(PRELOAD) < sizeof values[0]) {
            memcpy(values[0], PRELOAD, strlen(PRELOAD));
            memcpy(values[0] + strlen(PRELOAD), at, length);
        }
        at += length + (at[length] != 0);
    }
}

void processes_know_environment(void) {
    for (unsigned i = 0; i < VARIABLES; i++) {
        const char *found = find(environ, names[i]);
        if (found != NULL && i == 0) {
            keep_entry(found);
        } else if (found != NULL) {
            strncpy(values[i], found, sizeof values[i] - 1);
        }
    }
}

static int is_complete(char *const *environment) {
    for (unsigned i = 0; i < VARIABLES; i++) {
        const char *found = find(environment, names[i]);
        const char *entry = values[i] + strlen(names[i]);
        if (values[i][0] != 0 && (found == NULL || (i == 0 && strstr(found, entry) == NULL))) {
            return 0;
        }
    }
    return 1;
}

struct wanted {
    struct stream *stream;
    uint32_t room;
};

static void make_room(void *argument) {
    struct wanted *wanted = argument;
    struct stream *stream = wanted->stream;
    void *memory = log_file_memory(wanted->room, &recorder.process->anonymous);
    if (memory == NULL) {
        return;
    }
    if (stream->environment != NULL) {
        kernel_unmap(stream->environment, stream->environment_room);
    }
    stream->environment = memory;
    stream->environment_room = wanted->room;
}

/* The environment with the missing variables, in memory of the thread's stream: a child of vfork shares that
 * memory with its parent's thread, which waits. */
static char *const *completed(struct stream *stream, char *const *environment) {
    if (is_complete(environment)) {
        return environment;
    }
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL) {
        count++;
    }
    const char *list = find(environment, PRELOAD);
    size_t text = list == NULL ? 0 : strlen(list) + strlen(values[0]) + 2;
    struct wanted wanted = {stream, (uint32_t)((count + VARIABLES + 1) * sizeof(char *) + text)};
    if (wanted.room > stream->environment_room) {
        recorder_aside(make_room, &wanted);
        if (wanted.room > stream->environment_room) {
            return environment;
        }
    }
    char **made = stream->environment, *joined = (char *)(made + count + VARIABLES + 1);
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (environment[i] == list && values[0][0] != 0 &&
            strstr(list, values[0] + strlen(PRELOAD)) == NULL) {
            strcpy(joined, values[0]);
            strcat(joined, ":");
            strcat(joined, list + strlen(PRELOAD));
            made[length++] = joined;
        } else {
            made[length++] = environment[i];
        }
    }
    for (unsigned i = 0; i < VARIABLES; i++) {
        if (values[i][0] != 0 && find(environment, names[i]) == NULL) {
            made[length++] = values[i];
        }
    }
    made[length] = NULL;
    return made;
}

/* `process`: 0 where it is not known. */
static void write_execution(uint64_t process, enum log_exec state, const char *path, uintptr_t entered) {
    int error = errno;
    struct stream *stream = recorder_enter(entered);
    has_children = 1;
    if (stream != NULL) {
        uint64_t numbers[2] = {process, state};
        recorder_write_text(stream, LOG_EXEC, 2, numbers, path != NULL ? path : "");
        recorder_leave(stream);
    }
    errno = error;
}

static char *const *prepared(char *const *environment, uintptr_t entered) {
    int error = errno;
    struct stream *stream = recorder_enter(entered);
    if (stream != NULL) {
        environment = completed(stream, environment);
        recorder_leave(stream);
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
    has_children = 1;
    if (command != NULL && !is_complete(environ)) {
        write_execution(0, LOG_STARTED, command, ENTERED);
    }
    return REAL(system)(command);
}

/* _exit runs no destructor. Without these hooks the log would look as if a signal had killed the process. */
void HOOK(_exit)(int status) {
    if (real_ready()) {
        recorder_ends();
        REAL(_exit)(status);
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

void HOOK(_Exit)(int status) {
    if (real_ready()) {
        recorder_ends();
        REAL(_Exit)(status);
    }
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

FILE *HOOK(popen)(const char *command, const char *type) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOSYS;
        return NULL;
    }
    has_children = 1;
    if (!is_complete(environ)) {
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
    has_children = 1;
    pid_t child = REAL(_Fork)();
    if (child == 0) {
        recorder_forked();
    }
    return child;
}

#endif

#pragma GCC visibility pop
