// Processes and threads, and what two processes exchange. All run on the one CPU that the harness pins the
// program to.
#define _GNU_SOURCE
#include "operation.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// At least this long for what takes a part of a millisecond.
enum { LONG_MS = 5 };
// The exit status of a child whose execve failed because the kernel does not start programs of that kind.
enum { NOT_STARTED = 127 };

// Whether the child ended well; otherwise the operation has a fault.
static bool waited(pid_t child) {
    int status;
    if (child < 0)
        return fault = failure("fork"), false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fault = failure("waitpid"), false;
    if (status != 0)
        return fault = WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED
                           ? "the program that it starts cannot be executed on this kernel"
                           : "the program that it started failed",
               false;
    return true;
}

DECLARE(fork);
LOOP(fork) {
    REPEAT {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (!waited(child))
            return;
    }
}
const struct operation operation_fork = {"fork", micro_fork, 1, NULL, NULL, NULL, LONG_MS};

static const char *program;

static const char *prepare_program(void) {
    program = beside("nothing");
    return access(program, X_OK) < 0 ? failure("access") : NULL;
}

DECLARE(exec);
LOOP(exec) {
    REPEAT {
        pid_t child = fork();
        if (child == 0) {
            execve(program, (char *[]){"nothing", NULL}, environ);
            _exit(errno == ENOEXEC ? NOT_STARTED : 1);
        }
        if (!waited(child))
            return;
    }
}
const struct operation operation_exec = {"exec", micro_exec, 1, NULL, prepare_program, NULL, LONG_MS};

// The system's own shell, whatever the ABI: what differs is the process that starts it.
DECLARE(shell);
LOOP(shell) {
    REPEAT {
        pid_t child = fork();
        if (child == 0) {
            execve("/bin/sh", (char *[]){"sh", "-c", ":", NULL}, environ);
            _exit(errno == ENOEXEC ? NOT_STARTED : 1);
        }
        if (!waited(child))
            return;
    }
}
const struct operation operation_shell = {"shell", micro_shell, 1, NULL, NULL, NULL, LONG_MS};

static void *ends_at_once(void *argument) { return argument; }

DECLARE(thread);
LOOP(thread) {
    REPEAT {
        pthread_t thread;
        if ((errno = pthread_create(&thread, NULL, ends_at_once, NULL)) != 0) {
            fault = failure("pthread_create");
            return;
        }
        pthread_join(thread, NULL);
    }
}
const struct operation operation_thread = {"thread", micro_thread, 1, NULL, NULL, NULL, LONG_MS};

// What is written to `there` arrives at the other process, whose answer arrives at `here`.
static int here = -1, there = -1;
static pid_t partner;

static void echo(int from, int to) {
    char byte;
    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
        ;
    _exit(0);
}

static const char *prepare_pipes(void) {
    int out[2], back[2];
    if (pipe(out) < 0 || pipe(back) < 0)
        return failure("pipe");
    partner = fork();
    if (partner < 0)
        return failure("fork");
    if (partner == 0) {
        close(out[1]);
        close(back[0]);
        echo(out[0], back[1]);
    }
    close(out[0]);
    close(back[1]);
    here = back[0], there = out[1];
    return NULL;
}

static const char *prepare_socket(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return failure("socketpair");
    partner = fork();
    if (partner < 0)
        return failure("fork");
    if (partner == 0) {
        close(pair[0]);
        echo(pair[1], pair[1]);
    }
    close(pair[1]);
    here = there = pair[0];
    return NULL;
}

// The other process ends at the end of its file.
static void end_partner(void) {
    close(there);
    if (here != there)
        close(here);
    while (waitpid(partner, NULL, 0) < 0 && errno == EINTR)
        ;
}

static inline bool round_trip(void) {
    char byte = 0;
    if (write(there, &byte, 1) != 1)
        return fault = failure("write"), false;
    ssize_t length = read(here, &byte, 1);
    if (length != 1)
        return fault = length < 0 ? failure("read") : "the other process ended", false;
    return true;
}

#define EXCHANGE(name)                                                                                       \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        REPEAT {                                                                                             \
            if (!round_trip())                                                                               \
                return;                                                                                      \
        }                                                                                                    \
    }

EXCHANGE(pipe)
const struct operation operation_pipe = {"pipe", micro_pipe, 1, NULL, prepare_pipes, end_partner, 0};
EXCHANGE(socket)
const struct operation operation_socket = {"socket", micro_socket, 1, NULL, prepare_socket, end_partner, 0};

// A pipe of one process with itself: what a round trip costs besides its switches.
static const char *prepare_own_pipe(void) {
    int ends[2];
    if (pipe(ends) < 0)
        return failure("pipe");
    here = ends[0], there = ends[1];
    return NULL;
}

static void close_own_pipe(void) {
    close(here);
    close(there);
}

EXCHANGE(own_pipe)
static const struct operation own_pipe = {"own_pipe",       micro_own_pipe, 1, NULL,
                                          prepare_own_pipe, close_own_pipe, 0};

// Two switches in a round trip, each with one write and one read, as lmbench's lat_ctx counts.
EXCHANGE(context_switch)
const struct operation operation_context_switch = {"context_switch", micro_context_switch, 2, &own_pipe,
                                                   prepare_pipes,    end_partner,          0};

enum { BLOCK = 65536 };

static const char *prepare_drain(void) {
    int ends[2];
    if (pipe(ends) < 0)
        return failure("pipe");
    partner = fork();
    if (partner < 0)
        return failure("fork");
    if (partner == 0) {
        static char block[BLOCK];
        close(ends[1]);
        while (read(ends[0], block, BLOCK) > 0)
            ;
        _exit(0);
    }
    close(ends[0]);
    here = there = ends[1];
    return NULL;
}

DECLARE(pipe_bandwidth);
LOOP(pipe_bandwidth) {
    static char block[BLOCK];
    REPEAT {
        if (write(there, block, BLOCK) != BLOCK) {
            fault = failure("write");
            return;
        }
    }
}
const struct operation operation_pipe_bandwidth = {
    "pipe_bandwidth", micro_pipe_bandwidth, BLOCK >> 10, NULL, prepare_drain, end_partner, 0};
