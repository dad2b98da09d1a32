#include "account.h"
#include "calls.h"
#include "offsets.h"
#include "settings.h"
#include "signal_parts.h"
#include "site_places.h"
#include "user_memory.h"
#include "valgrind.h"
#include "xstate.h"

__attribute__((noreturn)) void x32_sigreturn(struct ucontext64 *context);

#define RED_ZONE 128UL

#define CONTEXT_EXTENDED 1UL      /* UC_FP_XSTATE */
#define CONTEXT_STACK_SEGMENT 6UL /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */

/* The alternate stack as the kernel's sas_ss_flags() sees it. */
static int within_alternate(const struct thread *thread, u64 sp) {
    return sp > thread->alternate.sp && sp - thread->alternate.sp <= thread->alternate.size;
}

static int on_alternate(const struct thread *thread, u64 sp) {
    return !(thread->alternate.flags & (i32)SS_AUTODISARM) && within_alternate(thread, sp);
}

static i32 alternate_state(const struct thread *thread, u64 sp) {
    if (thread->alternate.size == 0) {
        return SS_DISABLE;
    }
    return on_alternate(thread, sp) ? SS_ONSTACK : 0;
}

__attribute__((noreturn)) void x32_restore(const struct sigcontext *registers, const u64 *mask);

void signals_go_on(struct sigcontext *registers) {
    registers->rip = sites_go_on(registers->rip, registers->rax, &registers->rflags);
    if (settings.valgrind) {
        registers->rip = sites_begin_again(registers->rip, registers->rax);
    }
}

/* Goes on as the context demands, from the program's handler that has its frame there, if it is one: the
 * kernel's way, all at once. valgrind takes back only frames that it made itself.
 */
__attribute__((noreturn)) static void resume(struct ucontext64 *context, u64 frame) {
    signals_go_on(&context->registers);
    if (settings.valgrind) {
        xstate_restore(context->registers.fpstate);
        u64 end = context->registers.rsp - RED_ZONE;
        if (frame != 0 && end > frame && end - frame <= VECTOR_ROOM + PAGE) { /* not on another stack */
            valgrind_frame_ends(frame - RED_ZONE, end);
        }
        this_thread()->restores = context;
        x32_restore(&context->registers, &context->mask);
    }
    x32_sigreturn(context);
}

/* The signal waits, with all that it carries, until the context is in force: what a debugger or a core dump
 * then shows is the program where it was, and not the runtime. */
void signals_die_of(i32 signal, const struct siginfo64 *info, struct ucontext64 *context) {
    account_process_ends();
    struct kernel_sigaction plain = {.handler = SIG_DFL};
    u64 mask = SIGNAL_BIT(signal);
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
    KERNEL_4(__NR_rt_sigaction, signal, &plain, 0, 8);
    context->mask = ~mask; /* nothing else comes before it */
    long process = KERNEL_1(__NR_getpid, 0), thread = KERNEL_1(__NR_gettid, 0);
    if (failed(KERNEL_4(__NR_rt_tgsigqueueinfo, process, thread, signal, info))) {
        KERNEL_3(__NR_tgkill, process, thread, signal);
    }
    this_thread()->ends = 1;
}

#define IGNORED_BY_DEFAULT                                                                                   \
    (SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))
#define STOPS_BY_DEFAULT (SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))

/* Of a signal without a handler: one of the three that the runtime needs, or one whose handler went while it
 * was held. What stops is the kernel's to do, when the context is in force. */
static void deliver_default(i32 signal, const struct siginfo64 *info, struct ucontext64 *context) {
    if (STOPS_BY_DEFAULT & SIGNAL_BIT(signal)) {
        actions_hold();
        if (action_of(signal)->handler == SIG_DFL) {
            signals_set_kernel_action(signal, action_of(signal)); /* SA_RESETHAND leaves it to the kernel */
        }
        actions_let_go();
        signals_send_again(signal, info);
    } else if (!(IGNORED_BY_DEFAULT & SIGNAL_BIT(signal))) {
        signals_die_of(signal, info, context);
    }
}

/* The action by which a signal is delivered. SA_RESETHAND takes its handler away, and no other one that comes
 * after. */
static struct sigaction32 take_action(i32 signal) {
    actions_hold();
    struct sigaction32 *entry = action_of(signal), action = *entry;
    if (action.handler > SIG_IGN && (action.flags & SA_RESETHAND)) {
        entry->handler = SIG_DFL;
    }
    actions_let_go();
    return action;
}

/* Builds the x32 frame and makes the context the handler's. `mask`: what is in force while the frame is
 * built, which sigsuspend and its like make another one than the context's. */
