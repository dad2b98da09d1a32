#include "calls.h"
#include "interception.h"
#include "signal_parts.h"
#include "user_memory.h"

void signals_add_held(struct thread *thread, i32 signal, const struct siginfo64 *info) {
    if (thread->held_count < HELD_SIGNALS) {
        thread->held[thread->held_count].info = *info;
        thread->held[thread->held_count++].signal = signal;
    }
}

void signals_queue_waiting_sigsys(struct thread *thread) {
    thread->sigsys_waiting = 0;
    KERNEL_4(__NR_rt_tgsigqueueinfo, KERNEL_1(__NR_getpid, 0), KERNEL_1(__NR_gettid, 0), SIGSYS,
             &thread->sigsys_info);
}

/* Lets SIGSYS in again, unless a signal is held: then all are blocked until the call's end. */
static void end_sigsys_block(const struct thread *thread) {
    u64 mask = SIGNAL_BIT(SIGSYS);
    if (thread->pending) {
        return;
    }
    KERNEL_4(__NR_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, 8);
    if (thread->pending) { /* one has come meanwhile */
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
    }
}

/* A SIGSYS that came while it was really blocked waits in the program's eyes. */
void signals_unblock_sigsys(struct thread *thread) {
    u64 mask = SIGNAL_BIT(SIGSYS), none[2] = {0, 0};
    if (KERNEL_4(__NR_rt_sigtimedwait, &mask, &thread->sigsys_info, none, 8) == SIGSYS) {
        thread->sigsys_waiting = 1;
    }
    end_sigsys_block(thread);
}

void signals_guard_sigsys(struct thread *thread, int guards) {
    if (thread->guards_sigsys != guards && interception_used() != CATCH_NOTHING) {
        thread->guards_sigsys = (u8)guards;
        interception_arm_thread(guards);
    }
}

/* A program that blocks it among few others does so on purpose. */
#define FEW_SIGNALS 8
int signals_names_sigsys(u64 mask) {
    u64 rest = mask;
    for (int i = 0; i < FEW_SIGNALS; i++) {
        rest &= rest - 1;
    }
    return (mask & SIGNAL_BIT(SIGSYS)) && rest == 0;
}

/* What was sent meanwhile comes when it is let in again, and is held. These calls work on the mask
 * themselves, or hand it on. */
long x32_gate_without_sigsys(long number, const u64 arguments[6]) {
    const struct thread *thread = this_thread();
    u64 mask = SIGNAL_BIT(SIGSYS);
    int is_made_so = signals_keeps_sigsys_out(thread) && number != __NR_rt_sigprocmask &&
                     number != __NR_execve && number != __NR_execveat;
    if (is_made_so) {
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
    }
    long result = FOR_PROGRAM(x32_gate_now(number, arguments));
    if (is_made_so) {
        end_sigsys_block(thread);
    }
    return result;
}

u64 signals_note_mask(struct thread *thread, u64 mask) {
    thread->sigsys_blocked = (mask & SIGNAL_BIT(SIGSYS)) != 0;
    thread->faults_blocked = mask & FAULTS;
    return mask & ~SIGNAL_BIT(SIGSYS);
}

u64 signals_program_mask(const struct thread *thread, u64 kernel_mask) {
    return kernel_mask | (thread->sigsys_blocked ? SIGNAL_BIT(SIGSYS) : 0);
}

u64 signals_let_faults_in(struct thread *thread) {
    u64 faults = FAULTS, before = 0;
    if (thread->faults_blocked) {
        KERNEL_4(__NR_rt_sigprocmask, SIG_UNBLOCK, &faults, &before, 8);
        thread->faults_blocked = 0;
    }
    return before;
}

void signals_put_faults_back(struct thread *thread, u64 mask) {
    u64 faults = mask & FAULTS;
    if (faults != 0) {
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &faults, 0, 8);
        thread->faults_blocked |= faults;
    }
}

void signals_block_until_leaving(struct thread *thread) {
    u64 all = ~0UL;
    if (thread->pending) {
        return;
    }
    u64 before;
    KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    /* A signal that came before that has kept the program's mask, and blocked all. */
    if (!thread->pending) {
        thread->held_mask = before;
    }
    thread->pending = 1;
}

