#include "calls.h"
#include "code_writes.h"
#include "costs.h"
#include "interception.h"
#include "own_file.h"
#include "robust.h"
#include "settings.h"
#include "signals.h"
#include "sites.h"
#include "stub_users.h"
#include "trace.h"
#include "user_memory.h"
#include "vectors.h"
#include "x32.h"

#define SECCOMP_SET_MODE_STRICT 0
#define SECCOMP_SET_MODE_FILTER 1
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
    long result = x32_gate(number, arguments);
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

/* A vfork child's memory is its parent's, and goes on. */
static void end_account(const struct thread *thread) {
    if (!thread->is_vfork_child) {
        account_process_ends();
    }
}

__attribute__((noreturn)) static void end_thread(struct thread *thread, u64 status, u64 number) {
    account_thread_ends(thread);
    sites_thread_ends(thread);
    thread_end(thread, status, number);
}

long call_exit(struct frame *frame) {
    struct thread *thread = this_thread();
    robust_thread_ends(thread);
    if (thread->area == 0 || thread->is_vfork_child) {
        end_account(thread);
        return forward(frame, __NR_exit);
    }
    end_thread(thread, frame->rdi, __NR_exit);
}

long call_exit_group(struct frame *frame) {
    if (settings.statistics) {
        trace_statistics();
    }
    if (settings.costs != 0) {
        costs_print();
    }
    struct thread *thread = this_thread();
    if (thread->is_process && thread->area != 0 && !thread->is_vfork_child) {
        /* The memory goes on without it. */
        robust_thread_ends(thread);
        end_thread(thread, frame->rdi, __NR_exit_group);
    }
    robust_process_ends();
    end_account(thread);
    return forward(frame, __NR_exit_group);
}

/* GS is the runtime's: a program that wants one of its own gets EPERM. */
long call_arch_prctl(struct frame *frame) {
    if ((i32)frame->rdi == ARCH_SET_GS) {
        return -EPERM;
    }
    if ((i32)frame->rdi == ARCH_SHSTK_ENABLE) {
        /* As without CONFIG_X86_USER_SHADOW_STACK: frames that the runtime builds are in no shadow stack. */
        return -EINVAL;
    }
    if (settings.costs != 0 && costs_note(frame)) {
        return 0;
    }
    if ((i32)frame->rdi == ARCH_GET_GS) {
        u64 none = 0;
        return WRITE_USER(frame->rsi, none);
    }
    return forward(frame, __NR_arch_prctl);
}

/* For an x32 thread the kernel looks its calls up in the list for 32-bit programs, where no number carries
 * bit 30
 * (__secure_computing_strict, kernel/seccomp.c): the next call, whichever it is, is the last. To see
 * every call, those of the stubs have to be caught too. */
static long enter_strict_mode(struct frame *frame, u64 number) {
    struct thread *thread = this_thread();
    if (interception_used() == CATCH_NOTHING) {
        return -EINVAL;
    }
    interception_arm_thread(1);
    long result = forward(frame, number);
    if (result == 0) {
        thread->dies_of_next_call = 1;
    } else {
        interception_arm_thread(thread->guards_sigsys);
    }
    return result;
}

/* A filter of the program's would see the runtime's calls and 64-bit numbers. So this is a kernel without
 * CONFIG_SECCOMP_FILTER. */
long call_prctl(struct frame *frame) {
    switch ((i32)frame->rdi) {
    case PR_SET_SECCOMP:
        return frame->rsi == SECCOMP_MODE_FILTER ? -EINVAL : enter_strict_mode(frame, __NR_prctl);
    case PR_SET_SYSCALL_USER_DISPATCH:
        return -EINVAL;
    default:
        return forward(frame, __NR_prctl);
    }
}

long call_seccomp(struct frame *frame) {
    switch ((u32)frame->rdi) {
    case SECCOMP_SET_MODE_FILTER:
        return -EINVAL;
    case SECCOMP_SET_MODE_STRICT:
        return enter_strict_mode(frame, __NR_seccomp);
    default:
        return forward(frame, __NR_seccomp);
    }
}

#define KEYCTL_INSTANTIATE_IOV 20
#define KEYCTL_DH_COMPUTE 23
#define KEYCTL_PKEY_FIRST 24
#define KEYCTL_PKEY_LAST 28

/* Those whose arguments are in structures with pointers are as if not configured. */
long call_keyctl(struct frame *frame) {
    u32 operation = (u32)frame->rdi;
    if (operation == KEYCTL_INSTANTIATE_IOV) {
        struct vectors vectors;
        long result = vectors_read(&vectors, (u32)frame->rdx, (u32)frame->r10);
        if (!failed(result)) {
            u64 arguments[6] = {operation, frame->rsi, (u64)vectors.at, vectors.count, frame->r8, 0};
            result = x32_gate(__NR_keyctl, arguments);
            vectors_free(&vectors);
        }
        return result;
    }
    if (operation == KEYCTL_DH_COMPUTE || (operation >= KEYCTL_PKEY_FIRST && operation <= KEYCTL_PKEY_LAST)) {
        return -EOPNOTSUPP;
    }
    return forward(frame, __NR_keyctl);
}
