#include "calls.h"
#include "memory.h"
#include "settings.h"
#include "sites.h"
#include "space.h"

/* Text is what can be executed and not written. */
static void note_text(u64 address, u64 size, u64 protection) {
    if ((protection & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC) {
        sites_text(address, size);
        if (settings.ahead && (protection & PROT_READ)) {
            sites_rewrite_all(address, ROUND_UP(size, PAGE));
        }
    } else {
        sites_forget_text(address, size);
    }
}

/* Whether the program wants to have a place of its choice where the runtime's trampolines are. On an x32
 * kernel it would get it; here every call that goes through them would be lost with them. */
static int is_taken(u64 address, u64 size) {
    u64 end = address + ROUND_UP(size, PAGE);
    return address < end && sites_own_page(address, end) != 0;
}

long call_mmap(struct frame *frame) {
    if ((frame->r10 & MAP_FIXED) && is_taken(frame->rdi, frame->rsi)) {
        return -ENOMEM;
    }
    long result = space_map(frame->rdi, frame->rsi, frame->rdx, frame->r10, (i64)frame->r8, frame->r9);
    if (!failed(result) && (frame->rdx & PROT_EXEC || frame->r10 & MAP_FIXED)) {
        int own = !(frame->r10 & MAP_ANONYMOUS) && (frame->r10 & MAP_TYPE) == MAP_PRIVATE;
        note_text((u64)result, frame->rsi, own ? frame->rdx : 0);
    }
    return result;
}

long call_munmap(struct frame *frame) {
    u64 at = frame->rdi, end = at + ROUND_UP(frame->rsi, PAGE), own;
    sites_forget_text(frame->rdi, frame->rsi);
    while (at % PAGE == 0 && at < end && end <= TASK_SIZE && (own = sites_own_page(at, end)) != 0) {
        long result = own > at ? space_unmap(at, own - at) : 0;
        if (failed(result)) {
            return result;
        }
        at = own + PAGE;
    }
    if (at == frame->rdi) {
        return space_unmap(at, frame->rsi);
    }
    return at < end ? space_unmap(at, end - at) : 0;
}

long call_mremap(struct frame *frame) {
    if ((frame->r10 & MREMAP_FIXED) && is_taken(frame->r8, frame->rdx)) {
        return -ENOMEM;
    }
    sites_forget_text(frame->rdi, frame->rsi);
    return space_remap(frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8);
}

/* mprotect and pkey_mprotect */
long call_mprotect(struct frame *frame) {
    u64 address = frame->rdi, size = frame->rsi;
    if (address > TASK_SIZE || ROUND_UP(size, PAGE) > TASK_SIZE - address) {
        return address & (PAGE - 1) ? -EINVAL : -ENOMEM;
    }
    if (is_taken(address, size)) {
        return -ENOMEM;
    }
    long result = forward(frame, frame->rax & 0xfff);
    if (result != 0) {
        return result;
    }
    if (frame->rdx & PROT_EXEC) {
        note_text(address, size, frame->rdx);
    } else {
        sites_forget_text(address, size);
    }
    return 0;
}

long call_brk(struct frame *frame) { return space_break(frame->rdi); }

long call_shmat(struct frame *frame) { return space_attach(frame->rdi, frame->rsi, frame->rdx); }

/* How large it was, nobody says: the pages count as taken until the map of the process is read again. */
long call_shmdt(struct frame *frame) { return forward(frame, __NR_shmdt); }

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
                return -EFAULT;
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
