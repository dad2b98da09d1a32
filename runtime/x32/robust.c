#include "robust.h"
#include "calls.h"
#include "code_writes.h"
#include "signals.h"
#include "sites.h"
#include "space.h"
#include "stub_users.h"
#include "user_memory.h"

#define I386_SET_ROBUST_LIST 311
#define I386_GET_ROBUST_LIST 312
#define ROBUST_LIST_SIZE 12

/* include/uapi/linux/futex.h */
#define FUTEX_WAITERS 0x80000000U
#define FUTEX_OWNER_DIED 0x40000000U
#define FUTEX_TID_MASK 0x3fffffffU
#define ROBUST_LIST_LIMIT 2048
#define FUTEX_WAKE_SHARED 1

struct robust_head32 {
    u32 first; /* bit 0 of each pointer: a mutex with priority inheritance */
    i32 futex_offset;
    u32 pending; /* being taken or given up */
};

enum exchanged { EXCHANGED, CHANGED, UNREACHABLE };
long x32_exchange(u32 *at, u32 expected, u32 wanted);

static int other_processes; /* the memory has had some */

void robust_memory_has_processes(void) { other_processes = 1; }

static void wake_one(u64 futex) { KERNEL_3(__NR_futex, futex, FUTEX_WAKE_SHARED, 1); }

/* Whether a process that an execve leaves alive can wait for it. Threads of this one do not outlive it. */
static int outlives_exec(u64 futex) {
    int is_shared;
    space_shared_until(futex, futex + sizeof(u32), &is_shared);
    return is_shared || other_processes;
}

static void note(struct released *released, u64 futex, u32 was, u32 is) {
    if (released != NULL && released->count < RELEASED_MOST) {
        released->at[released->count++] = (struct released_mutex){(u32)futex, was, is};
    }
}

/* handle_futex_death(), kernel/futex/core.c: 0 where the walk ends. */
static int leave(u64 futex, u32 owner, int inherits, int is_pending, struct released *released) {
    u32 value, left = 0;
    long done = CHANGED;
    if (futex % 4 != 0) {
        return 0;
    }
    if (released != NULL && !outlives_exec(futex)) {
        return 1;
    }
    while (done == CHANGED) {
        if (READ_USER(value, futex) < 0) {
            return 0;
        }
        if (is_pending && !inherits && (value & FUTEX_TID_MASK) == 0) {
            wake_one(futex);
            return 1;
        }
        if ((value & FUTEX_TID_MASK) != owner) {
            return 1;
        }
        left = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
        done = x32_exchange((u32 *)futex, value, left);
    }
    if (done == EXCHANGED) {
        note(released, futex, value, left);
    }
    if (done == EXCHANGED && !inherits && (value & FUTEX_WAITERS)) {
        wake_one(futex);
    }
    return done == EXCHANGED;
}

/* compat_exit_robust_list(). `released`: before an execve, which may fail; or null. */
static void walk_for(const struct thread *thread, struct released *released) {
    struct robust_head32 head;
    u32 at, next;
    if (thread->robust_list == 0 || thread->is_registered || READ_USER(head, thread->robust_list) < 0) {
        return;
    }
    u32 pending = head.pending & ~1U;
    at = head.first;
    for (int i = 0; i < ROBUST_LIST_LIMIT && (at & ~1U) != thread->robust_list; i++, at = next) {
        int has_next = READ_USER(next, at & ~1U) == 0;
        u64 futex = (u32)((at & ~1U) + (u32)head.futex_offset);
        if ((at & ~1U) != pending && !leave(futex, thread->id, at & 1, 0, released)) {
            return;
        }
        if (!has_next) {
            return;
        }
    }
    if (pending != 0) {
        leave((u32)(pending + (u32)head.futex_offset), thread->id, head.pending & 1, 1, released);
    }
}

static void walk(const struct thread *thread) { walk_for(thread, NULL); }

/* The memory has one user: no other thread, and no other process through a shared mapping. */
static int is_alone(void) { return !x32_several_threads && !space_is_shared(); }

/* Whatever signal comes meanwhile is held, and the call is made: it cannot block. */
static void register_list(struct thread *thread) {
    long result = -RESTART_AFTER_SIGNAL;
    while (result == -RESTART_AFTER_SIGNAL && i386_entry_is_there()) {
        result = FOR_PROGRAM(
            x32_i386_at_once(I386_SET_ROBUST_LIST, thread->robust_list, ROBUST_LIST_SIZE, 0, 0, 0, 0));
    }
    thread->is_registered = result == 0;
    if (thread->counts != NULL && thread->is_registered) {
        account_i386(thread->counts);
    }
}

void robust_not_alone(void) {
    struct thread *thread = this_thread();
    if (thread->robust_list != 0 && !thread->is_registered) {
        register_list(thread);
    }
}

int robust_releases(const struct thread *thread) {
    return thread->robust_list != 0 && !thread->is_registered && !is_alone();
}

void robust_thread_ends(struct thread *thread) {
    if (robust_releases(thread)) {
        thread_own_id();
        signals_let_faults_in(thread);
        walk(thread);
    }
}

void robust_before_exec(struct thread *thread, struct released *released) {
    released->count = 0;
    if (robust_releases(thread)) {
        thread_own_id();
        u64 mask = signals_let_faults_in(thread);
        walk_for(thread, released);
        signals_put_faults_back(thread, mask);
    }
}

void robust_after_failed_exec(struct thread *thread, const struct released *released) {
    if (released->count == 0) {
        return;
    }
    u64 mask = signals_let_faults_in(thread);
    for (u32 i = 0; i < released->count; i++) {
        const struct released_mutex *one = &released->at[i];
        x32_exchange((u32 *)(u64)one->futex, one->is, one->was);
    }
    signals_put_faults_back(thread, mask);
}

/* Others still run, for the moment until the kernel ends them; it would have waited for that. */
void robust_process_ends(void) {
    if (is_alone() || i386_entry_is_there()) {
        return;
    }
    thread_own_id();
    signals_let_faults_in(this_thread());
    sites_hold();
    stub_users_each(walk);
    sites_let_go();
}

long call_set_robust_list(struct frame *frame) {
    if (frame->rsi != ROBUST_LIST_SIZE) {
        return -EINVAL;
    }
    struct thread *thread = this_thread();
    thread->robust_list = (u32)frame->rdi;
    if (thread->is_registered || !is_alone()) {
        register_list(thread);
    }
    return 0;
}

long call_get_robust_list(struct frame *frame) {
    if ((u32)frame->rdi != 0 && (u32)frame->rdi != thread_own_id()) {
        return i386_call(I386_GET_ROBUST_LIST, (u32)frame->rdi, (u32)frame->rsi, (u32)frame->rdx, 0, 0);
    }
    u32 head = this_thread()->robust_list, size = ROBUST_LIST_SIZE;
    if (WRITE_USER((u32)frame->rdx, size) < 0 || WRITE_USER((u32)frame->rsi, head) < 0) {
        return -EFAULT;
    }
    return 0;
}
