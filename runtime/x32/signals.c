#include "signals.h"
#include "account.h"
#include "calls.h"
#include "extended.h"
#include "interception.h"
#include "memory.h"
#include "offsets.h"
#include "settings.h"
#include "sites.h"
#include "text.h"

extern u8 __executable_start[], etext[];
extern u8 x32_leave[], x32_leave_end[], x32_gate_check[], x32_gate_done[], x32_gate_given_up[];
extern u8 x32_door_check[], x32_door_touch[], x32_door_done[], x32_door_shut[], x32_door_given_up[];
extern u8 x32_copy_touch[], x32_copy_done[], x32_enter_trapped[], x32_trap_masked[], x32_trap_taken[];
void x32_restorer(void);
__attribute__((noreturn)) void x32_sigreturn(struct ucontext64 *context);

#define UAPI_FLAGS                                                                                           \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND |        \
     SA_EXPOSE_TAGBITS | SA_RESTORER)

#define FAULTS (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS))
#define NEVER_BLOCKED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

#define CONTEXT_EXTENDED 1UL      /* UC_FP_XSTATE */
#define CONTEXT_STACK_SEGMENT 6UL /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */

/* What the program has asked for. The kernel has the runtime's handler for every signal that has one here,
 * and for the three that the runtime itself needs. */
static struct sigaction32 *action_of(i32 signal) { return &this_thread()->actions[signal]; }

void signals_share_actions(struct thread *child, int share) {
    struct thread *thread = this_thread();
    child->actions = thread->actions;
    if (!share) {
        copy_bytes(child->own_actions, thread->actions, sizeof child->own_actions);
        child->actions = child->own_actions;
    }
}

/* Faults and trapped calls come to the runtime first, whatever the program has said of them. */
#define OURS 3
static const i32 ours[OURS] = {SIGSEGV, SIGBUS, SIGSYS};

static int is_ours(i32 signal) { return signal == ours[0] || signal == ours[1] || signal == ours[2]; }

/* A fault that is ignored ends the process, and one that is sent is not to interrupt a call: so it is the
 * kernel that ignores it. SIGSYS has to come. */
static int has_handler(i32 signal, const struct sigaction32 *action) {
    return action->handler > SIG_IGN || signal == SIGSYS || (is_ours(signal) && action->handler == SIG_DFL);
}

static void x32_on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context);

static long tell_kernel(i32 signal, const struct sigaction32 *action) {
    struct kernel_sigaction kernel = {
        .handler = action->handler,
        .flags =
            SA_RESTORER | (action->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | SA_EXPOSE_TAGBITS)),
        .restorer = (u64)x32_restorer,
        .mask = ~FAULTS,
    };
    if (has_handler(signal, action)) {
        kernel.handler = (u64)x32_on_signal;
        /* NODEFER: the faults a handler of ours may meet are never blocked; all else is by the mask. What is
         * of no effect on the program interrupts as little as can be. */
        kernel.flags |= SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (action->handler == SIG_IGN ? SA_RESTART : 0);
        if (!is_ours(signal)) {
            kernel.flags |= action->flags & SA_RESETHAND;
        }
    }
    return KERNEL_4(__NR_rt_sigaction, signal, &kernel, 0, 8);
}

static void queue_waiting_sigsys(struct thread *thread) {
    thread->sigsys_waiting = 0;
    KERNEL_4(__NR_rt_tgsigqueueinfo, KERNEL_1(__NR_getpid, 0), KERNEL_1(__NR_gettid, 0), SIGSYS,
             &thread->sigsys_info);
}

/* A SIGSYS that came while it was really blocked waits in the program's eyes. */
static void unblock_sigsys(struct thread *thread) {
    u64 mask = SIGNAL_BIT(SIGSYS), none[2] = {0, 0};
    if (KERNEL_4(__NR_rt_sigtimedwait, &mask, &thread->sigsys_info, none, 8) == SIGSYS) {
        thread->sigsys_waiting = 1;
    }
    KERNEL_4(__NR_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, 8);
}

