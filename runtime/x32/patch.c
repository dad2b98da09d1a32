#include "patch.h"

#define JUMP_TO_ITSELF 0xfeebU
/* membarrier(2): MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, and its registration */
#define EVERY_CORE 32
#define REGISTER_EVERY_CORE 64

int x32_several_threads;

static int several_threads(void) { return __atomic_load_n(&x32_several_threads, __ATOMIC_RELAXED); }

static void tell_every_core(void) { KERNEL_3(__NR_membarrier, EVERY_CORE, 0, 0); }

static int cores_can_be_told(void) {
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
static int in_batch;

static int is_open(u64 page, u64 end) {
    for (u32 i = 0; i < opened_count; i++) {
        if (page >= opened[i].page && end <= opened[i].end) {
            return 1;
        }
    }
    return 0;
}

/* Writable for an instant; never left so. With one thread that could be made without execution; with several,
 * another may be in the page. */
static int open_pages(u64 at, u64 size) {
    u64 page = ROUND_DOWN(at, PAGE), end = ROUND_UP(at + size, PAGE);
    if (is_open(page, end)) {
        return 1;
    }
    if (failed(KERNEL_3(__NR_mprotect, page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC))) {
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

void patch_begin_batch(void) { in_batch = 1; }

void patch_end_batch(void) {
    while (opened_count > 0) {
        opened_count--;
        close_range(opened[opened_count].page, opened[opened_count].end);
    }
    in_batch = 0;
}

int patch_unused(u64 at, const u8 *bytes, u64 size) {
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
int patch_is_safe(u64 at, int covers_by_call) {
    return !several_threads() ||
           (is_in_line(at) && (!covers_by_call || is_in_line(at + 2)) && cores_can_be_told());
}

static void store_two(volatile u8 *target, u32 bytes) { *(volatile u16 *)target = (u16)bytes; }
static u32 two_bytes(const volatile u8 *at) { return at[0] | (u32)at[1] << 8; }

/* First two bytes that hold a thread there, stored at once; when every core has seen them, what follows; then
 * the two that let it on. */
static void store_in_steps(volatile u8 *target, const u8 *bytes, u64 size) {
    store_two(target, JUMP_TO_ITSELF);
    tell_every_core();
    if (size > 4 && two_bytes(bytes + 2) == TRAP_CALL) {
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
    if (size > 4 && two_bytes(target + 2) == TRAP_CALL) {
        tell_every_core();
        store_two(target + 2, two_bytes(bytes + 2));
    }
    if (size > 3) {
        target[3] = bytes[3];
    }
    if (size > 2 && target[2] == TRAP_BYTE) {
        tell_every_core();
    }
    target[2] = bytes[2];
    tell_every_core();
    store_two(target, two_bytes(bytes));
    tell_every_core();
}

int patch_text(u64 at, const u8 *bytes, u64 size) {
    if (!open_pages(at, size)) {
        return 0;
    }
    if (several_threads()) {
        store_in_steps((volatile u8 *)at, bytes, size);
    } else {
        copy_bytes((u8 *)at, bytes, size);
    }
    close_pages(at, size);
    return 1;
}
