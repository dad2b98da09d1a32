#include "signals.h"
#include "account.h"
#include "diagnostics.h"
#include "interception.h"
#include "offsets.h"
#include "settings.h"
#include "signal_parts.h"
#include "site_places.h"
#include "sites.h"
#include "vdso.h"
#include "xstate.h"
#include <linux/audit.h>

extern u8 __executable_start[], etext[];
extern u8 x32_leave[], x32_leave_masked[], x32_leave_end[], x32_sigreturn[], x32_sigreturn_end[];
extern u8 x32_gate_check[], x32_gate_done[], x32_gate_given_up[];
extern u8 x32_i386_check[], x32_i386_touch[], x32_i386_done[], x32_i386_missing[], x32_i386_given_up[];
extern u8 x32_restore[], x32_restore_end[];
extern u8 x32_copy_touch[], x32_copy_done[], x32_enter_trapped[], x32_enter_i386[], x32_trap_masked[],
    x32_trap_taken[];

__attribute__((noreturn)) void x32_enter_handler(struct frame *frame);
void x32_begin_handler(i32 signal, struct siginfo64 *info, struct ucontext64 *context);

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
 * handler costs a fifth of the trap. The vector registers are the program's again, and the mask has been all
 * the time (signal_actions.c): to block signals and let them in again costs a seventh. */
__attribute__((noreturn)) static void take_trap(struct thread *thread, const struct ucontext64 *context,
                                                u64 trapped) {
    struct frame *frame = put_frame(thread, &context->registers);
    frame->trapped = trapped;
    thread->trap_mask = context->mask;
    /* Those that put_back has blocked stay so where a held signal keeps the mask from being put in force. */
    u64 put_back = thread->puts_mask_back ? thread->faults_blocked : 0;
    thread->faults_blocked = (context->mask & FAULTS) | put_back;
    x32_take_trap(frame);
}

static int between(u64 rip, const u8 *low, const u8 *high) { return rip >= (u64)low && rip < (u64)high; }

/* A fault's code in a signal that the program sent to itself: it comes when the call is over, and no
 * instruction after a `syscall` of the runtime's touches what it may not. */
static int was_sent(u64 rip) {
    const u8 *before = (const u8 *)rip - 2;
    return is_call(before) || rip == (u64)x32_i386_done;
}

static void hold(struct thread *thread, i32 signal, const struct siginfo64 *info,
                 struct ucontext64 *context) {
    u64 rip = context->registers.rip;
    signals_add_held(thread, signal, info);
    int takes_trap = between(rip, x32_trap_masked, x32_trap_taken);
    if (!thread->pending || takes_trap) {
        /* SIGSYS is blocked for a call at most (x32_gate_without_sigsys). */
        thread->held_mask = (takes_trap ? thread->trap_mask : context->mask) & ~SIGNAL_BIT(SIGSYS);
        thread->pending = 1;
    }
    context->mask |= ~FAULTS;
    if (takes_trap) {
        context->registers.rip = (u64)x32_trap_taken;
    }
    if (between(rip, x32_gate_check, x32_gate_done)) {
        context->registers.rip = (u64)x32_gate_given_up;
    } else if (between(rip, x32_i386_check, x32_i386_done)) {
        context->registers.rip = (u64)x32_i386_given_up;
    }
}

/* While a handler of ours has yet to begin or to end, what the program lets in can come to that of a trap,
 * and to others the faults alone, when they were sent: the kernel builds the frames of all that is let in
 * before the first instruction runs. */
static int within_handler(const struct thread *thread, u64 sp) {
    return sp > thread->handler_stack && sp <= thread->handler_stack + thread->handler_stack_size;
}

/* The mask of a handler that blocks all that can be is no mask of the program's, so the signal waits for the
 * context below. */
#define BLOCKABLE (~(FAULTS | NEVER_BLOCKED))
static int blocks_all(const struct ucontext64 *context) { return (~context->mask & BLOCKABLE) == 0; }

/* A fault that was sent, where all but faults are blocked until the program is entered: it waits for that in
 * the kernel. Where the program itself blocks all others, it may have to interrupt a call. */
