#include "sites.h"
#include "lock.h"
#include "memory.h"
#include "offsets.h"
#include "space.h"
#include "table.h"

extern u8 x32_stubs[], x32_stubs_end[], x32_enter[];

#define TRAMPOLINE_SIZE 16
#define TRAMPOLINES (PAGE / TRAMPOLINE_SIZE)
#define POOLS 64
#define TEXTS 512
#define MOVE_SIZE 5      /* mov $imm32,%eax; also the size of jmp rel32 */
#define LONG_MOVE_SIZE 7 /* mov $imm32,%rax */
#define CALL_SIZE 2
/* Of jmp rel32, less what a page of trampolines and the site itself take. */
#define REACH ((1UL << 31) - 2 * PAGE)

/* The site of each stub; its trampoline has the same index in `trampolines`. */
static struct site sites[STUB_COUNT];
static u32 trampolines[STUB_COUNT];
static u32 site_total;
static u64 refused;

/* Open addressing by the address of the `syscall`, so that a library that comes and goes finds its stubs
 * again. */
#define BUCKETS (STUB_COUNT * 2)
static u16 buckets[BUCKETS];

static struct pool { u32 page, used; } pools[POOLS];
static u32 pool_count;

static struct { u32 low, high; } texts[TEXTS];
static u32 text_count;

static u32 lock;
static int everything_enters, rewriting;

void sites_begin(int every_call_enters, int rewrite) {
    everything_enters = every_call_enters;
    rewriting = rewrite;
}

struct site_count sites_count(void) {
    return (struct site_count){site_total, refused};
}

void sites_hold(void) { lock_take(&lock); }
void sites_let_go(void) { lock_release(&lock); }

static void forget_locked(u32 low, u32 high) {
    for (u32 i = 0; i < text_count; i++) {
        u32 text_low = texts[i].low, text_high = texts[i].high;
        if (text_high <= low || high <= text_low) {
            continue;
        }
        texts[i--] = texts[--text_count];
        if (text_low < low && text_count < TEXTS) {
            texts[text_count].low = text_low;
            texts[text_count++].high = low;
        }
        if (high < text_high && text_count < TEXTS) {
            texts[text_count].low = high;
            texts[text_count++].high = text_high;
        }
    }
}

void sites_forget_text(u64 address, u64 size) {
    if (address >= (1UL << 32) || size == 0) {
        return;
    }
    u64 high = ROUND_UP(address + size, PAGE);
    u32 low = (u32)ROUND_DOWN(address, PAGE), end = high > TASK_SIZE ? (u32)TASK_SIZE : (u32)high;
    for (u32 i = 0; i < __atomic_load_n(&text_count, __ATOMIC_RELAXED); i++) {
        if (texts[i].high > low && end > texts[i].low) {
            lock_take(&lock);
            forget_locked(low, end);
            lock_release(&lock);
            return;
        }
    }
}

void sites_text(u64 address, u64 size) {
    lock_take(&lock);
    u32 low = (u32)address, high = (u32)(address + ROUND_UP(size, PAGE));
    forget_locked(low, high);
    if (text_count < TEXTS) {
        texts[text_count].low = low;
        texts[text_count++].high = high;
    }
    lock_release(&lock);
}

static int in_text(u64 low, u64 high) {
    for (u32 i = 0; i < text_count; i++) {
        if (low >= texts[i].low && high <= texts[i].high) {
            return 1;
        }
    }
    return 0;
}

static u16 *bucket_of(u32 call) {
    u32 bucket = (call * 2654435761U) >> 19;
    while (buckets[bucket] != 0 && sites[buckets[bucket] - 1].call != call) {
        bucket = (bucket + 1) % BUCKETS;
    }
    return &buckets[bucket];
}

/* Writable for an instant; never left so. With one thread that could be made without execution; with several,
 * another may be in the page. */
