#include "calls.h"
#include "code_writes.h"
#include "settings.h"
#include "siginfo.h"
#include "signal_parts.h"
#include "user_memory.h"

/* A signal of SI_QUEUE may be one for a thread. */
static u32 queues_for_threads;

/* Whether it was surely sent to the process, and the kernel prefers the first thread for it whatever thread
 * finds it (complete_signal(), kernel/signal.c). Of the kernel's own these are the signals of a terminal and
 * of the timer of real time: others may be for a thread (F_SETOWN_EX), for the running one (clocks of CPU
 * time), or for a child's parent. */
static int is_for_first_thread(i32 signal, const struct siginfo64 *info, i32 process) {
    i32 sender;
    copy_bytes(&sender, info->rest, sizeof sender);
    switch (info->code) {
    case SI_USER:
        return !is_ours(signal) && signal != SIGPIPE;
    case SI_MESGQ:
        return 1;
    case SI_QUEUE:
        return sender == process && !queues_for_threads;
    case SI_KERNEL:
        return signal == SIGALRM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT ||
               signal == SIGTSTP || signal == SIGWINCH;
    default:
        return 0;
    }
}

static int waits_in_queue(i32 signal) {
    u64 pending = 0;
    KERNEL_2(__NR_rt_sigpending, &pending, 8);
    return (pending & SIGNAL_BIT(signal)) != 0;
}

/* A thread other than the first may send no code of the kernel's: the code is in si_errno, which has none of
 * these signals. */
#define PASSED_ON -0x58333200

void signals_as_sent(struct siginfo64 *info) {
    if (info->code == PASSED_ON) {
        info->code = info->error;
        info->error = 0;
    }
}

/* Where a line of /proc/PID/status has what follows its key; the size if there is no such line. */
static long place_after(const char *text, long size, const char *key) {
    u32 matched = 0;
    long at = 0;
    for (; at < size && key[matched] != 0; at++) {
        matched = text[at] == key[matched] ? matched + 1 : text[at] == key[0];
    }
    return at;
}

/* A set of signals; all of them if it is not there. */
static u64 signals_after(const char *text, long size, const char *key) {
    long at = place_after(text, size, key);
    if (at + 16 > size) {
        return ~0UL;
    }
    u64 set = 0;
    for (long end = at + 16; at < end; at++) {
        set = set << 4 | (u64)(text[at] <= '9' ? text[at] - '0' : text[at] - 'a' + 10);
    }
    return set;
}

enum owner { FIRST_THREAD, SAME_IN_QUEUE, OTHER_IN_QUEUE, THIS_THREAD };

/* Who has a signal to the process that this thread does not take: the first thread, if it can take one and
 * does not block this one, and one of its number waits already or not. That is the same signal, unless its
 * number has a queue, which has to keep its order. */
static enum owner owner_of(i32 signal) {
    static const char state[] = "\nState:\t", waiting[] = "\nShdPnd:\t", blocked[] = "\nSigBlk:\t";
    char text[1800];
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, "/proc/self/status", O_CLOEXEC);
    if (failed(fd)) {
        return THIS_THREAD;
    }
    long size = KERNEL_3(__NR_read, fd, text, sizeof text);
    KERNEL_1(__NR_close, fd);
    long letter = place_after(text, size, state);
    char is = letter < size ? text[letter] : 'X';
    int can_take = is != 'Z' && is != 'X' && is != 't' && is != 'T'; /* ended, traced, stopped */
    if (!can_take || (signals_after(text, size, blocked) & SIGNAL_BIT(signal))) {
        return THIS_THREAD;
    }
    int is_waiting = (signals_after(text, size, waiting) & SIGNAL_BIT(signal)) != 0;
    return !is_waiting ? FIRST_THREAD : signal < SIGRTMIN ? SAME_IN_QUEUE : OTHER_IN_QUEUE;
}

static const u64 a_moment[2] = {0, 50000};
enum { MOMENTS = 1000 }; /* a tenth of a second, with the kernel's slack */