void signals_begin(void) {
    this_thread()->actions = this_thread()->own_actions;
    for (int i = 0; i < OURS; i++) {
        struct kernel_sigaction before;
        if (!failed(KERNEL_4(__NR_rt_sigaction, ours[i], 0, &before, 8)) && before.handler == SIG_IGN) {
            action_of(ours[i])->handler = SIG_IGN;
        }
        tell_kernel(ours[i], action_of(ours[i]));
    }
    u64 mask = 0;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    signals_note_mask(this_thread(), mask);
    if (mask & SIGNAL_BIT(SIGSYS)) {
        unblock_sigsys(this_thread());
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
        tell_kernel(ours[i], action_of(ours[i]));
    }
}

void signals_before_exec(void) {
    struct thread *thread = this_thread();
    if (thread->sigsys_blocked) {
        /* The mask survives, and what waits; no call of the program's can trap any more. */
        u64 mask = SIGNAL_BIT(SIGSYS);
        KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
        if (thread->sigsys_waiting) {
            queue_waiting_sigsys(thread);
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
        unblock_sigsys(thread);
    }
    if (action_of(SIGSYS)->handler == SIG_IGN) {
        tell_kernel(SIGSYS, action_of(SIGSYS));
    }
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
    KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &thread->held_mask, 8);
    thread->pending = 1;
}

void signals_let_defaults_in(const struct thread *thread) {
    u64 mask = thread->held_mask;
    for (i32 signal = 1; signal <= SIGNALS; signal++) {
        if (has_handler(signal, action_of(signal))) {
            mask |= SIGNAL_BIT(signal);
        }
    }
    KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

void signals_release_sigsys(struct thread *thread) {
    if (thread->sigsys_waiting && !thread->sigsys_blocked) {
        queue_waiting_sigsys(thread);
    }
}

int signals_hold_waiting_sigsys(struct thread *thread) {
    if (!thread->sigsys_waiting || thread->pending) {
        return 0;
    }
    signals_block_until_leaving(thread);
    if (thread->held_count == HELD_SIGNALS) {
        return 0;
    }
    struct held_signal *held = &thread->held[thread->held_count++];
    held->signal = SIGSYS;
    held->info = thread->sigsys_info;
    thread->sigsys_waiting = 0;
    return 1;
}

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

__attribute__((noreturn)) void x32_restore(struct sigcontext *registers);

static void go_on(struct sigcontext *registers) {
    registers->rip = sites_go_on(registers->rip, registers->rax, &registers->rflags);
}

/* To what a context says: the kernel's way, all at once. valgrind takes back only frames that it made itself.
 */
__attribute__((noreturn)) static void resume(struct ucontext64 *context) {
    go_on(&context->registers);
    if (settings.valgrind) {
        KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &context->mask, 0, 8);
        x32_restore(&context->registers);
    }
    x32_sigreturn(context);
}

/* The signal waits, with all that it says, until the context is in force: what a debugger or a core dump then
 * shows is the program where it was, and not the runtime. */
