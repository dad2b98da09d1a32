/*
 * The account's file: what the runtime writes, and crates/x32run reads, whose structures crates/layout
 * generates from this header. A head of one page, then ACCOUNT_CELLS cells, rounded up to whole pages, then
 * ACCOUNT_RECORDS records.
 */
#ifndef X32_ACCOUNT_FILE_H
#define X32_ACCOUNT_FILE_H

#include <stddef.h>
#include <stdint.h>

#define ACCOUNT_MAGIC 0x3174636132337877UL /* "wx32act1" */
#define ACCOUNT_HEAD 4096U
#define ACCOUNT_CELLS 129U
#define ACCOUNT_RECORDS 8192U
#define ACCOUNT_NUMBERS 550 /* the system calls of the table, those beyond it, and 64-bit calls */

struct account_head {
    uint64_t magic;
    uint32_t opened;    /* images of the runtime that opened this file */
    uint32_t announced; /* execs that were to make one, the first not among them */
    uint32_t records;   /* processes, or images of one, that asked for a record: there may be no room */
    uint32_t reserved;
};
_Static_assert(sizeof(struct account_head) == 24 && offsetof(struct account_head, records) == 16, "head");

/* What a thread has counted. The first cell takes what threads that have ended had counted. */
struct __attribute__((aligned(64))) counts {
    uint32_t owner; /* a thread's number; 0: the cell is free */
    uint32_t reserved;
    uint64_t plain;         /* calls made by a stub itself */
    uint64_t signals;       /* signals that were delivered by the runtime */
    uint64_t i386_calls;    /* calls through the i386 entry */
    uint64_t sampled_ticks; /* of the time-stamp counter, in some of the calls that entered without a trap */
    uint64_t samples;       /* so many: one in 16, without those that were interrupted */
    uint64_t signal_ticks;  /* in the delivery of signals */
    uint64_t timed_signals; /* so many of them: those that were not interrupted */
    uint64_t probe_ticks; /* of calls through the i386 entry that do nothing, made after some of the others */
    uint64_t probes;
    uint32_t entered[ACCOUNT_NUMBERS]; /* calls of rewritten sites that enter the runtime, by number */
    uint32_t trapped[ACCOUNT_NUMBERS]; /* calls that trapped */
};
_Static_assert(sizeof(struct counts) == 4480 && offsetof(struct counts, entered) == 80, "counts");

enum account_state {
    ACCOUNT_ALIVE = 1,
    ACCOUNT_ENDED = 2,
    ACCOUNT_REPLACED = 3 /* by another program: execve */
};

/* One image of the runtime in one process. Amounts are bytes. */
struct account_record {
    uint32_t process, state;
    uint64_t resident;    /* the runtime's own at the moment of `peak` */
    uint64_t peak;        /* of the whole process, as getrusage says, when it was last looked at */
    uint64_t peak_before; /* the same, when this image began: that of the images before it */
    uint64_t virtual_;    /* address space of the runtime's own */
    uint64_t minor_faults, major_faults;
    uint64_t load_ns;      /* CPU time up to the program's first instruction */
    uint64_t rewriting_ns; /* CPU time of rewriting sites */
    uint64_t account_ns;   /* CPU time of this account itself */
    uint32_t blind;        /* the pages could not be counted */
    uint32_t forked;       /* a copy of a process, not an image that was loaded */
    uint32_t calls;        /* that entered the runtime; of several threads, about */
    uint32_t rewritings;
    uint32_t reserved[8];
};
_Static_assert(sizeof(struct account_record) == 128 && offsetof(struct account_record, blind) == 80,
               "record");

#endif
