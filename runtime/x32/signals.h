/*
 * Signals. The kernel delivers to the runtime, in 64-bit frames on a stack of the runtime's own; the runtime
 * builds the frame that an x32 kernel would have built, where it would have built it, and the kernel's own
 * sigreturn starts the program's handler.
 *
 * Where a signal finds the thread decides:
 *   in the program            it is delivered;
 *   in a stub                 the context is moved to where in the program the stub stands for;
 *   on the way back           (x32_leave) the call is over: the context is the program's after it;
 *   anywhere else in the      it is held, everything else is blocked, and it is delivered on the way back. If
 * the runtime                   call that may block has not been made yet, it is not made: x32_gate answers
 * -RESTART_AFTER_SIGNAL and the program's call is made again after the handler, as a kernel restarts one.
 * Where all are blocked, a fault that was sent is put back into the kernel's queue.
 */
#ifndef X32_SIGNALS_H
#define X32_SIGNALS_H

#include "siginfo.h"
#include "thread.h"
#include "x32.h"

/* Of x32_gate: the call was not made, since a signal came first. */
#define RESTART_AFTER_SIGNAL 512

void signals_begin(void);
/* Gives a child to come this thread's handlers, or a copy of them. */
void signals_share_actions(struct thread *child, int share);
/* Around a fork, whose child has the table and the kernel's actions as they are then. */
void signals_hold_actions(void);
void signals_let_actions_go(void);
/* In a child that began without: another thread may have held them, and is not there. */
void signals_forget_holder(void);
/* In a child that began with CLONE_CLEAR_SIGHAND: the program's handlers are gone, the runtime's are set
 * again. */
void signals_after_clearing(void);
/* Before execve of what will not be x32run: what the program ignores, the next program ignores. Undone by
 * begin. */
void signals_before_exec(void);
void signals_after_failed_exec(void);

/* Whether SIGSEGV or SIGBUS is blocked or ignored: the kernel ends the process at such a fault, wherever it
 * is. */
static inline int signals_faults_kill(const struct thread *thread) {
    return thread->faults_blocked || thread->actions[SIGSEGV].handler == SIG_IGN ||
           thread->actions[SIGBUS].handler == SIG_IGN;
}

/* SIGSYS has to reach the runtime, so the kernel neither ignores nor blocks it for the program. Where the
 * program does, it must not interrupt a call: the calls of a thread that guards are made with SIGSYS really
 * blocked, and those of its stubs trap. It costs every call some 2 microseconds, so a thread guards when
 * SIGSYS is ignored, or blocked among few others (not with all, as many threads block them), or was sent. */
static inline int signals_keeps_sigsys_out(const struct thread *thread) {
    return (thread->waits_with_mask ? thread->wait_blocks_sigsys : thread->sigsys_blocked) ||
           thread->actions[SIGSYS].handler == SIG_IGN;
}
void signals_guard_sigsys(struct thread *thread, int guards);

/* The mask as the kernel may have it: without SIGSYS. Notes in the thread what the program believes. */
u64 signals_note_mask(struct thread *thread, u64 mask);
/* The program's mask, of the kernel's. */
u64 signals_program_mask(const struct thread *thread, u64 kernel_mask);
/* Blocks everything until the program is entered again, where the mask becomes the one that was. */
void signals_block_until_leaving(struct thread *thread);
/* Then lets those in that neither the program nor the runtime has a handler for. */
void signals_let_defaults_in(const struct thread *thread);
/* Before a wait that lets SIGSYS in: whether one waited. It is delivered with the mask of the wait, on the
 * way back.
 */
int signals_hold_waiting_sigsys(struct thread *thread);
/* After a change of the mask: a SIGSYS that waited and no longer has to. */
void signals_release_sigsys(struct thread *thread);

long call_rt_sigaction(struct frame *frame);
long call_rt_sigreturn(struct frame *frame);
long call_rt_sigprocmask(struct frame *frame);
long call_rt_sigpending(struct frame *frame);
long call_rt_sigtimedwait(struct frame *frame);
long call_kill(struct frame *frame);
long call_rt_sigqueueinfo(struct frame *frame);
long call_rt_tgsigqueueinfo(struct frame *frame);
long call_pidfd_send_signal(struct frame *frame);
long call_sigaltstack(struct frame *frame);

/* For the calling thread's own reading of the program's memory: SIGSEGV and SIGBUS are let in. The mask
 * before, if one of them was blocked; else 0. */
u64 signals_let_faults_in(struct thread *thread);
void signals_put_faults_back(struct thread *thread, u64 mask);

#endif