static int is_put_back(const struct thread *thread, i32 signal, const struct ucontext64 *context) {
    const struct sigcontext *registers = &context->registers;
    if (!(SIGNAL_BIT(signal) & FAULTS) || registers->rip == (u64)x32_leave_masked) {
        return 0;
    }
    /* Under valgrind a handler cannot block anything beyond its end, so that it would come again at once. */
    int is_leaving = thread->pending || between(registers->rip, x32_sigreturn, x32_sigreturn_end);
    return (is_leaving && !settings.valgrind) ||
           (within_handler(thread, registers->rsp) && blocks_all(context));
}

void signals_send_again(i32 signal, const struct siginfo64 *info) {
    KERNEL_4(__NR_rt_tgsigqueueinfo, KERNEL_1(__NR_getpid, 0), KERNEL_1(__NR_gettid, 0), signal, info);
}

static void put_back(struct thread *thread, i32 signal, const struct siginfo64 *info,
                     struct ucontext64 *context) {
    u64 mask = SIGNAL_BIT(signal);
    context->mask |= mask;
    thread->faults_blocked |= mask & FAULTS;
    thread->puts_mask_back = 1;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
    signals_send_again(signal, info);
}

/* Of SIGSYS, whose handler lets signals in, where it does not end in the runtime: none may be held when it
 * returns to the program, and from here on none is. */
static void block_in_handler(void) {
    u64 mask = ~FAULTS;
    KERNEL_4(__NR_rt_sigprocmask, SIG_BLOCK, &mask, 0, 8);
}

/* What has come in the handler of SIGSYS, onto the program's context: to be sent again it would have to wait
 * behind those that were sent after it, and it would be lost where the queue is full. */
static int deliver_held(struct thread *thread, struct ucontext64 *context) {
    int handled = signals_deliver_held(thread, context);
    thread->pending = 0;
    return handled;
}

/* Whether the program's handler of SIGSYS blocks one of those that are held. */
static int keeps_held_out(const struct thread *thread) {
    actions_hold();
    const struct sigaction32 action = *action_of(SIGSYS);
    actions_let_go();
    int found = 0;
    for (u32 i = 0; i < thread->held_count && action.handler > SIG_IGN; i++) {
        found |= (action.mask & SIGNAL_BIT(thread->held[i].signal)) != 0;
    }
    return found;
}

/* SIGSYS that was sent, and what has come in its handler: the kernel lets its frame be the first. Those that
 * it is to keep out come first all the same, and it waits for them. */
static int deliver_sigsys(struct thread *thread, const struct siginfo64 *info, struct ucontext64 *context) {
    if (keeps_held_out(thread)) {
        signals_send_again(SIGSYS, info);
        return deliver_held(thread, context);
    }
    int handled = signals_deliver(SIGSYS, info, context, context->mask);
    return deliver_held(thread, context) || handled;
}

/* The program has set the trap flag. Instructions of a stub at which nothing of the site has happened are
 * none of its own, nor are those of a function of the vDSO but the first; nor are the runtime's, which are
 * not stepped through: the flag is set again on the way back. */
static int steps_unseen(struct thread *thread, struct sigcontext *registers) {
    if (sites_is_at_start(registers->rip) || vdso_is_at(registers->rip) ||
        vdso_begin_again(registers->rip) != registers->rip) {
        return 1;
    }
    if (!between(registers->rip, __executable_start, etext) || is_stub(registers->rip) ||
        between(registers->rip, x32_leave, x32_leave_end)) {
        return 0;
    }
    registers->rflags &= ~(u64)FLAG_TRAP;
    thread->stepping = 1;
    return 1;
}

/* The signal has ended a call, which is to be made again, with its whole time. A file is closed all the same.
 */
static int was_interrupted(const struct sigcontext *registers) {
    return registers->rax == -(u64)EINTR && ((u32)frame_of(this_thread())->rax & ~X32_BIT) != __NR_close;
}

/* In the kernel's vDSO, for whose code the program has no tables: the signal waits until the function
 * returns, as in the runtime. A fault cannot wait. */