static int change_text(u64 at, const u8 *bytes, u64 size, int in_steps) {
    u64 page = ROUND_DOWN(at, PAGE), end = ROUND_UP(at + size, PAGE);
    if (failed(KERNEL_3(__NR_mprotect, page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC))) {
        return 0;
    }
    u8 *target = (u8 *)at;
    if (!in_steps) {
        copy_bytes(target, bytes, size);
    } else {
        /* Another thread may be about to execute these bytes. First two that hold it there (`jmp .`), stored
         * at once; then, when every core has seen them, what follows; then the two that let it on. */
        *(volatile u16 *)target = 0xfeeb;
        KERNEL_3(__NR_membarrier, 32, 0, 0);
        for (u64 i = 2; i < size; i++) {
            ((volatile u8 *)target)[i] = bytes[i];
        }
        KERNEL_3(__NR_membarrier, 32, 0, 0);
        *(volatile u16 *)target = (u16)(bytes[0] | bytes[1] << 8);
        KERNEL_3(__NR_membarrier, 32, 0, 0);
    }
    KERNEL_3(__NR_mprotect, page, end - page, PROT_READ | PROT_EXEC);
    return 1;
}

int x32_several_threads;

/* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE */
static int cores_can_be_told(void) {
    static int known;
    if (known == 0) {
        known = failed(KERNEL_3(__NR_membarrier, 64, 0, 0)) ? -1 : 1;
    }
    return known > 0;
}

static u64 absolute(i64 value) { return (u64)(value < 0 ? -value : value); }

/* A page for trampolines that a jump at `address` reaches. */
static struct pool *pool_near(u64 address) {
    for (u32 i = 0; i < pool_count; i++) {
        if (pools[i].used < TRAMPOLINES && absolute((i64)pools[i].page - (i64)address) < REACH) {
            return &pools[i];
        }
    }
    if (pool_count == POOLS) {
        return NULL;
    }
    /* Half as far as it might be, so that the sites around can share it; as far as it may be where that is
     * taken. */
    long page = -ENOMEM;
    for (u64 reach = REACH / 2; failed(page) && reach <= REACH; reach *= 2) {
        u64 low = address > reach ? address - reach : 0x10000;
        u64 high = address + reach < TASK_SIZE ? address + reach : TASK_SIZE;
        page = space_map_within(PAGE, PROT_READ | PROT_EXEC, ROUND_UP(low, PAGE), ROUND_DOWN(high, PAGE));
    }
    if (failed(page)) {
        return NULL;
    }
    pools[pool_count].page = (u32)page;
    return &pools[pool_count++];
}

static void put32(u8 *at, u64 value) {
    for (int i = 0; i < 4; i++) {
        at[i] = (u8)(value >> (8 * i));
    }
}

/* A stub is one of
 *   mov $nr,%eax; syscall; mov $back,%ecx; jmp *%rcx       the call as it is: rcx ends as after a syscall
 *   mov $nr,%eax; mov $back,%ecx; jmp x32_enter            through the runtime */
static void write_stub(u8 *stub, u8 *code, const struct site *site) {
    u8 *at = code;
    int plain = !everything_enters && table_is_plain(site->number);
    *at++ = 0xb8;
    put32(at, plain ? site->number & ~X32_BIT : site->number);
    at += 4;
    if (plain) {
        *at++ = 0x0f;
        *at++ = 0x05;
    }
    *at++ = 0xb9;
    put32(at, site->back);
    at += 4;
    if (plain) {
        *at++ = 0xff;
        *at++ = 0xe1;
    } else {
        *at++ = 0xe9;
        put32(at, (u64)(x32_enter - (stub + (at - code) + 4)));
    }
}

static struct site *find_or_make(const struct site *wanted) {
    u16 *bucket = bucket_of(wanted->call);
    if (*bucket != 0) {
        struct site *site = &sites[*bucket - 1];
        int same =
            site->number == wanted->number && site->address == wanted->address && site->back == wanted->back;
        return same ? site : NULL;
    }
    if (site_total == STUB_COUNT) {
        return NULL;
    }
    struct pool *pool = pool_near(wanted->address);
    if (pool == NULL) {
        return NULL;
    }
    u32 index = site_total;
    u8 *stub = x32_stubs + index * STUB_SIZE;
    u8 code[STUB_SIZE];
    u8 jump[TRAMPOLINE_SIZE] = {0xff, 0x25, 0, 0, 0, 0};
    for (int i = 0; i < STUB_SIZE; i++) {
        code[i] = 0xcc;
    }
    write_stub(stub, code, wanted);
    put32(jump + 6, (u64)stub);
    put32(jump + 10, (u64)stub >> 32);
    u32 trampoline = pool->page + pool->used * TRAMPOLINE_SIZE;
    /* Nobody executes these bytes before the site jumps there. */
    if (!change_text((u64)stub, code, sizeof code, 0) || !change_text(trampoline, jump, sizeof jump, 0)) {
        return NULL;
    }
    pool->used++;
    sites[index] = *wanted;
    trampolines[index] = trampoline;
    site_total++;
    *bucket = (u16)(index + 1);
    return &sites[index];
}

