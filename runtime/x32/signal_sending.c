#include "calls.h"
#include "signal_parts.h"
#include "user_memory.h"

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
        /* The kernel looks at the descriptor first. */
        return KERNEL_4(__NR_pidfd_send_signal, frame->rdi, frame->rsi, UNREADABLE, frame->r10);
    }
    siginfo_from_x32(&info, &given);
    arguments[2] = (u64)&info;
    return x32_gate(__NR_pidfd_send_signal, arguments);
}
