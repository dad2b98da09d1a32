/*
 * The runtime's own cost, for those who measure the program: pages, page faults, calls by their way, time.
 *
 * `--account FILE` names a file of ACCOUNT_SIZE zero bytes, which every process of the program maps; without
 * it nothing is counted. What is in it survives a process that is killed. crates/measure/src/run/runtime.rs
 * reads it: the layout here and there must agree.
 */
#ifndef X32_ACCOUNT_H
#define X32_ACCOUNT_H

#include "table.h"
#include "thread.h"

#define ACCOUNT_MAGIC 0x3174636132337877UL /* "wx32act1" */
#define ACCOUNT_HEAD PAGE
#define ACCOUNT_CELLS 129U
#define ACCOUNT_RECORDS 8192U
/* Of numbers beyond the table, and of 64-bit calls. */
#define ACCOUNT_OTHERS TABLE_SIZE
#define ACCOUNT_NUMBERS (TABLE_SIZE + 2)
/* One of so many calls that enter the runtime is timed. */
#define ACCOUNT_SHARE_BITS 4
/* Ticks: a timed stretch that took longer was interrupted. */
#define ACCOUNT_LONGEST 100000UL

struct account_head {
    u64 magic;
    u32 opened;    /* images of the runtime that opened this file */
    u32 announced; /* execs that were to make one, the first not among them */
    u32 records;   /* processes, or images of one, that asked for a record: there may be no room */
};

/* What a thread has counted. The first cell takes what threads that have ended had counted. */
struct __attribute__((aligned(64))) counts {
    u32 owner; /* a thread's number; 0 where it is free */
    u32 reserved;
    u64 plain;         /* calls made by a stub itself */
    u64 signals;       /* signals that were delivered by the runtime */
    u64 i386_calls;    /* calls through the i386 entry */
    u64 sampled_ticks; /* of the time-stamp counter, in calls that entered without a trap: of one in 16, times
                          16 */
    u64 signal_ticks;  /* in the delivery of signals */
    u64 probe_ticks;   /* of calls through the i386 entry that do nothing, made after some of the others */
    u64 probes;
    u32 entered[ACCOUNT_NUMBERS]; /* calls of rewritten sites that enter the runtime, by number */
    u32 trapped[ACCOUNT_NUMBERS]; /* calls that trapped */
};
_Static_assert(sizeof(struct counts) == 4480 && offsetof(struct counts, entered) == 64,
               "crates/measure/src/run/runtime.rs");

enum account_state {
    ACCOUNT_ALIVE = 1,
    ACCOUNT_ENDED = 2,
    ACCOUNT_REPLACED = 3, /* by another program: execve */
};

/* One image of the runtime in one process. Amounts are bytes. */
struct account_record {
    u32 process, state;
    u64 resident;    /* the runtime's own at the moment of `peak` */
    u64 peak;        /* of the whole process, as getrusage reports it, when it was last looked at */
    u64 peak_before; /* the same, when this image began: that of the images before it */
    u64 virtual_;    /* address space of the runtime's own */
    u64 minor_faults, major_faults;
    u64 load_ns;      /* CPU time up to the program's first instruction */
    u64 rewriting_ns; /* CPU time of rewriting sites */
    u64 ticks;        /* of this account itself */
    u32 blind;        /* the pages could not be counted */
    u32 forked;       /* a copy of a process, not an image that was loaded */
    u32 calls;        /* that entered the runtime; of several threads, about */
    u32 rewritings;
    u32 reserved[7];
};
_Static_assert(sizeof(struct account_record) == 128, "crates/measure/src/run/runtime.rs");

#define ACCOUNT_CELLS_SIZE (ACCOUNT_CELLS * sizeof(struct counts))
#define ACCOUNT_SIZE                                                                                         \
    (ACCOUNT_HEAD + ROUND_UP(ACCOUNT_CELLS_SIZE, PAGE) + ACCOUNT_RECORDS * sizeof(struct account_record))

/* Maps the file; where it cannot be had, nothing is counted. `stack_low` to `stack_high` is what the kernel
 * has written to the stack that it gave the runtime, `kernel_vdso` its 64-bit vDSO. */
void account_begin(const char *file, u64 stack_low, u64 stack_high, u64 kernel_vdso, u64 first_faults);
/* At the first instructions, before any data of the runtime's is touched: faults until here. They are those
 * of any program that the kernel starts. */
u64 account_first_faults(void);
/* The program's first instruction is next. */
void account_loaded(void);
/* A fault that a kernel has too, when it loads a program. */
void account_programs_fault(void);
/* A copy of the process is to be made. */
void account_before_fork(void);
/* In a child that is a copy: all faults that it has had are the runtime's, but for these. */
void account_forked(u64 programs_faults);
/* A thread of this process is to begin; and has ended, or was never made. */
void account_thread(struct thread *thread);
void account_thread_ends(struct thread *thread);
/* A thread's area is unmapped. */
void account_area_gone(u64 area);
/* The process ends, or tries to become another program: of the runtime again if `x32`. */
void account_process_ends(void);
void account_before_exec(int x32);
void account_after_failed_exec(int x32);
/* Faults between these two are the runtime's. */
u64 account_faults(void);
void account_own_faults(u64 before);
/* Around a rewriting: its faults and its CPU time, which others may lengthen (a lock, a core that is
 * interrupted).
 */
struct account_stretch {
    u64 faults, time;
};
struct account_stretch account_rewriting(void);
void account_rewritten(struct account_stretch before);

/* A call through the i386 entry was made: what that entry costs differs from moment to moment by more than it
 * does from machine to machine, so that it is measured in the program's own run, once for some 64 such calls.
 */
void account_i386(struct counts *counts);

/* `frame`'s call, from dispatch.c. */
void account_dispatch(struct frame *frame, struct counts *counts, void (*dispatch)(struct frame *));

static inline u64 account_ticks(void) {
    u32 low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (u64)high << 32 | low;
}

/* Around what the kernel does for the program while its call is timed: not the runtime's time. */
static inline u64 account_kernel_begins(void) { return this_thread()->timed ? account_ticks() : 0; }
static inline void account_kernel_ends(u64 began) {
    if (began != 0) {
        this_thread()->kernel_ticks += account_ticks() - began;
    }
}
#define FOR_PROGRAM(call)                                                                                    \
    ({                                                                                                       \
        u64 began_ = account_kernel_begins();                                                                \
        long made_ = (call);                                                                                 \
        account_kernel_ends(began_);                                                                         \
        made_;                                                                                               \
    })

#endif