static u32 get32(const u8 *at) { return (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24; }

/* Which bytes before a `syscall` at the end of `before` (8 bytes) load its number. */
static u32 move_before(const u8 *before, u32 number) {
    if (before[3] == 0xb8 && get32(before + 4) == number) {
        return MOVE_SIZE;
    }
    if (before[1] == 0x48 && before[2] == 0xc7 && before[3] == 0xc0 && get32(before + 4) == number) {
        return LONG_MOVE_SIZE;
    }
    return 0;
}

static int rewrite_locked(u64 call, u64 number) {
    u8 before[8];
    if (number >> 32 != 0 || !in_text(call - 8, call + CALL_SIZE) || read_user(before, call - 8, 8) < 0) {
        return 0;
    }
    u32 move = move_before(before, (u32)number);
    if (move == 0) {
        return 0;
    }
    struct site wanted = {(u32)(call - move), (u32)call, (u32)call + CALL_SIZE, (u32)number};
    /* With several threads, the two bytes that hold others have to be stored at once. */
    int in_steps = __atomic_load_n(&x32_several_threads, __ATOMIC_RELAXED);
    if (in_steps && ((wanted.address & 63) == 63 || !cores_can_be_told())) {
        return 0;
    }
    struct site *site = find_or_make(&wanted);
    if (site == NULL) {
        return 0;
    }
    u8 jump[LONG_MOVE_SIZE] = {0xe9, 0, 0, 0, 0, 0x66, 0x90};
    put32(jump + 1, (u64)(trampolines[site - sites] - (site->address + MOVE_SIZE)));
    return change_text(site->address, jump, move, in_steps);
}

void sites_rewrite(u64 call, u64 number) {
    if (!rewriting) {
        return;
    }
    lock_take(&lock);
    if (!rewrite_locked(call, number)) {
        refused++;
    }
    lock_release(&lock);
}

u64 sites_rewrite_all(u64 address, u64 size) {
    u64 left = 0;
    const u8 *text = (const u8 *)address;
    lock_take(&lock);
    for (u64 i = 8; i + CALL_SIZE <= size; i++) {
        if (text[i] != 0x0f || text[i + 1] != 0x05) {
            continue;
        }
        u32 number = get32(text + i - 4);
        if (!(number & X32_BIT) || (number & ~X32_BIT) >= TABLE_SIZE ||
            !rewrite_locked(address + i, number)) {
            left++;
        }
    }
    lock_release(&lock);
    return left;
}

u64 sites_in_program(u64 rip, u64 *rax) {
    if (rip >= (u64)x32_stubs && rip < (u64)x32_stubs_end) {
        u64 index = (rip - (u64)x32_stubs) / STUB_SIZE, offset = (rip - (u64)x32_stubs) % STUB_SIZE;
        const struct site *site = &sites[index];
        int plain = x32_stubs[index * STUB_SIZE + MOVE_SIZE] == 0x0f;
        if (offset < MOVE_SIZE || !plain) {
            return site->address;
        }
        if (offset == MOVE_SIZE) {
            /* Before the call, or the kernel is about to make it again. */
            *rax = site->number;
            return site->call;
        }
        return site->back;
    }
    for (u32 i = 0; i < pool_count; i++) {
        if (rip >= pools[i].page && rip < pools[i].page + PAGE) {
            u32 trampoline = (u32)ROUND_DOWN(rip, TRAMPOLINE_SIZE);
            for (u32 j = 0; j < site_total; j++) {
                if (trampolines[j] == trampoline) {
                    return sites[j].address;
                }
            }
        }
    }
    return 0;
}

u64 sites_call_before(u64 back) {
    u8 bytes[CALL_SIZE];
    if (read_user(bytes, back - CALL_SIZE, CALL_SIZE) == 0 && bytes[0] == 0x0f && bytes[1] == 0x05) {
        return back - CALL_SIZE;
    }
    for (u32 i = 0; i < site_total; i++) {
        if (sites[i].back == back) {
            return sites[i].call;
        }
    }
    return back - CALL_SIZE;
}