int signals_deliver(i32 signal, const struct siginfo64 *info, struct ucontext64 *context, u64 mask_now) {
    struct thread *thread = this_thread();
    struct sigcontext *registers = &context->registers;
    int forced = info->code > SI_USER && info->code != SI_TIMER && is_ours(signal);
    int sigsys_blocked = thread->waits_with_mask ? thread->wait_blocks_sigsys : thread->sigsys_blocked;

    if (signal == SIGSYS && sigsys_blocked) {
        thread->sigsys_waiting = 1;
        thread->sigsys_info = *info;
        return 0;
    }
    struct sigaction32 action = take_action(signal);
    if (action.handler <= SIG_IGN) {
        if (action.handler == SIG_DFL || forced) {
            deliver_default(signal, info, context);
        }
        return 0;
    }
    u64 sp = registers->rsp - RED_ZONE;
    i32 nested = on_alternate(thread, registers->rsp);
    if ((action.flags & SA_ONSTACK) && alternate_state(thread, registers->rsp) == 0) {
        nested = 1;
        sp = (u64)thread->alternate.sp + thread->alternate.size;
    }
    u64 top = sp, vectors = 0, vectors_size = 0;
    if (registers->fpstate != 0) {
        vectors_size = xstate_size(registers->fpstate);
        vectors = ROUND_DOWN(sp - vectors_size, 64);
        sp = vectors;
    }
    sp = ROUND_DOWN(sp - sizeof(struct frame32), 16) - 8;
    valgrind_frame_begins(sp - RED_ZONE, top);

    struct frame32 frame;
    clear_bytes(&frame, sizeof frame);
    frame.return_address = action.restorer;
    frame.context.flags = (u32)context->flags;
    frame.context.stack_sp = thread->alternate.sp;
    frame.context.stack_flags = thread->alternate.flags;
    frame.context.stack_size = thread->alternate.size;
    frame.context.registers = *registers;
    frame.context.registers.fpstate = vectors;
    frame.context.mask = signals_program_mask(thread, context->mask);
    siginfo_to_x32(&frame.info, info);

    int overflowed = nested && !within_alternate(thread, sp);
    if (overflowed || !(action.flags & SA_RESTORER) || sp > TASK_SIZE ||
        (vectors_size != 0 && write_user(vectors, (void *)registers->fpstate, vectors_size) < 0) ||
        WRITE_USER(sp, frame) < 0) {
        /* force_sigsegv(): a handler of SIGSEGV may have a stack that works, unless this was it. */
        struct siginfo64 fault = {.signo = SIGSEGV, .code = SI_KERNEL};
        if (signal == SIGSEGV || action_of(SIGSEGV)->handler <= SIG_IGN) {
            signals_die_of(SIGSEGV, &fault, context);
            return 0;
        }
        return signals_deliver(SIGSEGV, &fault, context, mask_now);
    }
    if (thread->alternate.flags & (i32)SS_AUTODISARM) {
        thread->alternate = (struct stack32){.flags = SS_DISABLE};
    }

    u64 mask = mask_now | (sigsys_blocked ? SIGNAL_BIT(SIGSYS) : 0) | action.mask;
    if (!(action.flags & SA_NODEFER)) {
        mask |= SIGNAL_BIT(signal);
    }
    context->mask = signals_note_mask(thread, mask & ~NEVER_BLOCKED);
    registers->rdi = (u64)signal;
    registers->rsi = sp + offsetof(struct frame32, info);
    registers->rdx = sp + offsetof(struct frame32, context);
    registers->rax = 0;
    registers->rip = action.handler;
    registers->rsp = sp;
    registers->rflags &= ~0x10500UL; /* direction, trap, resume */
    registers->fpstate = 0;          /* a handler begins with a clean state, as the kernel gives it */
    return 1;
}

void signals_take_from_frame(struct sigcontext *registers, const struct thread *thread,
                             const struct frame *frame) {
    registers->r15 = frame->r15;
    registers->r14 = frame->r14;
    registers->r13 = frame->r13;
    registers->r12 = frame->r12;
    registers->rbp = frame->rbp;
    registers->rbx = frame->rbx;
    registers->r9 = frame->r9;
    registers->r8 = frame->r8;
    registers->r10 = frame->r10;
    registers->rdx = frame->rdx;
    registers->rsi = frame->rsi;
    registers->rdi = frame->rdi;
    u64 rip = sites_in_program(frame->rip, 0, &registers->rax);
    rip = rip != 0 ? rip : frame->rip;
    registers->rax = frame->rax;
    registers->rcx = frame->trapped == TRAPPED_I386 ? thread->i386_rcx : rip;
    registers->r11 = frame->trapped == TRAPPED_I386 ? thread->i386_r11 : frame->flags;
    registers->rflags = frame->flags;
    registers->rip = rip;
    registers->rsp = thread->program_rsp;
}

int signals_deliver_held(struct thread *thread, struct ucontext64 *context) {
    int handled = 0;
    for (u32 i = 0; i < thread->held_count && !thread->ends; i++) {
        /* As in the kernel: whatever the wait had let in is delivered before the first handler begins. */
        u64 mask = thread->waits_with_mask ? thread->wait_mask : context->mask;
        handled |= signals_deliver(thread->held[i].signal, &thread->held[i].info, context, mask);
        thread->waits_with_mask = 0;
    }
    thread->held_count = 0;
    return handled;
}

