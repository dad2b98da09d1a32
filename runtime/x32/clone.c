/* New processes and threads. */
#include "calls.h"
#include "code_writes.h"
#include "own_file.h"
#include "robust.h"
#include "signals.h"
#include "sites.h"
#include "space.h"
#include "stub_users.h"
#include "user_memory.h"
#include "x32.h"

#define CLONE_ARGS_FIRST 64
#define MEMBARRIER_REGISTER_SYNC_CORE 64

/* A child with memory of its own is a copy of everything, the thread's block included; it only has to be
 * armed again. No other thread may be in the middle of a rewriting meanwhile, since the child would find it
 * unfinished for ever. */
static long fork_with(long number, const u64 arguments[6], u64 flags, u64 stack) {
    struct thread *thread = this_thread();
    u64 all = ~0UL, mask;
    account_before_fork();
    own_file_learn();
    sites_hold();
    u64 faults = account_faults();
    if (flags & CLONE_CLEAR_SIGHAND) {
        /* No signal may find the child without the runtime's handlers. */
        KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, 8);
    }
    /* With CLONE_VFORK it would last until the child ends, which may wait for another thread. */
    int holds_actions = !(flags & CLONE_VFORK);
    if (holds_actions) {
        signals_hold_actions();
    }
    long result = x32_gate(number, arguments);
    if (holds_actions) {
        signals_let_actions_go();
    } else if (result == 0) {
        signals_forget_holder();
    }
    if (flags & CLONE_CLEAR_SIGHAND) {
        if (result == 0) {
            signals_after_clearing();
        }
        KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
    }
    sites_let_go();
    if (result > 0) {
        account_own_faults(faults);
    }
    if (result == 0) {
        x32_several_threads = 0;
        memory_forked();
        space_forked();
        thread->area = 0;
        thread->is_vfork_child = 0;
        thread->sigsys_waiting = 0;
        thread->robust_list = 0;
        thread->is_registered = 0;
        if (stack != 0) {
            thread->program_rsp = stack;
        }
        thread_forked(thread);
        stub_users_forked(thread);
        account_forked((flags & CLONE_CHILD_SETTID) != 0);
    }
    return result;
}

/* A child in the same memory gets a block and a stack of its own. Until they are in force nothing may reach
 * it. */
static long spawn(struct frame *frame, u64 registers[6], u64 flags, u64 stack) {
    struct thread *thread = this_thread(), *child = thread_make();
    if (child == NULL) {
        return -ENOMEM;
    }
    if (thread->pending) {
        thread_unmake(child);
        return -RESTART_AFTER_SIGNAL;
    }
    signals_block_until_leaving(thread);
    if (!x32_several_threads) {
        /* For rewriting beside other threads. While the memory has one user the kernel registers at once;
         * later it would wait some milliseconds for every core (kernel/sched/membarrier.c). */
        KERNEL_3(__NR_membarrier, MEMBARRIER_REGISTER_SYNC_CORE, 0, 0);
    }
    robust_not_alone();
    if ((flags & (CLONE_THREAD | CLONE_VFORK)) == 0) {
        robust_memory_has_processes();
    }
    x32_several_threads = 1;
    thread_own_id(); /* others look for this thread by it (stub_users.c) */
    child->program_rsp = stack != 0 ? stack : thread->program_rsp;
    child->held_mask = thread->held_mask;
    child->pending = 1;
    child->sigsys_blocked = thread->sigsys_blocked;
    child->guards_sigsys = thread->guards_sigsys;
    child->faults_blocked = thread->faults_blocked;
    child->is_vfork_child = (flags & CLONE_VFORK) != 0;
    child->is_process = (flags & CLONE_THREAD) == 0;
    child->clears_handlers = (flags & CLONE_CLEAR_SIGHAND) != 0;
    signals_share_actions(child, (flags & CLONE_SIGHAND) != 0);
    if (flags & CLONE_VFORK) {
        child->alternate = thread->alternate;
    }
    *frame_of(child) = *frame;
    account_thread(child);
    sites_thread_begins(child, frame->rip);
    /* The kernel starts the child on the runtime's stack, at the frame. */
    if (registers[0] == __NR_clone) {
        registers[2] = (u64)frame_of(child);
    } else {
        struct clone_args *wanted = (struct clone_args *)registers[1];
        wanted->stack = child->area;
        wanted->stack_size = (u64)frame_of(child) - child->area;
    }
    if (flags & CLONE_VFORK) {
        /* As in the kernel, what kills or stops does so while the child is waited for; and in the child,
         * which has no state of its own to be lost with it. */
        signals_let_defaults_in(thread);
    }
    long result = FOR_PROGRAM(x32_spawn(registers, child));
    if (!failed(result) && !(flags & CLONE_VFORK)) {
        thread_made(child, (u32)result);
        return result;
    }
    /* It never began; or it has ended, or is another program. */
    if (child->scratch != 0) {
        KERNEL_2(__NR_munmap, child->scratch, child->scratch_size);
    }
    account_thread_ends(child);
    sites_thread_ends(child);
    thread_unmake(child);
    return result;
}

long call_clone(struct frame *frame) {
    u64 flags = (u32)frame->rdi, stack = frame->rsi;
    if (flags & CLONE_VM) {
        u64 registers[6] = {__NR_clone, flags, 0, frame->rdx, frame->r10, frame->r8};
        return spawn(frame, registers, flags, stack);
    }
    u64 arguments[6] = {flags, 0, frame->rdx, frame->r10, frame->r8, 0};
    return fork_with(__NR_clone, arguments, flags, stack);
}

long call_clone3(struct frame *frame) {
    struct clone_args wanted;
    u64 size = frame->rsi;
    if (size > PAGE) {
        return -E2BIG;
    }
    if (size < CLONE_ARGS_FIRST) {
        return -EINVAL;
    }
    clear_bytes(&wanted, sizeof wanted);
    if (read_user(&wanted, frame->rdi, size < sizeof wanted ? size : sizeof wanted) < 0) {
        return -EFAULT;
    }
    for (u64 i = sizeof wanted; i < size; i++) {
        u8 byte;
        if (READ_USER(byte, frame->rdi + i) < 0) {
            return -EFAULT;
        }
        if (byte != 0) {
            return -E2BIG;
        }
    }
    if ((wanted.stack == 0) != (wanted.stack_size == 0)) {
        return -EINVAL;
    }
    u64 stack = wanted.stack + wanted.stack_size;
    if (wanted.flags & CLONE_VM) {
        u64 registers[6] = {__NR_clone3, (u64)&wanted, sizeof wanted, 0, 0, 0};
        return spawn(frame, registers, wanted.flags, stack);
    }
    wanted.stack = wanted.stack_size = 0;
    u64 arguments[6] = {(u64)&wanted, sizeof wanted, 0, 0, 0, 0};
    return fork_with(__NR_clone3, arguments, wanted.flags, stack);
}

long call_fork(struct frame *frame) {
    (void)frame;
    u64 arguments[6] = {SIGCHLD, 0, 0, 0, 0, 0};
    return fork_with(__NR_clone, arguments, SIGCHLD, 0);
}

long call_vfork(struct frame *frame) {
    u64 flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    u64 registers[6] = {__NR_clone, flags, 0, 0, 0, 0};
    return spawn(frame, registers, flags, 0);
}
