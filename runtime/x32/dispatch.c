#include "calls.h"
#include "offsets.h"
#include "settings.h"
#include "signals.h"
#include "site_places.h"
#include "sites.h"
#include "stub_users.h"
#include "table.h"
#include "trace.h"
#include "user_memory.h"

long forward(struct frame *frame, u64 number) {
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    return x32_gate((long)number, arguments);
}

#define I386_GETPID 20
#define NO_I386_ENTRY -4095L /* entry.S; the answer of no call */

static u8 i386_state;
enum { NOT_KNOWN, THERE, NOT_THERE };

/* What the first use finds: where there is no such entry it is a fault. */
static long use_i386_entry(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
    long result = settings.valgrind || settings.no_i386 ? NO_I386_ENTRY
                                                        : FOR_PROGRAM(x32_i386(number, a, b, c, d, e, f));
    if (i386_state == NOT_KNOWN && result != -RESTART_AFTER_SIGNAL) {
        __atomic_store_n(&i386_state, result == NO_I386_ENTRY ? NOT_THERE : THERE, __ATOMIC_RELAXED);
    }
    return result == NO_I386_ENTRY ? -ENOSYS : result;
}

int i386_entry_is_there(void) {
    struct thread *thread = this_thread();
    if (i386_state == NOT_KNOWN) {
        /* A process with SIGSEGV blocked would die of the fault. */
        u64 before = signals_let_faults_in(thread);
        use_i386_entry(I386_GETPID, 0, 0, 0, 0, 0, 0);
        signals_put_faults_back(thread, before);
    }
    return i386_state != NOT_THERE;
}

long i386_call_6(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
    if (i386_state == NOT_THERE || (this_thread()->faults_blocked && !i386_entry_is_there())) {
        return -ENOSYS;
    }
    long result = use_i386_entry(number, a, b, c, d, e, f);
    if (this_thread()->counts != NULL) {
        account_i386(this_thread()->counts);
    }
    return result;
}

/* A number without bit 30 is a 64-bit call, which an x32 program may make: with 64-bit structures, as it is.
 * But for those by which the process would get away from the runtime. */
static long answer_native(struct frame *frame, u64 number) {
    switch (number) {
    case __NR_rt_sigaction:
    case __NR_rt_sigreturn:
    case __NR_sigaltstack:
    case __NR_execve:
    case __NR_execveat:
    case __NR_ptrace:
        return -ENOSYS;
    default:
        break;
    }
    const struct row *row = table_row(number | X32_BIT);
    if (row->refused != NULL) {
        return -ENOSYS;
    }
    return row->call != NULL && number < 512 ? row->call(frame) : forward(frame, number);
}

long answer_call(struct frame *frame, u64 number) {
    if (!(number & X32_BIT)) {
        return answer_native(frame, number);
    }
    const struct row *row = table_row(number);
    if (row->name == NULL || row->refused != NULL) {
        return -ENOSYS;
    }
    return row->call != NULL ? row->call(frame) : forward(frame, table_native(number));
}

static void dispatch(struct frame *frame) {
    u64 number = (u32)frame->rax;
    if (__builtin_expect(this_thread()->stepping, 0)) {
        this_thread()->stepping = 0;
        frame->flags |= FLAG_TRAP;
    }
    stub_users_entered(this_thread(), frame->rip);
    if (this_thread()->dies_of_next_call) {
        thread_die(this_thread());
    }
    if (frame->trapped) {
        trace_count_trap();
        if (frame->trapped == TRAPPED_I386) {
            i386_dispatch(frame);
            return;
        }
        if (!is_stub(frame->rip)) {
            sites_rewrite(frame->rip - 2, number);
        }
    }
    if (settings.trace) {
        trace_before(frame, number);
    }
    long result = answer_call(frame, number);
    if (settings.trace) {
        trace_after(frame, number, result);
    }
    if (result == -RESTART_AFTER_SIGNAL) {
        /* As the kernel: back to the instruction, with the number in rax, once the handler has run. */
        frame->rip = sites_call_before(frame->rip);
        frame->rax = number;
        return;
    }
    frame->rax = (u64)result;
    if (frame->trapped) {
        frame->rip = sites_go_on(frame->rip, frame->rax, &frame->flags);
    }
}

/* From entry.S, for every call that is not made by a stub. */
void x32_dispatch(struct frame *frame) {
    struct counts *counts = this_thread()->counts;
    if (__builtin_expect(counts != NULL, 0)) {
        account_dispatch(frame, counts, dispatch);
    } else {
        dispatch(frame);
    }
    if (__builtin_expect(frame->trapped == TRAPPED_I386, 0)) {
        i386_leave(frame);
    }
}