static void die_of(i32 signal, const struct siginfo64 *info, struct ucontext64 *context) {
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

/* Builds the x32 frame and makes the context the handler's. `mask`: what is in force while the frame is
 * built, which sigsuspend and its like make another one than the context's. */
static int deliver(i32 signal, const struct siginfo64 *info, struct ucontext64 *context, u64 mask_now) {
    struct thread *thread = this_thread();
    struct sigaction32 action = *action_of((i32)signal);
    struct sigcontext *registers = &context->registers;
    int forced = info->code > SI_USER && info->code != SI_TIMER && is_ours(signal);

    int sigsys_blocked = thread->waits_with_mask ? thread->wait_blocks_sigsys : thread->sigsys_blocked;

    if (signal == SIGSYS && sigsys_blocked) {
        thread->sigsys_waiting = 1;
        thread->sigsys_info = *info;
        return 0;
    }
    if (action.handler <= SIG_IGN) {
        /* Only the three that the runtime needs come here without a handler. */
        if (action.handler == SIG_DFL || forced) {
            die_of(signal, info, context);
        }
        return 0;
    }
    if (action.flags & SA_RESETHAND) {
        action_of(signal)->handler = SIG_DFL;
    }

    u64 sp = registers->rsp - 128;
    i32 nested = on_alternate(thread, registers->rsp);
    if ((action.flags & SA_ONSTACK) && alternate_state(thread, registers->rsp) == 0) {
        nested = 1;
        sp = (u64)thread->alternate.sp + thread->alternate.size;
    }
    u64 vectors = 0, vectors_size = 0;
    if (registers->fpstate != 0) {
        vectors_size = extended_size(registers->fpstate);
        vectors = ROUND_DOWN(sp - vectors_size, 64);
        sp = vectors;
    }
    sp = ROUND_DOWN(sp - sizeof(struct frame32), 16) - 8;

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
            die_of(SIGSEGV, &fault, context);
            return 0;
        }
        return deliver(SIGSEGV, &fault, context, mask_now);
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

__attribute__((noreturn)) void x32_enter_handler(struct frame *frame);

/* The program's registers, as entry.S pushes them. */
static struct frame *put_frame(struct thread *thread, const struct sigcontext *registers) {
    struct frame *frame = frame_of(thread);
    *frame = (struct frame){
        .r15 = registers->r15,
        .r14 = registers->r14,
        .r13 = registers->r13,
        .r12 = registers->r12,
        .rbp = registers->rbp,
        .rbx = registers->rbx,
        .r9 = registers->r9,
        .r8 = registers->r8,
        .r10 = registers->r10,
        .rdx = registers->rdx,
        .rsi = registers->rsi,
        .rdi = registers->rdi,
        .rax = registers->rax,
        .rip = registers->rip,
        .flags = registers->rflags,
    };
    thread->program_rsp = registers->rsp;
    return frame;
}

/* Into the program's handler, without the kernel's help: its vector registers are clean since the kernel
 * began ours. The mask is put in force on the way out, and a signal that comes before finds a call that is
 * over (entry.S). */
__attribute__((noreturn)) static void enter_handler(struct thread *thread, const struct ucontext64 *context) {
    struct frame *frame = put_frame(thread, &context->registers);
    thread->held_mask = context->mask;
    thread->pending = 1;
    x32_enter_handler(frame);
}

__attribute__((noreturn)) void x32_take_trap(struct frame *frame);

/* Into the runtime, of a call that has trapped, as if the kernel had returned there: its own return from a
 * handler costs a fifth of the trap. The vector registers are the program's again. */
__attribute__((noreturn)) static void take_trap(struct thread *thread, const struct ucontext64 *context) {
    struct frame *frame = put_frame(thread, &context->registers);
    frame->trapped = 1;
    thread->trap_mask = context->mask;
    thread->faults_blocked = context->mask & FAULTS;
    x32_take_trap(frame);
}

static void take_from_frame(struct sigcontext *registers, const struct thread *thread,
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
    registers->rcx = rip;
    registers->r11 = frame->flags;
    registers->rflags = frame->flags;
    registers->rip = rip;
    registers->rsp = thread->program_rsp;
}

static int between(u64 rip, const u8 *low, const u8 *high) { return rip >= (u64)low && rip < (u64)high; }

/* A fault's code in a signal that the program sent to itself: it comes when the call is over, and no
 * instruction after a `syscall` of the runtime's touches what it may not. */
static int was_sent(u64 rip) {
    const u8 *before = (const u8 *)rip - 2;
    return (before[0] == 0x0f && before[1] == 0x05) || rip == (u64)x32_door_done;
}

static void hold(struct thread *thread, i32 signal, const struct siginfo64 *info,
                 struct ucontext64 *context) {
    u64 rip = context->registers.rip;
    if (thread->held_count < HELD_SIGNALS) {
        thread->held[thread->held_count].info = *info;
        thread->held[thread->held_count++].signal = signal;
    }
    int takes_trap = between(rip, x32_trap_masked, x32_trap_taken);
    if (!thread->pending) {
        thread->held_mask = takes_trap ? thread->trap_mask : context->mask;
        thread->pending = 1;
    }
    context->mask |= ~FAULTS;
    if (takes_trap) {
        context->registers.rip = (u64)x32_trap_taken;
    }
    if (between(rip, x32_gate_check, x32_gate_done)) {
        context->registers.rip = (u64)x32_gate_given_up;
    } else if (between(rip, x32_door_check, x32_door_done)) {
        context->registers.rip = (u64)x32_door_given_up;
    }
}

/* The faults alone can come while a handler of ours has yet to begin or to end, when they were sent: the
 * kernel builds the frames of all that is let in before the first instruction runs. The mask of such a
 * context is no mask of the program's, so the signal waits for the context below. */
static int within_handler(const struct thread *thread, u64 sp) {
    return sp > thread->handler_stack && sp <= thread->handler_stack + thread->handler_stack_size;
}

static void put_back(struct thread *thread, i32 signal, const struct siginfo64 *info,
                     struct ucontext64 *context) {
    u64 mask = SIGNAL_BIT(signal);
    context->mask |= mask;
    thread->faults_blocked |= mask;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
    KERNEL_4(__NR_rt_tgsigqueueinfo, KERNEL_1(__NR_getpid, 0), KERNEL_1(__NR_gettid, 0), signal, info);
}

/* The program has set the trap flag. Instructions of a stub at which nothing of the site has happened are
 * none of its own; nor are the runtime's, which are not stepped through: the flag is set again on the way
 * back. */
static int steps_unseen(struct thread *thread, struct sigcontext *registers) {
    if (sites_is_at_start(registers->rip)) {
        return 1;
    }
    if (!between(registers->rip, __executable_start, etext) || sites_is_stub(registers->rip) ||
        between(registers->rip, x32_leave, x32_leave_end)) {
        return 0;
    }
    registers->rflags &= ~(u64)FLAG_TRAP;
    thread->stepping = 1;
    return 1;
}

/* Whether the context is that of a handler of the program's, about to begin. */
static int on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context) {
    struct sigcontext *registers = &context->registers;
    struct thread *thread = this_thread();
    int is_trap = signal == SIGSYS && interception_caught(info->code, info->error, registers->rip);
    if (is_trap && info->code == SYS_USER_DISPATCH) {
        u64 behind = sites_after_covered(registers->rip - CALL_SIZE, registers->rax, &registers->rflags);
        if (behind != 0) {
            registers->rip = behind;
            return 0;
        }
    }
    if (signal == SIGSYS && info->code == SYS_USER_DISPATCH && thread->dies_of_next_call) {
        thread_die(thread);
    }
    if (is_trap) {
        if (!(registers->rflags & FLAG_TRAP) && extended_restore(registers->fpstate)) {
            take_trap(thread, context);
        }
        registers->rcx = registers->rip;
        registers->rip = (u64)x32_enter_trapped;
        return 0;
    }
    if (signal == SIGTRAP && info->code == TRAP_TRACE && (registers->rflags & FLAG_TRAP) &&
        steps_unseen(thread, registers)) {
        return 0;
    }
    if (between(registers->rip, x32_leave, x32_leave_end)) {
        take_from_frame(registers, thread, frame_of(thread));
    } else if (between(registers->rip, __executable_start, etext) && !sites_is_stub(registers->rip)) {
        if (is_ours(signal) && info->code > SI_USER && !was_sent(registers->rip)) {
            if (between(registers->rip, x32_copy_touch, x32_copy_done)) {
                registers->rip = (u64)x32_copy_done;
                return 0;
            }
            if (registers->rip == (u64)x32_door_touch) {
                registers->rip = (u64)x32_door_shut;
                return 0;
            }
            complain(
                "the runtime itself failed: signal %d at %x + %x, touching %x; this is a mistake of x32run",
                (i64)signal, (u64)__executable_start, registers->rip - (u64)__executable_start,
                registers->cr2);
            die_of(signal, info, context);
            return 0;
        }
        if (within_handler(thread, registers->rsp)) {
            put_back(thread, signal, info, context);
        } else {
            hold(thread, signal, info, context);
        }
        return 0;
    } else {
        u64 covered = signal == SIGSEGV && info->code > SI_USER
                          ? sites_after_covered(registers->rip, registers->rax, &registers->rflags)
                          : 0;
        if (covered != 0) {
            registers->rip = covered;
            return 0;
        }
        u64 there = sites_in_program(registers->rip, registers->rflags, &registers->rax);
        registers->rip = there != 0 ? there : registers->rip;
    }
    int handled = deliver(signal, info, context, context->mask);
    go_on(registers);
    return handled;
}

