/*
 * The launcher's protocol. crates/layout generates the structures of crates/measure/src/run/launcher.rs from
 * this header.
 *
 * Numbers are little-endian. Two stream sockets connect widthwise and the launcher:
 *
 *  - REQUEST_SOCKET carries requests: a `struct request`, then its strings. Several requests may be queued;
 * the launcher makes their runs one after the other. When a run and all processes that it left behind have
 * ended, the launcher answers with one `struct reply`.
 *  - ORDER_SOCKET carries a `struct order` now and then: it cancels the run in flight, or skips runs that
 * have not begun. The end of file there means that widthwise is gone.
 */
#ifndef WIDTHWISE_LAUNCHER_PROTOCOL_H
#define WIDTHWISE_LAUNCHER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define REQUEST_SOCKET 3
#define ORDER_SOCKET 4
#define MOST_REQUEST_BYTES 4194304 /* of a request with its strings */
#define MOST_STRINGS 65536 /* of a request's strings and the two NULL pointers that end argv and envp */
#define NAMED 6            /* strings before argv */
#define CPU_WORDS 16       /* of 64 CPUs each */

/* Bits of request.flags. */
enum { NO_ASLR = 1, THP_NEVER = 2, EXIT_STOP = 4, FIND_PARENTS = 8 };

/* Values of request.thp. The last two are written to the system's setting. */
enum { THP_KEEP, THP_ALWAYS, THP_MADVISE };

/* The step that failed: reply.failed_step. */
enum step {
    STEP_NONE,
    STEP_CLONE,
    STEP_AFFINITY,
    STEP_DIRECTORY,
    STEP_STDIN,
    STEP_STDOUT,
    STEP_STDERR,
    STEP_PERSONALITY,
    STEP_THP,
    STEP_EXEC,
    STEP_REQUEST,
    STEP_TRACE,
    STEP_SKIPPED /* no step failed: an order skipped the run */
};

struct request {
    uint64_t size;      /* of the whole request, strings included */
    uint64_t number;    /* counts up */
    uint64_t flags;     /* NO_ASLR and the others */
    uint64_t thp;       /* THP_KEEP and the others */
    uint64_t arguments; /* number of strings after the first NAMED: argv */
    uint64_t variables; /* number of strings after those: envp */
    uint64_t
        not_before_ns; /* CLOCK_MONOTONIC: execve waits until then, so that several launchers start as one */
    uint64_t cpus[CPU_WORDS]; /* all zero: the affinity stays as it is */
    /* strings, each with its NUL: file, directory, stdin, stdout, stderr, warmed, argv…, envp… */
};
_Static_assert(sizeof(struct request) == 184 && offsetof(struct request, cpus) == 56, "request");

struct order {
    uint64_t cancel;     /* the run of this number, if it is in flight */
    uint64_t skip_up_to; /* runs up to this number that have not begun */
};
_Static_assert(sizeof(struct order) == 16, "order");

struct reply {
    uint64_t failed_step; /* enum step */
    uint64_t error;       /* errno of that step */
    uint64_t pid;
    uint64_t status;             /* as wait4 gives it */
    uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC: just before execve, just after the end was seen */
    uint64_t user_us, system_us;
    uint64_t minor_faults, major_faults;
    uint64_t voluntary_switches, involuntary_switches;
    uint64_t max_rss_kib;  /* the largest ru_maxrss among the processes reaped */
    uint64_t reaped;       /* processes that the launcher waited for: the program and orphans */
    uint64_t left_over;    /* of these: still running when the program had ended, and killed */
    uint64_t left_over_us; /* their CPU time after the program's end; without a cgroup: all of it */
    uint64_t cancelled;    /* an order ended the run early */
    uint64_t escaped;      /* processes that could not be killed in five seconds */
    uint64_t parents;      /* FIND_PARENTS: of those reaped, the processes that had waited for a child */
    uint64_t exit_max_rss_kib, exit_peak_virtual_kib; /* EXIT_STOP: of the largest process */
    uint64_t exit_max_rss_sum_kib, exit_processes;    /* EXIT_STOP: over all processes */
    /* Of the campaign's cgroup since it was made, where there is one: CPU time, and forks refused. */
    uint64_t group_user_us, group_system_us, refused_forks;
};
_Static_assert(sizeof(struct reply) == 208 && offsetof(struct reply, exit_max_rss_kib) == 152, "reply");

#endif
