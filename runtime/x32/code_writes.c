#include "code_writes.h"

/* membarrier(2): MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, and its registration */
#define EVERY_CORE 32
#define REGISTER_EVERY_CORE 64

extern u8 __executable_start[], __bss_start[]; /* layout.ld */

int x32_several_threads;

static int several_threads(void) { return __atomic_load_n(&x32_several_threads, __ATOMIC_RELAXED); }

static void tell_every_core(void) { KERNEL_3(__NR_membarrier, EVERY_CORE, 0, 0); }

static int cores_can_be_synchronised(void) {
    static int known;
    if (known == 0) {
        known = failed(KERNEL_3(__NR_membarrier, REGISTER_EVERY_CORE, 0, 0)) ? -1 : 1;
    }
    return known > 0;
}

/* What a batch has made writable. */
#define OPENED 8
static struct { u64 page, end; } opened[OPENED];
static u32 opened_count;
static int in_batch, were_refused;

/* What a batch makes writable in one piece. */
static struct { u64 low, high; } pieces[2];

static int is_open(u64 page, u64 end) {
    for (u32 i = 0; i < opened_count; i++) {
        if (page >= opened[i].page && end <= opened[i].end) {
            return 1;
        }
    }
    return 0;
}

static int open_range(u64 page, u64 end) {
    return !failed(KERNEL_3(__NR_mprotect, page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC));
}

/* Writable for an instant; never left so. With one thread that could be made without execution; with several,
 * another may be in the page. */
static int open_pages(u64 at, u64 size) {
    u64 page = ROUND_DOWN(at, PAGE), end = ROUND_UP(at + size, PAGE);
    if (is_open(page, end)) {
        return 1;
    }
    int is_opened = 0;
    for (u32 i = 0; in_batch && opened_count < OPENED && i < sizeof pieces / sizeof *pieces; i++) {
        if (page >= pieces[i].low && end <= pieces[i].high && open_range(pieces[i].low, pieces[i].high)) {
            page = pieces[i].low;
            end = pieces[i].high;
            is_opened = 1;
            break;
        }
    }
    if (!is_opened && !open_range(page, end)) {
        were_refused = 1;
        return 0;
    }
    if (in_batch && opened_count < OPENED) {
        opened[opened_count].page = page;
        opened[opened_count++].end = end;
    }
    return 1;
}

static void close_range(u64 page, u64 end) {
    KERNEL_3(__NR_mprotect, page, end - page, PROT_READ | PROT_EXEC);
}

static void close_pages(u64 at, u64 size) {
    u64 page = ROUND_DOWN(at, PAGE), end = ROUND_UP(at + size, PAGE);
    if (!is_open(page, end)) {
        close_range(page, end);
    }
}

void code_writes_begin(u64 low, u64 high) {
    in_batch = 1;
    were_refused = 0;
    if (low < high) {
        pieces[0].low = ROUND_DOWN(low, PAGE);
        pieces[0].high = ROUND_UP(high, PAGE);
        pieces[1].low = (u64)__executable_start;
        pieces[1].high = (u64)__bss_start;
    }
}

void code_writes_end(void) {
    while (opened_count > 0) {
        opened_count--;
        close_range(opened[opened_count].page, opened[opened_count].end);
    }
    in_batch = 0;
    clear_bytes(pieces, sizeof pieces);
}

int code_writes_were_refused(void) { return were_refused; }

int code_write_unused(u64 at, const u8 *bytes, u64 size) {
    if (!open_pages(at, size)) {
        return 0;
    }
    copy_bytes((u8 *)at, bytes, size);
    close_pages(at, size);
    return 1;
}

#define LINE 64U

static int is_in_line(u64 at) { return at % LINE != LINE - 1; }

/* Two bytes that hold others have to be stored at once. */
int code_write_is_safe(u64 at, int covers_by_call) {
    return !several_threads() ||
           (is_in_line(at) && (!covers_by_call || is_in_line(at + 2)) && cores_can_be_synchronised());
}

static void store_two(volatile u8 *target, u32 bytes) { *(volatile u16 *)target = (u16)bytes; }

/* The first two bytes, where they are not that yet. */
static void store_first(volatile u8 *target, u32 bytes) {
    if (get16(target) != bytes) {
        store_two(target, bytes);
        tell_every_core();
    }
}

/* First what stands at the beginning meanwhile; when every core has seen it, what follows; then the first two
 * bytes, which let a thread on. */
static void store_in_steps(volatile u8 *target, const u8 *bytes, u64 size, u32 meanwhile) {
    store_first(target, meanwhile);
    if (size > 4 && get16(bytes + 2) == TRAP_CALL) {
        store_two(target + 2, TRAP_CALL);
        tell_every_core();
    }
    if (size > 2 && bytes[2] == TRAP_BYTE) {
        target[2] = TRAP_BYTE;
        tell_every_core();
    }
    for (u64 i = size - 1; i > 3; i--) {
        target[i] = bytes[i];
    }
    if (size > 4 && get16(target + 2) == TRAP_CALL) {
        tell_every_core();
        store_two(target + 2, get16(bytes + 2));
    }
    if (size > 3) {
        target[3] = bytes[3];
    }
    if (size > 2 && target[2] == TRAP_BYTE) {
        tell_every_core();
    }
    target[2] = bytes[2];
    tell_every_core();
    store_first(target, get16(bytes));
}

int code_write(u64 at, const u8 *bytes, u64 size, u32 meanwhile) {
    if (!open_pages(at, size)) {
        return 0;
    }
    if (several_threads()) {
        store_in_steps((volatile u8 *)at, bytes, size, meanwhile);
    } else {
        copy_bytes((u8 *)at, bytes, size);
    }
    close_pages(at, size);
    return 1;
}