static int waits_for_vdso(struct thread *thread, i32 signal, const struct siginfo64 *info,
                          struct ucontext64 *context) {
    int is_fault = info->code > SI_USER && (is_ours(signal) || signal == SIGTRAP);
    if (!vdso_is_at(context->registers.rip) || is_fault) {
        return 0;
    }
    if (is_put_back(thread, signal, context)) {
        put_back(thread, signal, info, context);
        return 1;
    }
    if (settings.valgrind || !vdso_return_to_runtime(thread)) {
        return 0;
    }
    hold(thread, signal, info, context);
    return 1;
}

/* In the runtime itself. */
static void on_signal_within(struct thread *thread, i32 signal, const struct siginfo64 *info,
                             struct ucontext64 *context, int interrupts) {
    struct sigcontext *registers = &context->registers;
    if (is_ours(signal) && info->code > SI_USER && !was_sent(registers->rip)) {
        if (between(registers->rip, x32_copy_touch, x32_copy_done)) {
            registers->rip = (u64)x32_copy_done;
            return;
        }
        if (registers->rip == (u64)x32_i386_touch) {
            registers->rip = (u64)x32_i386_missing;
            return;
        }
        complain("the runtime itself failed: signal %d at %x + %x, touching %x; this is a mistake of x32run",
                 (i64)signal, (u64)__executable_start, registers->rip - (u64)__executable_start,
                 registers->cr2);
        signals_die_of(signal, info, context);
        return;
    }
    if (is_put_back(thread, signal, context)) {
        put_back(thread, signal, info, context);
        return;
    }
    hold(thread, signal, info, context);
    if (!interrupts && was_interrupted(registers) && registers->rip == (u64)x32_gate_done) {
        registers->rip = (u64)x32_gate_given_up;
    }
}

/* Under valgrind, on the way to where a handler of the program's or a held signal has left it: all registers
 * are still in the context, which remains so where there is no handler. */
static int on_signal_restoring(struct thread *thread, i32 signal, const struct siginfo64 *info,
                               struct ucontext64 *context) {
    const struct sigcontext before = context->registers;
    context->registers = thread->restores->registers;
    context->mask = thread->restores->mask;
    context->registers.fpstate = before.fpstate; /* they are in force already */
    int handled = signal == SIGSYS ? deliver_sigsys(thread, info, context)
                                   : signals_deliver(signal, info, context, context->mask);
    if (!handled) {
        context->registers = before;
    }
    return handled;
}

/* valgrind gives the program its mask back when a handler of ours returns, and none of the flags: into the
 * program's handler it goes by way of the runtime, which puts both in force. A signal that comes meanwhile
 * finds a call that is over, as in enter_handler. */
static void return_into_handler(struct thread *thread, struct ucontext64 *context) {
    const struct frame *frame = put_frame(thread, &context->registers);
    thread->held_mask = context->mask;
    thread->pending = 1;
    context->registers.rsp = (u64)frame;
    context->registers.rip = (u64)x32_leave;
}

/* Whether the runtime, and not the program, has made the kernel look for signals of the process: by a trap,
 * or by the mask that it has put in force again. */
static int is_found_by_runtime(u64 rip) {
    return (rip == (u64)x32_begin_handler || rip == (u64)x32_leave_masked) && !settings.valgrind;
}

/* Whether the call that was caught is one by `int $0x80`. */
static int is_by_i386_entry(const struct siginfo64 *info) {
    u32 architecture;
    copy_bytes(&architecture, info->rest + 12, sizeof architecture); /* si_arch */
    return architecture == AUDIT_ARCH_I386;
}