int signals_pass_on(i32 signal, struct siginfo64 *info) {
    long process = KERNEL_1(__NR_getpid, 0);
    if (!x32_several_threads || !is_for_first_thread(signal, info, (i32)process) ||
        process == KERNEL_1(__NR_gettid, 0)) {
        return 0;
    }
    enum owner owner = owner_of(signal);
    if (owner != FIRST_THREAD) {
        return owner == SAME_IN_QUEUE;
    }
    struct siginfo64 passed = *info;
    passed.error = info->code;
    passed.code = PASSED_ON;
    /* The first thread has been woken for it, and the kernel chooses it for no other before it has run. Those
     * of one number that are queued have to keep their order. */
    if (signal < SIGRTMIN) {
        KERNEL_2(__NR_nanosleep, a_moment, 0);
    }
    if (failed(KERNEL_3(__NR_rt_sigqueueinfo, process, signal, &passed))) {
        return 0;
    }
    for (int i = 0; i < MOMENTS; i++) {
        KERNEL_2(__NR_nanosleep, a_moment, 0);
        if (!waits_in_queue(signal)) {
            return 1;
        }
    }
    static const u64 no_time[2] = {0, 0};
    u64 mask = SIGNAL_BIT(signal);
    if (KERNEL_4(__NR_rt_sigtimedwait, &mask, info, no_time, 8) != signal) {
        return 1;
    }
    signals_as_sent(info);
    return 0;
}

/* Not one for this thread alone, nor one that the first thread has come to block. */
static int waits_for_first(i32 signal) {
    enum owner owner = owner_of(signal);
    return owner == SAME_IN_QUEUE || owner == OTHER_IN_QUEUE;
}

/* `result`: of a call that sent it, perhaps to this process. A kernel interrupts the first thread before the
 * call ends, so that its handler runs before anything that the sender lets it do next. Here the sender's next
 * trap could find the signal first: the call ends when the first thread has taken it. */
static long let_first_take(long result, u64 number) {
    i32 signal = (i32)number;
    if (result != 0 || !x32_several_threads || signal < 1 || signal > SIGNALS || is_ours(signal) ||
        settings.valgrind || KERNEL_1(__NR_getpid, 0) == KERNEL_1(__NR_gettid, 0)) {
        return result;
    }
    signals_block_until_leaving(this_thread());
    for (int i = 0; i < MOMENTS && waits_in_queue(signal) && waits_for_first(signal); i++) {
        KERNEL_2(__NR_nanosleep, a_moment, 0);
    }
    return result;
}

long call_kill(struct frame *frame) { return let_first_take(forward(frame, __NR_kill), frame->rsi); }

static long queue(int number, u64 a, u64 b, u64 signal, u64 address) {
    struct siginfo32 given;
    struct siginfo64 info;
    if (READ_USER(given, (u32)address) < 0) {
        return -EFAULT;
    }
    given.signo = (i32)signal;
    siginfo_from_x32(&info, &given);
    return number == __NR_rt_sigqueueinfo ? let_first_take(KERNEL_3(number, a, signal, &info), signal)
                                          : KERNEL_4(number, a, b, signal, &info);
}

long call_rt_sigqueueinfo(struct frame *frame) {
    return queue(__NR_rt_sigqueueinfo, frame->rdi, 0, frame->rsi, frame->rdx);
}

long call_rt_tgsigqueueinfo(struct frame *frame) {
    queues_for_threads = 1;
    return queue(__NR_rt_tgsigqueueinfo, frame->rdi, frame->rsi, frame->rdx, frame->r10);
}

/* One number for both widths, but copy_siginfo_from_user_any(), kernel/signal.c, reads an x32 caller's
 * siginfo as a 32-bit one. */
long call_pidfd_send_signal(struct frame *frame) {
    struct siginfo32 given;
    struct siginfo64 info;
    u64 arguments[6] = {frame->rdi, frame->rsi, 0, frame->r10, 0, 0};
    if (frame->rdx == 0 || !(frame->rax & X32_BIT)) {
        return let_first_take(forward(frame, __NR_pidfd_send_signal), frame->rsi);
    }
    if (READ_USER(given, (u32)frame->rdx) < 0) {
        /* The kernel looks at the descriptor first. */
        return KERNEL_4(__NR_pidfd_send_signal, frame->rdi, frame->rsi, UNREADABLE, frame->r10);
    }
    siginfo_from_x32(&info, &given);
    arguments[2] = (u64)&info;
    return let_first_take(x32_gate(__NR_pidfd_send_signal, arguments), frame->rsi);
}