static void x32_on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context) {
    struct counts *counts = this_thread()->counts;
    int is_counted = counts != NULL && signal != SIGSYS;
    u64 began = is_counted ? account_ticks() : 0;
    int handled = on_signal(signal, info, context);
    if (is_counted) {
        counts->signals++;
        u64 ticks = account_ticks() - began;
        counts->signal_ticks += ticks < ACCOUNT_LONGEST ? ticks : ACCOUNT_LONGEST;
    }
    if (handled && !settings.valgrind) {
        enter_handler(this_thread(), context);
    }
}

#define VECTOR_ROOM 4096U

__attribute__((noreturn, noinline)) static void deliver_held(struct thread *thread,
                                                             const struct frame *frame) {
    u8 vectors[VECTOR_ROOM] __attribute__((aligned(64)));
    struct ucontext64 context;
    u32 count = thread->held_count;
    struct held_signal held[HELD_SIGNALS];
    clear_bytes(&context, sizeof context);
    extended_save(vectors, sizeof vectors);
    context.flags = CONTEXT_EXTENDED | CONTEXT_STACK_SEGMENT;
    context.stack = (struct kernel_stack){thread->handler_stack, 0, 0, thread->handler_stack_size};
    context.mask = thread->held_mask;
    context.registers.fpstate = (u64)vectors;
    context.registers.cs = 0x33;
    context.registers.ss = 0x2b;
    take_from_frame(&context.registers, thread, frame);
    copy_bytes(held, thread->held, sizeof held);
    thread->held_count = 0;
    for (u32 i = 0; i < count && !thread->ends; i++) {
        /* As in the kernel: whatever the wait had let in is delivered before the first handler begins. */
        u64 mask = thread->waits_with_mask ? thread->wait_mask : context.mask;
        deliver(held[i].signal, &held[i].info, &context, mask);
        thread->waits_with_mask = 0;
    }
    thread->pending = 0;
    resume(&context);
}

