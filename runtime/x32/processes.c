#include "calls.h"
#include "costs.h"
#include "interception.h"
#include "iovecs.h"
#include "robust.h"
#include "settings.h"
#include "signals.h"
#include "sites.h"
#include "trace.h"
#include "user_memory.h"
#include "x32.h"

#define SECCOMP_SET_MODE_STRICT 0
#define SECCOMP_SET_MODE_FILTER 1

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
