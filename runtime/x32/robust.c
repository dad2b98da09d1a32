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

static void wake_one(u64 futex) { KERNEL_3(__NR_futex, futex, FUTEX_WAKE_SHARED, 1); }

/* handle_futex_death(), kernel/futex/core.c: 0 where the walk ends. */
static int leave(u64 futex, u32 owner, int inherits, int is_pending) {
    u32 value;
    long done = CHANGED;
    if (futex % 4 != 0) {
        return 0;
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
        done = x32_exchange((u32 *)futex, value, (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
    }
    if (done == EXCHANGED && !inherits && (value & FUTEX_WAITERS)) {
        wake_one(futex);
    }
    return done == EXCHANGED;
}

/* compat_exit_robust_list() */
static void walk(const struct thread *thread) {
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
        if ((at & ~1U) != pending && !leave(futex, thread->id, at & 1, 0)) {
            return;
        }
        if (!has_next) {
            return;
        }
    }
    if (pending != 0) {
        leave((u32)(pending + (u32)head.futex_offset), thread->id, head.pending & 1, 1);
    }
}

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

void robust_thread_ends(struct thread *thread) {
    if (thread->robust_list == 0 || thread->is_registered || is_alone()) {
        return;
    }
    thread_own_id();
    signals_let_faults_in(thread);
    walk(thread);
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
