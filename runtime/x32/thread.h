/*
 * What the runtime keeps for each thread of the program. The block lies at the top of the thread's own area,
 * above the stack on which the runtime works; GS points to it.
 */
#ifndef X32_THREAD_H
#define X32_THREAD_H

#include "x32.h"

/* The program's registers at a system call, as entry.S pushes them. */
struct frame {
    u64 r15, r14, r13, r12, rbp, rbx, r9, r8, r10, rdx, rsi, rdi;
    u64 trapped; /* TRAPPED where it came through SIGSYS, not through a stub; TRAPPED_I386 by `int $0x80` */
    u64 rax;     /* the number, then the result */
    u64 rip;     /* where the program goes on */
    u64 flags;
};

/* x32's stack_t */
struct stack32 {
    u32 sp;
    i32 flags;
    u32 size;
};

struct counts;

struct held_signal {
    struct siginfo64 info;
    i32 signal;
};

/* One, after which all others are blocked or put back (signals.c), a SIGSYS in whose handler it came or that
 * waited, and a fault of the frame that a handler returns from; valgrind blocks nothing. */
#define HELD_SIGNALS 8

struct thread {
    struct thread *self;
    u64 program_rsp;
    u64 stack_top;
    u32 pending; /* before it goes back to the program: deliver what is held, and set the mask to held_mask */
    u32 held_count;
    u64 held_mask;
    u64 resume_rip;
    struct counts *counts; /* null where nothing is counted (account.h) */
    u64 trap_mask;         /* the program's, while a call that has trapped is taken from the handler */
    u32 turn;              /* which calls are timed */
    u32 timed;             /* the call that is being made is */
    u32 puts_mask_back;    /* a signal was blocked until the handler it came to ends */
    u64 vdso_stack;        /* where the return address of the last call of the vDSO lies or lay */
    u64 vdso_back;         /* and that address, when a signal waits for the call's end (vdso.h) */
    u64 kernel_ticks;      /* of the call that is timed: not the runtime's */
    struct held_signal held[HELD_SIGNALS];

    struct stack32 alternate; /* the program's own; the kernel has the runtime's */
    u8 sigsys_blocked;        /* as the program sees it; really SIGSYS never is */
    u8 sigsys_waiting;        /* one came while it was blocked, in the program's eyes */
    u8 guards_sigsys; /* its calls are made with SIGSYS really blocked, those of stubs, too (signals.h) */
    u8 is_vfork_child;
    u8 clears_handlers;    /* it was made with CLONE_CLEAR_SIGHAND */
    u8 waits_with_mask;    /* the call that is being made puts wait_mask in force while it waits */
    u8 wait_blocks_sigsys; /* and whether that mask holds SIGSYS, as the program sees it */
    u8 dies_of_next_call;  /* strict seccomp */
    u8 stepping;           /* the program had set the trap flag when it entered the runtime */
    u8 ends;               /* the signal that is its end is on its way */
    u8 is_process;         /* it shares its memory, and is not in the process of who made it */
    u64 wait_mask;
    struct ucontext64 *restores; /* where x32_restore goes on (valgrind) */
    u64 faults_blocked; /* which of SIGSEGV and SIGBUS are blocked: touching a bad address would kill */
    struct siginfo64 sigsys_info;
    u64 i386_rcx, i386_r11; /* the program's, which `int $0x80` keeps */
    u64 handler_stack, handler_stack_size;
    u64 area, area_size;       /* what to unmap when the thread ends; 0 for the first */
    u64 scratch, scratch_size; /* a vfork child's vectors for execve, which its parent frees */
    u32 robust_list;
    u32 id;              /* the kernel's number of it; 0 before the thread that made it has stored it */
    u32 has_left;        /* it has ended, and touches its area no more */
    u32 is_known;        /* the thread that made it touches its block no more */
    u8 is_registered;    /* robust_list is registered with the kernel (robust.h) */
    struct thread *next; /* stub_users.h: all of them, where each was last heard of, and when */
    u64 goes_on_at;
    u32 generation;
    /* What the program asked for, by signal: one table for all threads of a process, and a child that shares
     * its memory but not its handlers (vfork, posix_spawn) has a copy. */
    struct sigaction32 *actions;
    struct thread
        *owner;       /* whose own_actions those are: its area is not used again before they have no user */
    u32 users;        /* of own_actions */
    u32 actions_lock; /* of own_actions, and of what the kernel has for them */
    struct sigaction32 own_actions[SIGNALS + 1];
};

static inline struct thread *this_thread(void) {
    struct thread *thread;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(thread));
    return thread;
}

static inline struct frame *frame_of(struct thread *thread) {
    return (struct frame *)(thread->stack_top - sizeof(struct frame));
}

/* Makes the block of a thread to come; null where there is no memory. */
struct thread *thread_make(void);
void thread_unmake(struct thread *thread);
/* Of a thread that has begun, by the one that made it, which touches its block no more. `id`: its number. */
void thread_made(struct thread *thread, u32 id);
/* The kernel's number of the calling thread. */
u32 thread_own_id(void);
/* The calling thread ends. Its area is kept for the next. */
__attribute__((noreturn)) void thread_end(struct thread *thread, u64 status, u64 number);
/* Whether a program may set the GS base by an instruction (HWCAP2_FSGSBASE): entry.S, too. */
extern u8 x32_has_wrgsbase;
/* Makes the first thread's block and adopts the calling thread. */
int thread_adopt_first(u64 signal_frame_size);
/* What each thread sets in the kernel itself: its handler stack, and which system calls are to be caught.
 * The first does the latter in interception_begin(). */
void thread_settle(struct thread *thread);
/* In a copy of the process, which has the handler stack of the thread that made it. */
void thread_forked(struct thread *thread);
void thread_arm(struct thread *thread);

/* Strict seccomp has been entered, and the thread makes a call. */
__attribute__((noreturn)) void thread_die(struct thread *thread);

void x32_thread_begin(struct frame *frame);
__attribute__((noreturn)) void x32_end_thread(u64 area, u64 size, u64 status, u64 number);
/* The same of a thread whose area is kept: `has_left` is set by its last store. */
__attribute__((noreturn)) void x32_leave_area(u32 *has_left, u64 status, u64 number);
__attribute__((noreturn)) void x32_start(u64 sp, u64 entry);

#endif