/* From x32_leave, with all but faults blocked. `pending` is set until the context is in force, so that a
 * fault that is sent is put back. */
__attribute__((noreturn)) void x32_deliver_held(const struct frame *frame) {
    struct thread *thread = this_thread();
    u8 vectors[VECTOR_ROOM] __attribute__((aligned(64)));
    struct ucontext64 context;
    if (settings.valgrind) {
        u64 all = ~FAULTS; /* the handler that held it could not block them beyond its end */
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &all, 0, 8);
    }
    clear_bytes(&context, sizeof context);
    xstate_save(vectors, sizeof vectors);
    context.flags = CONTEXT_EXTENDED | CONTEXT_STACK_SEGMENT;
    context.stack = (struct kernel_stack){thread->handler_stack, 0, 0, thread->handler_stack_size};
    context.mask = thread->held_mask;
    context.registers.fpstate = (u64)vectors;
    context.registers.cs = 0x33;
    context.registers.ss = 0x2b;
    signals_take_from_frame(&context.registers, thread, frame);
    signals_deliver_held(thread, &context);
    resume(&context, 0);
}

/* signal_fault(), arch/x86/kernel/signal.c: SIGSEGV is forced, which ends a process that blocks or ignores
 * it. */
static void bad_frame(struct thread *thread) {
    if ((thread->held_mask & SIGNAL_BIT(SIGSEGV)) || action_of(SIGSEGV)->handler == SIG_IGN) {
        action_of(SIGSEGV)->handler = SIG_DFL;
    }
    const struct siginfo64 info = {.signo = SIGSEGV, .code = SI_KERNEL};
    signals_add_held(thread, SIGSEGV, &info);
}

/* do_sigaltstack(), kernel/signal.c. `sp`: the program's. */
static long set_alternate(struct thread *thread, struct stack32 wanted, u64 sp) {
    i32 mode = wanted.flags & ~(i32)SS_AUTODISARM;
    if (on_alternate(thread, sp)) {
        return -EPERM;
    }
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE) {
        return -EINVAL;
    }
    if (mode == SS_DISABLE) {
        wanted.sp = wanted.size = 0;
    } else if (wanted.size < MINSIGSTKSZ) {
        return -ENOMEM;
    }
    thread->alternate = wanted;
    return 0;
}

long call_rt_sigreturn(struct frame *call) {
    struct thread *thread = this_thread();
    struct frame32 frame;
    struct ucontext64 context;
    if (thread->pending) {
        return -RESTART_AFTER_SIGNAL;
    }
    /* What arrives from here on comes after the return, so it has to find the program's mask in force. */
    u64 all = ~FAULTS;
    u64 before;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    thread->pending = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a fault that comes from here on is put back */
    /* Outside of a call SIGSYS is blocked by hold() alone, which has kept the program's mask. */
    int is_held = (before & SIGNAL_BIT(SIGSYS)) != 0;
    if (!is_held) {
        thread->held_mask = before;
    }
    if (thread->held_count > 0) {
        return -RESTART_AFTER_SIGNAL;
    }
    u64 address = thread->program_rsp - sizeof frame.return_address;
    if (read_user(&frame, address, offsetof(struct frame32, info)) < 0) {
        bad_frame(thread);
        return (long)call->rax;
    }
    clear_bytes(&context, sizeof context);
    context.flags = frame.context.flags;
    context.stack = (struct kernel_stack){thread->handler_stack, 0, 0, thread->handler_stack_size};
    context.registers = frame.context.registers;
    /* While the mask is the handler's: reading the program's text may fault. */
    signals_go_on(&context.registers);
    context.mask = signals_note_mask(thread, frame.context.mask & ~NEVER_BLOCKED);
    /* As the kernel, which does not look at the result. */
    set_alternate(
        thread, (struct stack32){frame.context.stack_sp, frame.context.stack_flags, frame.context.stack_size},
        context.registers.rsp);
    signals_release_sigsys(thread);
    resume(&context, address);
}

long call_sigaltstack(struct frame *frame) {
    struct thread *thread = this_thread();
    struct stack32 before = thread->alternate, wanted;
    u64 new = (u32)frame->rdi, old = (u32)frame->rsi;
    i32 state = alternate_state(thread, thread->program_rsp);
    before.flags = state | (before.flags & (i32)SS_AUTODISARM);
    if (new != 0) {
        if (READ_USER(wanted, new) < 0) {
            return -EFAULT;
        }
        long result = set_alternate(thread, wanted, thread->program_rsp);
        if (failed(result)) {
            return result;
        }
    }
    return old != 0 && WRITE_USER(old, before) < 0 ? -EFAULT : 0;
}
