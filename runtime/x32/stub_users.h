/*
 * Which threads may still be in a stub whose site is gone: executing it, in the call that it made, or in the
 * runtime, which then goes back to it. Its place is used again when none is.
 *
 * A thread that has entered the runtime since the site was taken back is out of the stub, since no way leads
 * there any more. So is one that sleeps in a call of another place, which the kernel shows
 * (/proc/PID/task/TID/syscall). The frames of signals, which may be kept for ever, name only places in the
 * program (sites_in_program).
 *
 * All of it with the lock of the sites held (sites_hold).
 */
#ifndef X32_STUB_USERS_H
#define X32_STUB_USERS_H

#include "thread.h"

/* A place that is no longer reached. */
struct left_place {
    u64 low, high;
    u32 trampoline; /* on the way there; or 0 */
    u32 since;      /* the generation from stub_users_leave */
};

/* A thread begins, and will go on at `rip`; or it ends and is in no stub again. */
void stub_users_add(struct thread *thread, u64 rip);
void stub_users_remove(struct thread *thread);
/* A copy of the process has this thread alone. */
void stub_users_forked(struct thread *thread);
int stub_users_are_alone(void);
/* No way leads to some place any more: the number of this moment. */
u32 stub_users_leave(void);
int stub_users_are_out(const struct left_place *place);

/* The thread has entered the runtime and will go back to `rip`. */
void stub_users_entered(struct thread *thread, u64 rip);

/* With the sites held. */
void stub_users_each(void (*visit)(const struct thread *thread));

#endif