/* From x32_leave: what was held is delivered, or, where nothing is, the mask alone is to be restored. */
void x32_release_pending(struct frame *frame) {
    struct thread *thread = this_thread();
    if (thread->held_count > 0) {
        deliver_held(thread, frame);
    }
    thread->pending = 0;
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
    before = *action_of((i32)signal);
    if (before.handler <= SIG_IGN && !is_ours((i32)signal)) {
        /* Inherited, or reset by SA_RESETHAND. */
        struct kernel_sigaction kernel;
        if (!failed(KERNEL_4(__NR_rt_sigaction, signal, 0, &kernel, 8)) && kernel.handler <= SIG_IGN) {
            before.handler = (u32)kernel.handler;
        }
    }
    if (act != 0) {
        action.flags &= UAPI_FLAGS;
        if (is_ours((i32)signal) && action.handler == SIG_IGN) {
            door_is_open(); /* found out by a fault */
        }
        action.mask &= ~NEVER_BLOCKED;
        *action_of((i32)signal) = action;
        long result = tell_kernel((i32)signal, &action);
        if (failed(result)) {
            *action_of((i32)signal) = before;
            return result;
        }
    }
    if (old != 0 && WRITE_USER(old, before) < 0) {
        return -EFAULT;
    }
    return 0;
}

