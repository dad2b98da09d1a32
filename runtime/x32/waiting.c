#include "calls.h"
#include "iovecs.h"
#include "signals.h"
#include "space.h"
#include "user_memory.h"
#include "x32.h"

#define SYS_BIT SIGNAL_BIT(SIGSYS)

/* The mask that a call puts in force while it waits, without SIGSYS: with it blocked, the first call of a
 * handler that is not rewritten would end the process. With it where the thread guards. The address to hand
 * on: the program's own where nothing has to change.
 */
static u64 allowed(u64 address, u64 size, u64 *mask) {
    if (address == 0 || size != 8 || read_user(mask, address, 8) < 0) {
        return address;
    }
    this_thread()->wait_blocks_sigsys = (*mask & SYS_BIT) != 0;
    *mask &= ~SYS_BIT;
    this_thread()->wait_mask = *mask;
    this_thread()->waits_with_mask = 1;
    if (this_thread()->guards_sigsys && signals_keeps_sigsys_out(this_thread())) {
        *mask |= SYS_BIT;
    }
    return (u64)mask;
}

/* A signal that is held while the call is made is delivered with the call's mask; one that comes later is
 * not. */
static long wait(long number, const u64 arguments[6]) {
    struct thread *thread = this_thread();
    if (thread->waits_with_mask && !thread->wait_blocks_sigsys && signals_hold_waiting_sigsys(thread)) {
        return -EINTR;
    }
    long result = x32_gate(number, arguments);
    if (result == -RESTART_AFTER_SIGNAL || !thread->pending) {
        thread->waits_with_mask = 0;
    }
    return result;
}

long call_rt_sigsuspend(struct frame *frame) {
    u64 mask;
    u64 arguments[6] = {allowed(frame->rdi, frame->rsi, &mask), frame->rsi, 0, 0, 0, 0};
    return wait(__NR_rt_sigsuspend, arguments);
}

/* The last argument points to a pair of 64-bit words, in x32 too: a mask's address and its size. */
static long wait_with_pair(long number, const struct frame *frame) {
    u64 pair[2], mask;
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    if (frame->r9 != 0 && READ_USER(pair, frame->r9) == 0) {
        u64 there = allowed(pair[0], pair[1], &mask);
        if (there != pair[0]) {
            pair[0] = there;
            arguments[5] = (u64)pair;
        }
    }
    return wait(number, arguments);
}

long call_pselect6(struct frame *frame) { return wait_with_pair(__NR_pselect6, frame); }
long call_io_pgetevents(struct frame *frame) { return wait_with_pair(__NR_io_pgetevents, frame); }

long call_ppoll(struct frame *frame) {
    u64 mask;
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, allowed(frame->r10, frame->r8, &mask),
                        frame->r8,  0};
    return wait(__NR_ppoll, arguments);
}

/* epoll_pwait and epoll_pwait2 */
long call_epoll_pwait(struct frame *frame) {
    u64 mask;
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, allowed(frame->r8, frame->r9, &mask),
                        frame->r9};
    return wait(frame->rax & 0xfff, arguments);
}

long call_waitid(struct frame *frame) {
    /* Of siginfo the kernel fills in signo, error, code at 0, 4, 8 and pid, uid, status from 16. */
    u32 info[32];
    u32 narrow[6];
    u64 there = (u32)frame->rdx;
    clear_bytes(info, sizeof info);
    u64 arguments[6] = {frame->rdi, frame->rsi, there != 0 ? (u64)info : 0, frame->r10, frame->r8, 0};
    long result = x32_gate(__NR_waitid, arguments);
    if (result == -RESTART_AFTER_SIGNAL || there == 0) {
        return result;
    }
    /* As kernel/exit.c does: also where nothing was found, and then with zeros. */
    narrow[0] = info[0];
    narrow[1] = info[1];
    narrow[2] = info[2];
    narrow[3] = info[4];
    narrow[4] = info[5];
    narrow[5] = info[6];
    return WRITE_USER(there, narrow) < 0 ? -EFAULT : result;
}

/* struct sigevent, 64 bytes in both: value 4/8, then signal, kind and thread. */
static int read_event(u32 wide[16], u64 address) {
    u32 narrow[16];
    if (READ_USER(narrow, address) < 0) {
        return -EFAULT;
    }
    clear_bytes(wide, 64);
    wide[0] = narrow[0];
    wide[2] = narrow[1];
    wide[3] = narrow[2];
    wide[4] = narrow[3];
    return 0;
}

