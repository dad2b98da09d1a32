#include "iovecs.h"
#include "calls.h"
#include "signals.h"
#include "user_memory.h"
#include "x32.h"

long vectors_read(struct vectors *vectors, u64 address, u64 count) {
    vectors->at = vectors->near;
    vectors->count = count;
    vectors->mapped = 0;
    if (count > VECTORS_MOST) {
        return -EINVAL;
    }
    if (count > VECTORS_NEAR) {
        vectors->mapped = ROUND_UP(count * sizeof(struct iovec64), PAGE);
        long place = KERNEL_6(__NR_mmap, 0, vectors->mapped, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (failed(place)) {
            vectors->mapped = 0;
            return -ENOMEM;
        }
        vectors->at = (struct iovec64 *)place;
    }
    for (u64 i = 0; i < count; i += VECTORS_NEAR) {
        struct iovec32 narrow[VECTORS_NEAR];
        u64 piece = count - i < VECTORS_NEAR ? count - i : VECTORS_NEAR;
        if (read_user(narrow, address + i * sizeof narrow[0], piece * sizeof narrow[0]) < 0) {
            vectors_free(vectors);
            return -EFAULT;
        }
        for (u64 j = 0; j < piece; j++) {
            if ((i32)narrow[j].size < 0) {
                vectors_free(vectors);
                return -EINVAL;
            }
            vectors->at[i + j] = (struct iovec64){narrow[j].base, narrow[j].size};
        }
    }
    return 0;
}

void vectors_free(struct vectors *vectors) {
    if (vectors->mapped != 0) {
        KERNEL_2(__NR_munmap, vectors->at, vectors->mapped);
        vectors->mapped = 0;
    }
}

/* The kernel looks at the descriptor, its mode and the position before it reads the vectors. */
__attribute__((cold, noinline)) static long wrong(struct frame *frame, long number, u64 fourth, u64 sixth,
                                                  long error) {
    long result = KERNEL_6(number, frame->rdi, UNREADABLE, 1, fourth, 0, sixth);
    return result == -EFAULT ? error : result;
}

static long with_vectors(struct frame *frame, long number, u64 fourth, u64 sixth) {
    struct vectors vectors;
    long result = vectors_read(&vectors, (u32)frame->rsi, frame->rdx);
    if (failed(result)) {
        return wrong(frame, number, fourth, sixth, result);
    }
    u64 arguments[6] = {frame->rdi, (u64)vectors.at, vectors.count, fourth, 0, sixth};
    result = x32_gate(number, arguments);
    vectors_free(&vectors);
    return result;
}

long call_readv(struct frame *frame) { return with_vectors(frame, __NR_readv, 0, 0); }
long call_writev(struct frame *frame) { return with_vectors(frame, __NR_writev, 0, 0); }
long call_preadv(struct frame *frame) { return with_vectors(frame, __NR_preadv, frame->r10, 0); }
long call_pwritev(struct frame *frame) { return with_vectors(frame, __NR_pwritev, frame->r10, 0); }
/* x32 has the whole offset in one register, so the flags come one register earlier than in the 64-bit call.
 */
long call_preadv2(struct frame *frame) { return with_vectors(frame, __NR_preadv2, frame->r10, frame->r8); }
long call_pwritev2(struct frame *frame) { return with_vectors(frame, __NR_pwritev2, frame->r10, frame->r8); }
long call_vmsplice(struct frame *frame) { return with_vectors(frame, __NR_vmsplice, frame->r10, 0); }

static long process_vm(struct frame *frame, long number) {
    struct vectors own, theirs;
    if (frame->r9 != 0) {
        return -EINVAL;
    }
    long result = vectors_read(&own, (u32)frame->rsi, frame->rdx);
    if (failed(result)) {
        return result;
    }
    result = vectors_read(&theirs, (u32)frame->r10, frame->r8);
    if (!failed(result)) {
        u64 arguments[6] = {frame->rdi, (u64)own.at, own.count, (u64)theirs.at, theirs.count, 0};
        result = x32_gate(number, arguments);
        vectors_free(&theirs);
    }
    vectors_free(&own);
    return result;
}

long call_process_vm_readv(struct frame *frame) { return process_vm(frame, __NR_process_vm_readv); }
long call_process_vm_writev(struct frame *frame) { return process_vm(frame, __NR_process_vm_writev); }

long call_process_madvise(struct frame *frame) {
    struct vectors vectors;
    long result = vectors_read(&vectors, (u32)frame->rsi, frame->rdx);
    if (failed(result)) {
        return result;
    }
    u64 arguments[6] = {frame->rdi, (u64)vectors.at, vectors.count, frame->r10, frame->r8, 0};
    int held = memory_advice_begins((u32)frame->r10, vectors.at, vectors.count);
    result = x32_gate(__NR_process_madvise, arguments);
    memory_advice_ends(held);
    vectors_free(&vectors);
    return result;
}
