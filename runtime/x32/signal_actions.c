#include "calls.h"
#include "signal_parts.h"
#include "user_memory.h"

void x32_restorer(void);
void x32_begin_handler(i32 signal, struct siginfo64 *info, struct ucontext64 *context);

#define UAPI_FLAGS                                                                                           \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND |        \
     SA_EXPOSE_TAGBITS | SA_RESTORER)

void signals_hold_actions(void) { actions_hold(); }
void signals_let_actions_go(void) { actions_let_go(); }
void signals_forget_holder(void) { this_thread()->owner->actions_lock = 0; }

void signals_share_actions(struct thread *child, int share) {
    const struct thread *thread = this_thread();
    child->actions = thread->actions;
    child->owner = thread->owner;
    if (!share) {
        actions_hold();
        copy_bytes(child->own_actions, thread->actions, sizeof child->own_actions);
        actions_let_go();
        child->actions = child->own_actions;
        child->owner = child;
    }
    __atomic_add_fetch(&child->owner->users, 1, __ATOMIC_RELAXED);
}

#define OURS 3
static const i32 ours[OURS] = {SIGSEGV, SIGBUS, SIGSYS};

/* `before`: where the kernel writes what it had; or null. */
static long exchange_kernel_action(i32 signal, const struct sigaction32 *action,
                                   struct kernel_sigaction *before) {
    struct kernel_sigaction kernel = {
        .handler = action->handler,
        .flags =
            SA_RESTORER | (action->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | SA_EXPOSE_TAGBITS)),
        .restorer = (u64)x32_restorer,
        .mask = signal == SIGSYS ? 0 : ~FAULTS, /* a trap lets in what the program does */
    };
    if (has_kernel_handler(signal, action)) {
        kernel.handler = (u64)x32_begin_handler;
        /* NODEFER: the faults a handler of ours may meet are never blocked; all else is by the mask. What is
         * of no effect on the program interrupts as little as can be. */
        kernel.flags |= SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (action->handler == SIG_IGN ? SA_RESTART : 0);
        if (!is_ours(signal)) {
            kernel.flags |= action->flags & SA_RESETHAND;
        }
    }
    return KERNEL_4(__NR_rt_sigaction, signal, &kernel, before, 8);
}

long signals_set_kernel_action(i32 signal, const struct sigaction32 *action) {
    return exchange_kernel_action(signal, action, NULL);
}

void signals_begin(void) {
    this_thread()->actions = this_thread()->own_actions;
    this_thread()->owner = this_thread();
    this_thread()->users = 1;
    for (int i = 0; i < OURS; i++) {
        struct kernel_sigaction before;
        if (!failed(exchange_kernel_action(ours[i], action_of(ours[i]), &before)) &&
            before.handler == SIG_IGN) {
            i386_entry_is_there(); /* found out by a fault */
            action_of(ours[i])->handler = SIG_IGN;
            signals_set_kernel_action(ours[i], action_of(ours[i]));
        }
    }
    u64 mask = 0;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    signals_note_mask(this_thread(), mask);
    /* It is armed later. */
    this_thread()->guards_sigsys = action_of(SIGSYS)->handler == SIG_IGN || signals_names_sigsys(mask);
    if (mask & SIGNAL_BIT(SIGSYS)) {
        signals_unblock_sigsys(this_thread());
    }
}

/* flush_signal_handlers(), kernel/signal.c: flags and mask of what is ignored are cleared, too. */
void signals_after_clearing(void) {
    for (i32 signal = 1; signal <= SIGNALS; signal++) {
        u32 handler = action_of(signal)->handler;
        clear_bytes(action_of(signal), sizeof(struct sigaction32));
        action_of(signal)->handler = handler == SIG_IGN ? SIG_IGN : SIG_DFL;
    }
    for (int i = 0; i < OURS; i++) {
        signals_set_kernel_action(ours[i], action_of(ours[i]));
    }
}

void signals_before_exec(void) {
    struct thread *thread = this_thread();
    if (thread->sigsys_blocked) {
        /* The mask survives, and what waits; no call of the program's can trap any more. */
        u64 mask = SIGNAL_BIT(SIGSYS);
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
        if (thread->sigsys_waiting) {
            signals_queue_waiting_sigsys(thread);
        }
    }
    if (action_of(SIGSYS)->handler == SIG_IGN) {
        struct kernel_sigaction ignore = {.handler = SIG_IGN};
        KERNEL_4(__NR_rt_sigaction, SIGSYS, &ignore, 0, 8);
    }
}

void signals_after_failed_exec(void) {
    struct thread *thread = this_thread();
    if (thread->sigsys_blocked) {
        signals_unblock_sigsys(thread);
    }
    if (action_of(SIGSYS)->handler == SIG_IGN) {
        signals_set_kernel_action(SIGSYS, action_of(SIGSYS));
    }
}

/* `action`: the new one, or null. */
static long exchange(i32 signal, const struct sigaction32 *action, struct sigaction32 *before) {
    long result = 0;
    actions_hold();
    struct sigaction32 *entry = action_of(signal), had = *entry;
    *before = had;
    if (had.handler <= SIG_IGN && !is_ours(signal)) {
        /* Inherited, or reset by SA_RESETHAND. */
        struct kernel_sigaction kernel;
        if (!failed(KERNEL_4(__NR_rt_sigaction, signal, 0, &kernel, 8)) && kernel.handler <= SIG_IGN) {
            before->handler = (u32)kernel.handler;
        }
    }
    if (action != NULL) {
        *entry = *action;
        result = signals_set_kernel_action(signal, action);
        if (failed(result)) {
            *entry = had;
        }
    }
    actions_let_go();
    return result;
}

long call_rt_sigaction(struct frame *frame) {
    u64 signal = (u32)frame->rdi, act = (u32)frame->rsi, old = (u32)frame->rdx;
    struct sigaction32 action, before;
    if (frame->r10 != 8) {
        return -EINVAL;
    }
    if (act != 0 && READ_USER(action, act) < 0) {
        return -EFAULT;
    }
    if (signal < 1 || signal > SIGNALS || (act != 0 && (signal == SIGKILL || signal == SIGSTOP))) {
        return -EINVAL;
    }
    if (act != 0) {
        action.flags &= UAPI_FLAGS;
        action.mask &= ~NEVER_BLOCKED;
        if (is_ours((i32)signal) && action.handler == SIG_IGN) {
            i386_entry_is_there(); /* found out by a fault */
        }
    }
    long result = exchange((i32)signal, act != 0 ? &action : NULL, &before);
    if (failed(result)) {
        return result;
    }
    if (act != 0 && signal == SIGSYS && (this_thread()->guards_sigsys || action.handler == SIG_IGN)) {
        signals_guard_sigsys(this_thread(), signals_keeps_sigsys_out(this_thread()));
    }
    if (old != 0 && WRITE_USER(old, before) < 0) {
        return -EFAULT;
    }
    return 0;
}
