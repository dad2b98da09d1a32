#include "attachments.h"
#include "account.h"
#include "growing.h"
#include "sites.h"
#include "space.h"
#include "user_memory.h"

/* The last ones. Of an earlier one the size is not known any more: its pages count as taken until the map of
 * the process is read again. */
#define ATTACHMENTS 256U
#define NOWHERE 0
LARGE static struct { u32 address, pages; } attachments[ATTACHMENTS];
static u32 attachment_count; /* of all that were noted */

static u32 noted(void) { return attachment_count < ATTACHMENTS ? attachment_count : ATTACHMENTS; }

static u32 find(u64 address) {
    u32 at = 0;
    while (at < noted() && attachments[at].address != address) {
        at++;
    }
    return at;
}

static void note(u64 address, u64 size) {
    u32 at = find(address);
    at = at < noted() ? at : find(NOWHERE);
    at = at < noted() ? at : attachment_count++ % ATTACHMENTS;
    attachments[at].address = (u32)address;
    attachments[at].pages = (u32)(size / PAGE);
}

/* struct shmid64_ds: the segment's size follows the 48 bytes of its permissions. */
#define IPC_STAT 2
#define SIZE_WORD 6
#define STATUS_WORDS 14

#define MADV_DONTFORK 10
#define HUGE (2U << 20)

/* What a segment's places are aligned to, and its size rounded up to: of huge pages (SHM_HUGETLB) nothing
 * but a mapping tells, which cannot be divided within one. The kernel attaches it above 4 GiB for that. */
static u64 alignment_of(u64 id, u64 flags) {
    long there = KERNEL_3(__NR_shmat, id, 0, flags);
    if (failed(there)) {
        return PAGE;
    }
    static const u32 sizes[] = {PAGE, HUGE, 1U << 30};
    u64 i = 0;
    while (i + 1 < sizeof sizes / sizeof sizes[0] &&
           KERNEL_3(__NR_madvise, there, sizes[i], MADV_DONTFORK) == -EINVAL) {
        i++;
    }
    KERNEL_1(__NR_shmdt, there);
    return sizes[i];
}

static long attach_where_free(u64 id, u64 *size, u64 flags) {
    u64 alignment = 0; /* not known yet */
    for (int attempt = 0; attempt < SPACE_ATTEMPTS; attempt++) {
        u64 found = space_choose(*size, alignment == 0 ? PAGE : alignment);
        if (found == 0) {
            break;
        }
        long there = FOR_PROGRAM(KERNEL_3(__NR_shmat, id, found, flags));
        if (there != -EINVAL) {
            return there;
        }
        if (alignment == 0) {
            alignment = alignment_of(id, flags);
            *size = ROUND_UP(*size, alignment);
            if (alignment != PAGE) {
                continue;
            }
        }
        space_learn(found, *size, attempt);
    }
    return -ENOMEM;
}

long attachments_attach(u64 id, u64 address, u64 flags) {
    u64 status[STATUS_WORDS];
    long result = KERNEL_3(__NR_shmctl, id, IPC_STAT, status);
    u64 size = failed(result) ? PAGE : ROUND_UP(status[SIZE_WORD], PAGE);
    if (address > TASK_SIZE) {
        return -EINVAL;
    }
    if (address != 0 && ROUND_DOWN(address, PAGE) % HUGE == 0) {
        size = ROUND_UP(size, alignment_of(id, flags & ~(u64)SHM_REMAP));
    }
    if (address != 0 && size > TASK_SIZE - address) {
        /* Whether something is there comes first; of the stack only /proc knows. */
        space_read_again();
        int has_room = (flags & SHM_REMAP) || space_is_free(address, TASK_SIZE - address);
        return has_room ? -ENOMEM : -EINVAL;
    }
    if (address != 0 && sites_own_page(address, address + size) != 0) {
        return -ENOMEM;
    }
    if (address != 0 || (flags & SHM_REMAP)) { /* without an address the kernel refuses that */
        result = KERNEL_3(__NR_shmat, id, address, flags);
    } else if (!failed(result)) {
        result = attach_where_free(id, &size, flags);
    }
    if (!failed(result)) {
        space_take((u64)result, size);
        space_note_shared((u64)result, size, 1);
        growing_note((u64)result, size, 0);
        note((u64)result, size);
    }
    return result;
}

/* What the program has put into the segment's place meanwhile stays, and counts as free until the kernel
 * refuses that place (space_learn). */
long attachments_detach(u64 address) {
    long result = FOR_PROGRAM(KERNEL_1(__NR_shmdt, address));
    u32 at = find(address);
    if (!failed(result) && at < noted()) {
        space_gone(address, attachments[at].pages * PAGE);
        attachments[at].address = NOWHERE;
    }
    return result;
}
