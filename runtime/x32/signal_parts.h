/*
 * What the files of the runtime's signals share:
 *   signal_actions.c   what the program asked for, and what the kernel has instead
 *   signal_masks.c     what is blocked, SIGSYS and faults above all
 *   signal_frames.c    the frames of the program's handlers: built, and returned from
 *   signals.c          where a signal finds the thread
 *   signal_sending.c   signals that the program sends, or that are passed on to another thread
 */
#ifndef X32_SIGNAL_PARTS_H
#define X32_SIGNAL_PARTS_H

#include "lock.h"
#include "signals.h"

#define FAULTS (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS))
#define NEVER_BLOCKED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

/* What the program has asked for. The kernel has the runtime's handler for every signal that has one here,
 * and for the three that the runtime itself needs. */
static inline struct sigaction32 *action_of(i32 signal) { return &this_thread()->actions[signal]; }

/* The table and the kernel's actions change together. No signal handler of ours runs the program's, or takes
 * this lock, before the runtime is left, so none need be blocked. A child in the same memory that has a table
 * of its own has a lock of its own. */
static inline void actions_hold(void) { lock_take(&this_thread()->owner->actions_lock); }
static inline void actions_let_go(void) { lock_release(&this_thread()->owner->actions_lock); }

/* Faults and trapped calls come to the runtime first, whatever the program asked for. */
static inline int is_ours(i32 signal) { return signal == SIGSEGV || signal == SIGBUS || signal == SIGSYS; }

/* Whether the kernel has the runtime's handler for it. A fault that is ignored ends the process, and one that
 * is sent is not to interrupt a call: so it is the kernel that ignores it. SIGSYS has to come. */
static inline int has_kernel_handler(i32 signal, const struct sigaction32 *action) {
    return action->handler > SIG_IGN || signal == SIGSYS || (is_ours(signal) && action->handler == SIG_DFL);
}

/* signal_actions.c */
long signals_set_kernel_action(i32 signal, const struct sigaction32 *action);

/* signal_masks.c */
void signals_add_held(struct thread *thread, i32 signal, const struct siginfo64 *info);
int signals_names_sigsys(u64 mask);
void signals_queue_waiting_sigsys(struct thread *thread);
void signals_unblock_sigsys(struct thread *thread);

/* signal_frames.c. Where the context goes on: behind the comparison of a site. */
void signals_go_on(struct sigcontext *registers);
/* The process ends by this signal when the context is in force. */
void signals_die_of(i32 signal, const struct siginfo64 *info, struct ucontext64 *context);
/* Whether the context is now that of a handler of the program's, about to begin. `mask_now`: what is in force
 * while the frame is built. */
int signals_deliver(i32 signal, const struct siginfo64 *info, struct ucontext64 *context, u64 mask_now);
/* The same of all that is held, in the order in which it came; nothing is held then. */
int signals_deliver_held(struct thread *thread, struct ucontext64 *context);
/* The program's registers after the call of this frame. */
void signals_take_from_frame(struct sigcontext *registers, const struct thread *thread,
                             const struct frame *frame);

/* signal_sending.c. A trap lets the thread find what waits for the process, before the thread that the kernel
 * has chosen for it has run. Passes such a signal on, all being blocked; whether another thread took it. */
int signals_pass_on(i32 signal, struct siginfo64 *info);
/* Gives a signal that was passed on what it came with. */
void signals_as_sent(struct siginfo64 *info);

/* signals.c */
/* Puts it back into the kernel's queue, for this thread. */
void signals_send_again(i32 signal, const struct siginfo64 *info);
void x32_on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context);

#endif
