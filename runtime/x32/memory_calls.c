#include "attachments.h"
#include "calls.h"
#include "settings.h"
#include "sites.h"
#include "space.h"
#include "user_memory.h"

#define TAKING_AWAY(call)                                                                                    \
    ({                                                                                                       \
        int counted_ = memory_unmapping_begins();                                                            \
        long made_ = (call);                                                                                 \
        memory_unmapping_ends(counted_);                                                                     \
        made_;                                                                                               \
    })

/* What can be executed, and read, and not written: that is how a rewriting leaves it. */
static int is_text(u64 protection) {
    return (protection & (PROT_READ | PROT_WRITE | PROT_EXEC)) == (PROT_READ | PROT_EXEC);
}

/* What is shared is left alone: the file, or another process, would get what is written there. */
static void note_text(u64 address, u64 size, u64 protection) {
    if (!is_text(protection) || size == 0) {
        return;
    }
    u64 end = ROUND_UP(address + size, PAGE);
    for (u64 at = address, next; at < end; at = next) {
        int is_shared;
        next = space_shared_until(at, end, &is_shared);
        if (is_shared) {
            continue;
        }
        sites_text(at, next - at);
        if (settings.ahead) {
            sites_rewrite_all(at, next - at);
        }
    }
}

/* Holds the sites if the range has any text: a rewriting makes its page writable for a moment, and then what
 * it was. */
static int hold_text(u64 address, u64 size) {
    sites_hold();
    if (sites_have_text(address, size)) {
        return 1;
    }
    sites_let_go();
    return 0;
}

static void let_go(int held) {
    if (held) {
        sites_let_go();
    }
}

/* Whether the program wants to have a place of its choice where the runtime's trampolines are. On an x32
 * kernel it would get it; here every call that goes through them would be lost with them. */
static int is_taken(u64 address, u64 size) {
    u64 end = address + ROUND_UP(size, PAGE);
    return address < end && sites_own_page(address, end) != 0;
}

static long map(const struct frame *frame) {
    return space_map(frame->rdi, frame->rsi, frame->rdx, frame->r10, (i64)frame->r8, frame->r9);
}

/* Without a file there is nothing to execute yet. */
static int maps_text(const struct frame *frame) {
    return is_text(frame->rdx) && !(frame->r10 & MAP_ANONYMOUS);
}

static long map_or_replace(struct frame *frame) {
    int fixed = (frame->r10 & MAP_FIXED) != 0;
    if (fixed && is_taken(frame->rdi, frame->rsi)) {
        return -ENOMEM;
    }
    int held = fixed && hold_text(frame->rdi, frame->rsi);
    long result = map(frame);
    if (held && !failed(result)) {
        sites_gone((u64)result, frame->rsi);
    }
    if (!failed(result) && maps_text(frame)) {
        if (!held) {
            sites_hold();
            held = 1;
        }
        note_text((u64)result, frame->rsi, frame->rdx);
    }
    let_go(held);
    return result;
}

long call_mmap(struct frame *frame) {
    if (frame->r10 & MAP_LOCKED) {
        sites_memory_locked();
    }
    if (!(frame->r10 & MAP_FIXED)) {
        return map_or_replace(frame);
    }
    return TAKING_AWAY(map_or_replace(frame));
}

static long unmap(u64 address, u64 size) {
    int held = hold_text(address, size);
    long result = space_unmap(address, size);
    if (held && !failed(result)) {
        sites_gone(address, size);
    }
    let_go(held);
    return result;
}

static long unmap_but_own(const struct frame *frame) {
    u64 at = frame->rdi, end = at + ROUND_UP(frame->rsi, PAGE), own;
    while (at % PAGE == 0 && at < end && end <= TASK_SIZE && (own = sites_own_page(at, end)) != 0) {
        long result = own > at ? unmap(at, own - at) : 0;
        if (failed(result)) {
            return result;
        }
        at = own + PAGE;
    }
    if (at == frame->rdi) {
        return unmap(at, frame->rsi);
    }
    return at < end ? unmap(at, end - at) : 0;
}

long call_munmap(struct frame *frame) { return TAKING_AWAY(unmap_but_own(frame)); }

static long move(const struct frame *frame) {
    int fixed = (frame->r10 & MREMAP_FIXED) != 0;
    if (fixed && is_taken(frame->r8, frame->rdx)) {
        return -ENOMEM;
    }
    sites_hold();
    /* Jumps do not lead from another place to where they did. */
    if (sites_have_text(frame->rdi, frame->rsi)) {
        sites_join(frame->rdi, frame->rsi);
        sites_restore(frame->rdi, frame->rsi);
    }
    long result = space_remap(frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8);
    if (!failed(result) && sites_have_text((u64)result, frame->rdx)) {
        sites_gone((u64)result, frame->rdx);
    }
    sites_let_go();
    return result;
}