/* Whether the context is that of a handler of the program's, about to begin. */
static int on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context) {
    struct sigcontext *registers = &context->registers;
    struct thread *thread = this_thread();
    int is_trap = signal == SIGSYS &&
                  interception_caught(info->code, info->error, registers->rip, thread->guards_sigsys);
    u64 trapped = is_trap && is_by_i386_entry(info) ? TRAPPED_I386 : TRAPPED;
    if (is_trap && trapped == TRAPPED && info->code == SYS_USER_DISPATCH) {
        u64 behind = sites_after_covered(registers->rip - CALL_SIZE, registers->rax, &registers->rflags);
        if (behind != 0 || sites_was_held(registers->rip)) {
            block_in_handler();
            registers->rip = behind != 0 ? behind : registers->rip - CALL_SIZE;
            return deliver_held(thread, context);
        }
    }
    if (signal == SIGSYS && info->code == SYS_USER_DISPATCH && thread->dies_of_next_call) {
        thread_die(thread);
    }
    if (is_trap) {
        thread->i386_rcx = registers->rcx;
        thread->i386_r11 = registers->r11;
        if (!(registers->rflags & FLAG_TRAP) && xstate_restore(registers->fpstate)) {
            take_trap(thread, context, trapped);
        }
        block_in_handler();
        if (thread->pending) {
            context->mask |= ~FAULTS; /* as where it is held in the runtime */
        }
        registers->rcx = registers->rip;
        registers->rip = (u64)(trapped == TRAPPED_I386 ? x32_enter_i386 : x32_enter_trapped);
        return 0;
    }
    if (signal == SIGSYS) {
        block_in_handler();
    }
    if (signal == SIGTRAP && info->code == TRAP_TRACE && (registers->rflags & FLAG_TRAP) &&
        steps_unseen(thread, registers)) {
        return 0;
    }
    int interrupts = signal != SIGSYS || info->code > SI_USER || !signals_keeps_sigsys_out(thread);
    if (!interrupts) {
        signals_guard_sigsys(thread, 1);
    }
    if (is_found_by_runtime(registers->rip) && signals_pass_on(signal, info)) {
        return 0;
    }
    if (waits_for_vdso(thread, signal, info, context)) {
        return 0;
    }
    if (between(registers->rip, x32_restore, x32_restore_end) && !is_put_back(thread, signal, context)) {
        return on_signal_restoring(thread, signal, info, context);
    }
    int leaves = 0;
    if (between(registers->rip, x32_leave, x32_leave_end) && !is_put_back(thread, signal, context)) {
        if (registers->rip == (u64)x32_leave_masked) {
            thread->pending = 0;
        } else if (settings.valgrind && thread->pending) {
            context->mask = thread->held_mask; /* which is about to be put in force */
        }
        leaves = settings.valgrind;
        signals_take_from_frame(registers, thread, frame_of(thread));
    } else if (between(registers->rip, __executable_start, etext) && !is_stub(registers->rip)) {
        on_signal_within(thread, signal, info, context, interrupts);
        return 0;
    } else {
        u64 covered = signal == SIGSEGV && info->code > SI_USER
                          ? sites_after_covered(registers->rip, registers->rax, &registers->rflags)
                          : 0;
        if (covered != 0) {
            registers->rip = covered;
            return 0;
        }
        u64 there = 0;
        if (!interrupts && was_interrupted(registers)) {
            there = sites_call_again(registers->rip, &registers->rax);
        }
        there = there != 0 ? there : sites_in_program(registers->rip, registers->rflags, &registers->rax);
        registers->rip = there != 0 ? there : vdso_begin_again(registers->rip);
    }
    int handled = signal == SIGSYS ? deliver_sigsys(thread, info, context)
                                   : signals_deliver(signal, info, context, context->mask);
    signals_go_on(registers);
    return handled || leaves;
}

/* Under valgrind, whose context has no vector registers: they are still those of the program. */
static int on_signal_under_valgrind(i32 signal, struct siginfo64 *info, struct ucontext64 *context) {
    u8 vectors[1024] __attribute__((aligned(64))); /* valgrind knows AVX at most */
    xstate_save(vectors, sizeof vectors);
    context->registers.fpstate = (u64)vectors;
    int handled = on_signal(signal, info, context);
    if (handled) {
        return_into_handler(this_thread(), context);
    }
    return handled;
}

void x32_on_signal(i32 signal, struct siginfo64 *info, struct ucontext64 *context) {
    signals_as_sent(info);
    struct counts *counts = this_thread()->counts;
    int is_counted = counts != NULL && signal != SIGSYS;
    u64 began = is_counted ? account_ticks() : 0;
    int handled = settings.valgrind ? on_signal_under_valgrind(signal, info, context)
                                    : on_signal(signal, info, context);
    if (is_counted) {
        counts->signals++;
        u64 ticks = account_ticks() - began;
        if (ticks < ACCOUNT_LONGEST) {
            counts->signal_ticks += ticks;
            counts->timed_signals++;
        }
    }
    if (handled && !settings.valgrind) {
        enter_handler(this_thread(), context);
    }
}