void signals_let_defaults_in(const struct thread *thread) {
    u64 mask = thread->held_mask;
    for (i32 signal = 1; signal <= SIGNALS; signal++) {
        if (has_kernel_handler(signal, action_of(signal))) {
            mask |= SIGNAL_BIT(signal);
        }
    }
    KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

void signals_release_sigsys(struct thread *thread) {
    if (thread->sigsys_waiting && !thread->sigsys_blocked) {
        signals_queue_waiting_sigsys(thread);
    }
}

int signals_hold_waiting_sigsys(struct thread *thread) {
    if (!thread->sigsys_waiting || thread->pending) {
        return 0;
    }
    signals_block_until_leaving(thread);
    signals_add_held(thread, SIGSYS, &thread->sigsys_info);
    thread->sigsys_waiting = 0;
    return 1;
}

long call_rt_sigprocmask(struct frame *frame) {
    struct thread *thread = this_thread();
    u64 how = (u32)frame->rdi, old = frame->rdx, mask = 0, before = 0;
    u64 visible = thread->sigsys_blocked ? SIGNAL_BIT(SIGSYS) : 0;
    if (frame->r10 != 8) {
        return -EINVAL;
    }
    if (frame->rsi != 0 && READ_USER(mask, frame->rsi) < 0) {
        return -EFAULT;
    }
    u64 allowed = mask & ~SIGNAL_BIT(SIGSYS);
    /* The kernel itself writes the old mask where it is the one that the program has to see. */
    int is_written = visible == 0 && old < TASK_SIZE;
    u64 arguments[6] = {how, frame->rsi != 0 ? (u64)&allowed : 0, is_written ? old : (u64)&before, 8, 0, 0};
    long result = x32_gate(__NR_rt_sigprocmask, arguments);
    /* EFAULT is that of the old mask, when the new one is in force already. */
    if ((failed(result) && result != -EFAULT) || result == -RESTART_AFTER_SIGNAL) {
        return result;
    }
    if (frame->rsi != 0) {
        u64 mine = visible | thread->faults_blocked;
        u64 now = how == SIG_SETMASK ? mask : how == SIG_BLOCK ? (mine | mask) : (mine & ~mask);
        signals_note_mask(thread, now);
        if (thread->guards_sigsys || (how != SIG_UNBLOCK && signals_names_sigsys(mask))) {
            signals_guard_sigsys(thread, signals_keeps_sigsys_out(thread));
        }
        signals_release_sigsys(thread);
    }
    before |= visible;
    return !is_written && old != 0 && WRITE_USER(old, before) < 0 ? -EFAULT : result;
}

long call_rt_sigpending(struct frame *frame) {
    struct thread *thread = this_thread();
    u64 pending = 0, size = frame->rsi;
    if (size > 8) {
        return -EINVAL;
    }
    long result = KERNEL_2(__NR_rt_sigpending, &pending, 8);
    if (failed(result)) {
        return result;
    }
    pending |= thread->sigsys_waiting ? SIGNAL_BIT(SIGSYS) : 0;
    return write_user((u32)frame->rdi, &pending, size);
}

long call_rt_sigtimedwait(struct frame *frame) {
    struct thread *thread = this_thread();
    struct siginfo64 info;
    u64 wanted;
    u64 arguments[6] = {frame->rdi, (u64)&info, frame->rdx, frame->r10, 0, 0};
    long result;
    if (thread->sigsys_waiting && READ_USER(wanted, frame->rdi) == 0 && (wanted & SIGNAL_BIT(SIGSYS))) {
        info = thread->sigsys_info;
        thread->sigsys_waiting = 0;
        result = SIGSYS;
    } else {
        result = x32_gate(__NR_rt_sigtimedwait, arguments);
    }
    if (failed(result) || result == -RESTART_AFTER_SIGNAL || frame->rsi == 0) {
        return result;
    }
    struct siginfo32 narrow_info;
    signals_as_sent(&info);
    siginfo_to_x32(&narrow_info, &info);
    return WRITE_USER((u32)frame->rsi, narrow_info) < 0 ? -EFAULT : result;
}