/* signal_fault(), arch/x86/kernel/signal.c: SIGSEGV is forced, which ends whoever blocks or ignores it. */
static void bad_frame(struct thread *thread) {
    signals_block_until_leaving(thread);
    if ((thread->held_mask & SIGNAL_BIT(SIGSEGV)) || action_of(SIGSEGV)->handler == SIG_IGN) {
        action_of(SIGSEGV)->handler = SIG_DFL;
    }
    thread->held_count -= thread->held_count == HELD_SIGNALS;
    struct held_signal *held = &thread->held[thread->held_count++];
    clear_bytes(held, sizeof *held);
    held->signal = held->info.signo = SIGSEGV;
    held->info.code = SI_KERNEL;
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
    if (thread->pending) {
        return -RESTART_AFTER_SIGNAL;
    }
    u64 address = thread->program_rsp - sizeof frame.return_address;
    if (read_user(&frame, address, offsetof(struct frame32, info)) < 0) {
        KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
        bad_frame(thread);
        return (long)call->rax;
    }
    if (thread->pending) {
        /* A fault was sent meanwhile. */
        thread->held_mask = before;
        return -RESTART_AFTER_SIGNAL;
    }
    clear_bytes(&context, sizeof context);
    context.flags = frame.context.flags;
    context.stack = (struct kernel_stack){thread->handler_stack, 0, 0, thread->handler_stack_size};
    context.registers = frame.context.registers;
    /* While the mask is the handler's: reading the program's text may fault. */
    go_on(&context.registers);
    context.mask = signals_note_mask(thread, frame.context.mask & ~NEVER_BLOCKED);
    thread->alternate =
        (struct stack32){frame.context.stack_sp, frame.context.stack_flags, frame.context.stack_size};
    signals_release_sigsys(thread);
    resume(&context);
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
    siginfo_to_x32(&narrow_info, &info);
    return WRITE_USER((u32)frame->rsi, narrow_info) < 0 ? -EFAULT : result;
}

static long queue(int number, u64 a, u64 b, u64 signal, u64 address) {
    struct siginfo32 given;
    struct siginfo64 info;
    if (READ_USER(given, (u32)address) < 0) {
        return -EFAULT;
    }
    given.signo = (i32)signal;
    siginfo_from_x32(&info, &given);
    return number == __NR_rt_sigqueueinfo ? KERNEL_3(number, a, signal, &info)
                                          : KERNEL_4(number, a, b, signal, &info);
}

long call_rt_sigqueueinfo(struct frame *frame) {
    return queue(__NR_rt_sigqueueinfo, frame->rdi, 0, frame->rsi, frame->rdx);
}

long call_rt_tgsigqueueinfo(struct frame *frame) {
    return queue(__NR_rt_tgsigqueueinfo, frame->rdi, frame->rsi, frame->rdx, frame->r10);
}

/* One number for both widths, but copy_siginfo_from_user_any(), kernel/signal.c, reads an x32 caller's
 * siginfo as a 32-bit one. */
long call_pidfd_send_signal(struct frame *frame) {
    struct siginfo32 given;
    struct siginfo64 info;
    u64 arguments[6] = {frame->rdi, frame->rsi, 0, frame->r10, 0, 0};
    if (frame->rdx == 0 || !(frame->rax & X32_BIT)) {
        return forward(frame, __NR_pidfd_send_signal);
    }
    if (READ_USER(given, (u32)frame->rdx) < 0) {
        return -EFAULT;
    }
    siginfo_from_x32(&info, &given);
    arguments[2] = (u64)&info;
    return x32_gate(__NR_pidfd_send_signal, arguments);
}

/* do_sigaltstack(), kernel/signal.c */
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
        if (on_alternate(thread, thread->program_rsp)) {
            return -EPERM;
        }
        i32 mode = wanted.flags & ~(i32)SS_AUTODISARM;
        if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE) {
            return -EINVAL;
        }
        if (mode == SS_DISABLE) {
            wanted.sp = wanted.size = 0;
        } else if (wanted.size < MINSIGSTKSZ) {
            return -ENOMEM;
        }
        thread->alternate = wanted;
    }
    return old != 0 && WRITE_USER(old, before) < 0 ? -EFAULT : 0;
}
