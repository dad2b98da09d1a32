/*
 * The runtime's own cost, for those who measure the program: pages, page faults, calls by their way, time.
 *
 * `--account FILE` names a file of ACCOUNT_SIZE zero bytes, which every process of the program maps; without
 * it nothing is counted. What is in it survives a process that is killed. account_file.h has its layout.
 */
#ifndef X32_ACCOUNT_H
#define X32_ACCOUNT_H

#include "account_file.h"
#include "table.h"
#include "thread.h"

_Static_assert(ACCOUNT_HEAD == PAGE, "what follows the head begins at a page");
_Static_assert(ACCOUNT_NUMBERS == TABLE_SIZE + 2, "the table has grown");
/* Of numbers beyond the table, and of 64-bit calls. */
#define ACCOUNT_OTHERS TABLE_SIZE
/* One of so many calls that enter the runtime is timed. */
#define ACCOUNT_SHARE_BITS 4
/* Ticks: a timed stretch that took longer was interrupted, and is left out. */
#define ACCOUNT_LONGEST 100000UL

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