long call_timer_create(struct frame *frame) {
    u32 event[16];
    if (frame->rsi != 0 && read_event(event, (u32)frame->rsi) < 0) {
        return -EFAULT;
    }
    u64 arguments[6] = {frame->rdi, frame->rsi != 0 ? (u64)event : 0, frame->rdx, 0, 0, 0};
    return x32_gate(__NR_timer_create, arguments);
}

long call_mq_notify(struct frame *frame) {
    u32 event[16];
    if (frame->rsi != 0 && read_event(event, (u32)frame->rsi) < 0) {
        return -EFAULT;
    }
    u64 arguments[6] = {frame->rdi, frame->rsi != 0 ? (u64)event : 0, 0, 0, 0, 0};
    return x32_gate(__NR_mq_notify, arguments);
}

/* A context's name is where its ring is mapped, which has to be below 4 GiB; a ring can be moved, and is
 * renamed by it (aio_ring_mremap, fs/aio.c). Its size is not known but from the map; it is found by moving
 * page after page fewer. */
long call_io_setup(struct frame *frame) {
    u32 given;
    u64 context = 0;
    if (READ_USER(given, (u32)frame->rsi) < 0) {
        return -EFAULT;
    }
    context = given;
    u64 arguments[6] = {frame->rdi, (u64)&context, 0, 0, 0, 0};
    long result = x32_gate(__NR_io_setup, arguments);
    if (result != 0) {
        return result;
    }
    /* struct aio_ring: id, nr, head, tail, magic, …, header_length; then 32 bytes an event. */
    const u32 *ring = (const u32 *)context;
    u64 size = ROUND_UP(32UL + 32UL * ring[1], PAGE);
    long place = space_map(0, size, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    long moved = failed(place)
                     ? place
                     : KERNEL_5(__NR_mremap, context, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (failed(moved)) {
        if (!failed(place)) {
            space_unmap((u64)place, size);
        }
        KERNEL_1(__NR_io_destroy, context);
        return -ENOMEM;
    }
    u32 name = (u32)moved;
    if (WRITE_USER((u32)frame->rsi, name) < 0) {
        KERNEL_1(__NR_io_destroy, moved);
        return -EFAULT;
    }
    return 0;
}

/* struct iocb: what is read and written in it here. */
struct request {
    u64 data;
    u32 key, flags;
    u16 operation;
    i16 priority;
    u32 fd;
    u64 buffer, size, offset;
};

#define IOCB_CMD_PREADV 7
#define IOCB_CMD_PWRITEV 8

/* The events name a request by its address, so it is submitted from where it is; its vector, which the kernel
 * reads at once, is pointed elsewhere for that time. */
static long submit(u64 context, u32 address) {
    struct request request;
    struct vectors vectors;
    u64 block = address;
    u64 arguments[6] = {context, 1, (u64)&block, 0, 0, 0};
    if (READ_USER(request, address) < 0) {
        return KERNEL_3(__NR_io_submit, context, 1, UNREADABLE);
    }
    if (request.operation != IOCB_CMD_PREADV && request.operation != IOCB_CMD_PWRITEV) {
        return x32_gate(__NR_io_submit, arguments);
    }
    long result = vectors_read(&vectors, (u32)request.buffer, request.size);
    if (failed(result) && result != -EFAULT) {
        return result;
    }
    /* The kernel looks at the descriptor before it reads the vector. */
    u64 at = address + offsetof(struct request, buffer);
    u64 wide = failed(result) ? UNREADABLE : (u64)vectors.at;
    result = WRITE_USER(at, wide) < 0 ? -EFAULT : x32_gate(__NR_io_submit, arguments);
    write_user(at, &request.buffer, sizeof request.buffer);
    vectors_free(&vectors);
    return result;
}

long call_io_submit(struct frame *frame) {
    i64 count = (i32)frame->rsi;
    if (count < 0) {
        return -EINVAL;
    }
    if (count == 0) {
        return forward(frame, __NR_io_submit);
    }
    for (i64 i = 0; i < count; i++) {
        u32 block;
        /* The kernel looks for the context first. */
        long result = READ_USER(block, (u32)frame->rdx + (u64)i * 4) < 0
                          ? KERNEL_3(__NR_io_submit, frame->rdi, 1, UNREADABLE)
                          : submit(frame->rdi, block);
        if (failed(result) || result == -RESTART_AFTER_SIGNAL) {
            return i > 0 ? i : result;
        }
    }
    return count;
}