long call_mremap(struct frame *frame) { return TAKING_AWAY(move(frame)); }

static long protect(struct frame *frame) {
    u64 address = frame->rdi, size = frame->rsi;
    if (address > TASK_SIZE || ROUND_UP(size, PAGE) > TASK_SIZE - address) {
        return address & (PAGE - 1) ? -EINVAL : -ENOMEM;
    }
    if (is_taken(address, size)) {
        return -ENOMEM;
    }
    int held = hold_text(address, size);
    if (held && !is_text(frame->rdx)) {
        sites_restore(address, size);
    }
    long result = forward(frame, frame->rax & 0xfff);
    if (result == 0 && (frame->rdx & PROT_EXEC)) {
        if (!held) {
            sites_hold();
            held = 1;
        }
        note_text(address, size, frame->rdx);
    }
    let_go(held);
    return result;
}

/* mprotect and pkey_mprotect */
long call_mprotect(struct frame *frame) {
    return frame->rdx & PROT_READ ? protect(frame) : TAKING_AWAY(protect(frame));
}

static int drops_pages(u64 advice) {
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED ||
           advice == MADV_GUARD_INSTALL;
}

/* A page of text that is dropped comes again as the file has it: of a site that goes on in the next page,
 * half would be rewritten. */
int memory_advice_begins(u64 advice, const struct iovec64 *ranges, u64 count) {
    int held = 0;
    for (u64 i = 0; i < count && drops_pages(advice); i++) {
        held = held || hold_text(ranges[i].base, ranges[i].size);
        if (held) {
            sites_put_back(ranges[i].base, ranges[i].size);
        }
    }
    return held;
}

void memory_advice_ends(int held) { let_go(held); }

long call_madvise(struct frame *frame) {
    const struct iovec64 range = {frame->rdi, frame->rsi};
    int held = memory_advice_begins((u32)frame->rdx, &range, 1);
    long result = forward(frame, __NR_madvise);
    let_go(held);
    return result;
}

long call_brk(struct frame *frame) {
    u64 wanted = frame->rdi, end = space_heap_end();
    if (wanted != 0 && wanted < end && hold_text(wanted, end - wanted)) {
        sites_restore(wanted, end - wanted);
        sites_let_go();
    }
    return wanted != 0 && wanted < end ? TAKING_AWAY(space_break(wanted)) : space_break(wanted);
}

static long attach(const struct frame *frame) {
    sites_hold();
    long result = attachments_attach(frame->rdi, frame->rsi, frame->rdx);
    if (!failed(result) && (frame->rdx & SHM_REMAP)) {
        int is_shared;
        u64 end = space_shared_until((u64)result, TASK_SIZE, &is_shared);
        sites_gone((u64)result, end - (u64)result);
    }
    sites_let_go();
    return result;
}

long call_shmat(struct frame *frame) {
    return frame->rdx & SHM_REMAP ? TAKING_AWAY(attach(frame)) : attach(frame);
}

static long detach(const struct frame *frame) {
    sites_hold();
    long result = attachments_detach(frame->rdi);
    sites_let_go();
    return result;
}

long call_shmdt(struct frame *frame) { return TAKING_AWAY(detach(frame)); }

/* mlock, mlock2, mlockall */
long call_lock_memory(struct frame *frame) {
    sites_memory_locked();
    return forward(frame, frame->rax & 0xfff);
}

#define PIECE 64UL

long call_move_pages(struct frame *frame) {
    u64 pages[PIECE], count = frame->rsi, done = 0;
    if (frame->rdx == 0) {
        return forward(frame, __NR_move_pages);
    }
    while (done < count) {
        u64 piece = count - done < PIECE ? count - done : PIECE;
        for (u64 i = 0; i < piece; i++) {
            u32 page;
            if (READ_USER(page, (u32)frame->rdx + (done + i) * 4) < 0) {
                /* The kernel looks for the process first. */
                return KERNEL_6(__NR_move_pages, frame->rdi, 1, UNREADABLE, frame->r10, frame->r8, frame->r9);
            }
            pages[i] = page;
        }
        u64 nodes = frame->r10 != 0 ? frame->r10 + done * 4 : 0;
        u64 arguments[6] = {frame->rdi, piece, (u64)pages, nodes, frame->r8 + done * 4, frame->r9};
        long result = x32_gate(__NR_move_pages, arguments);
        if (result != 0) {
            return result;
        }
        done += piece;
    }
    return 0;
}
