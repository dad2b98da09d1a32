#include "sites.h"
#include "account.h"
#include "lock.h"
#include "memory.h"
#include "offsets.h"
#include "settings.h"
#include "space.h"
#include "table.h"
#include "text.h"

extern u8 x32_stubs[], x32_enter[];

#define TRAMPOLINE_SIZE 16
#define TRAMPOLINES (PAGE / TRAMPOLINE_SIZE)
#define POOLS 128
#define TEXTS 512
/* Of jmp rel32, less what a page of trampolines and the site itself take. */
#define REACH ((1UL << 31) - 2 * PAGE)
/* Where nothing else goes before the address space is full: between what is never mapped and where programs
 * begin. */
#define LOW_POOLS 0x10000UL
#define LOW_POOLS_END 0x400000UL
/* The third byte of a jump that covers two instructions: hlt, which faults. */
#define TRAP_BYTE 0xf4U

static struct site sites[STUB_COUNT];
static u32 site_total;
static u32 slots_used;
static u16 owner[STUB_COUNT]; /* of each slot: which site's stub it belongs to */
static u64 refused;
/* One bit for each call of the table that a stub may make. */
#define PLAIN_WORDS ((TABLE_SIZE + 63) / 64)
/* The stubs begin with that. Just above 4 GiB, if they can be had there: libraries, which are just below, are
 * then reached by direct jumps, and reach back. */
#define NEAR_STUBS (1UL << 32)
#define STUBS_SIZE ((u64)STUB_COUNT * STUB_SIZE)
static u8 *stubs;

/* Open addressing by the address of the `syscall`, so that a library that comes and goes finds its stubs
 * again. */
#define BUCKETS (STUB_COUNT * 2)
static u16 buckets[BUCKETS];

static struct pool {
    u32 page;
    u64 used[TRAMPOLINES / 64]; /* one bit for each */
} pools[POOLS];
static u32 pool_count;

static struct { u32 low, high; } texts[TEXTS];
static u32 text_count;

static u32 lock;
static int everything_enters, rewriting;

static int change_text(u64 at, const u8 *bytes, u64 size, int in_steps);

void sites_begin(int every_call_enters, int rewrite) {
    everything_enters = every_call_enters;
    rewriting = rewrite;
    u64 plain_calls[PLAIN_WORDS] = {0};
    for (u64 number = 0; number < TABLE_SIZE; number++) {
        if (table_is_plain(number | X32_BIT)) {
            plain_calls[number / 64] |= 1UL << (number % 64);
        }
    }
    long near = KERNEL_6(__NR_mmap, NEAR_STUBS, STUBS_SIZE, PROT_READ | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    stubs = near == (long)NEAR_STUBS ? (u8 *)near : x32_stubs;
    change_text((u64)stubs, (const u8 *)plain_calls, sizeof plain_calls, 0);
    slots_used = (u32)ROUND_UP(sizeof plain_calls, STUB_SIZE) / STUB_SIZE;
}

u64 sites_stubs(void) { return (u64)stubs; }
u64 sites_stubs_size(void) { return STUBS_SIZE; }
u64 sites_pools(void) { return pool_count; }

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

/* Whether a jump at `site` may go to `trampoline`. */
static int suits(const struct site *site, u64 trampoline) {
    u64 distance = trampoline - (site->address + JUMP_SIZE);
    return absolute((i64)distance) < REACH &&
           (site->pattern != PATTERN_COMPARE || (distance >> 8 & 0xff) == TRAP_BYTE);
}

u64 sites_own_page(u64 low, u64 high) {
    u64 first = 0;
    lock_take(&lock);
    for (u32 i = 0; i < pool_count; i++) {
        u64 page = pools[i].page;
        if (page + PAGE > low && page < high && (first == 0 || page < first)) {
            first = page;
        }
    }
    lock_release(&lock);
    return first;
}

static u32 take_from_pool(struct pool *pool, const struct site *site) {
    for (u32 i = 0; i < TRAMPOLINES; i++) {
        u32 trampoline = pool->page + i * TRAMPOLINE_SIZE;
        if (!(pool->used[i / 64] >> (i % 64) & 1) && suits(site, trampoline)) {
            pool->used[i / 64] |= 1UL << (i % 64);
            return trampoline;
        }
    }
    return 0;
}

/* A page in which there is a trampoline that suits; 0 where there is none in [low, high). */
static u64 page_between(const struct site *site, u64 low, u64 high) {
    if (site->pattern != PATTERN_COMPARE) {
        return space_find(PAGE, PAGE, low, high);
    }
    /* One place in every 64 KiB. */
    u64 first = ROUND_UP(site->address + JUMP_SIZE + (TRAP_BYTE << 8), TRAMPOLINE_SIZE) & 0xffff;
    for (u64 at = ROUND_DOWN(high, 0x10000UL) + first; at >= low + 0x10000; at -= 0x10000) {
        u64 page = ROUND_DOWN(at, PAGE);
        if (page >= low && page + PAGE <= high && space_is_free(page, PAGE)) {
            return page;
        }
    }
    return 0;
}

static struct pool *pool_for(const struct site *site) {
    u64 address = site->address;
    if (pool_count == POOLS) {
        return NULL;
    }
    u64 page = 0;
    if (address < REACH) {
        page = page_between(site, LOW_POOLS, LOW_POOLS_END);
    }
    if (page == 0) {
        page = page_between(site, address > REACH ? address - REACH : LOW_POOLS, address);
    }
    if (page == 0) {
        page = page_between(site, address, address + REACH < TASK_SIZE ? address + REACH : TASK_SIZE);
    }
    if (page == 0 || failed(space_map_within(PAGE, PROT_READ | PROT_EXEC, page, page + PAGE))) {
        return NULL;
    }
    pools[pool_count].page = (u32)page;
    return &pools[pool_count++];
}

static u32 trampoline_for(const struct site *site) {
    for (u32 i = 0; i < pool_count; i++) {
        u32 trampoline = take_from_pool(&pools[i], site);
        if (trampoline != 0) {
            return trampoline;
        }
    }
    struct pool *pool = pool_for(site);
    return pool != NULL ? take_from_pool(pool, site) : 0;
}

static u8 *stub_of(const struct site *site) { return stubs + site->slot * STUB_SIZE; }

static struct site *make(struct site *wanted, u16 *bucket) {
    u8 code[LARGEST_STUB], jump[TRAMPOLINE_SIZE] = {0xff, 0x25, 0, 0, 0, 0};
    u8 *stub = stubs + slots_used * STUB_SIZE;
    enum direct direct = everything_enters               ? DIRECT_NEVER
                         : this_thread()->counts != NULL ? DIRECT_COUNTED
                                                         : DIRECT;
    u32 size = stub_write(code, (u64)stub, wanted, direct, (u64)x32_enter, (const u64 *)stubs);
    u32 slots = (u32)ROUND_UP(size, STUB_SIZE) / STUB_SIZE;
    if (slots_used + slots > STUB_COUNT) {
        return NULL;
    }
    wanted->slot = (u16)slots_used;
    /* Nobody executes these bytes before the site jumps there. */
    if (!change_text((u64)stub, code, size, 0)) {
        return NULL;
    }
    if (!suits(wanted, (u64)stub)) {
        wanted->trampoline = trampoline_for(wanted);
        put32(jump + 6, (u64)stub);
        put32(jump + 10, (u64)stub >> 32);
        if (wanted->trampoline == 0 || !change_text(wanted->trampoline, jump, sizeof jump, 0)) {
            return NULL;
        }
    }
    for (u32 i = 0; i < slots; i++) {
        owner[slots_used + i] = (u16)site_total;
    }
    slots_used += slots;
    sites[site_total] = *wanted;
    *bucket = (u16)++site_total;
    return &sites[site_total - 1];
}

static struct site *find_or_make(struct site *wanted) {
    u16 *bucket = bucket_of(wanted->call);
    if (*bucket == 0) {
        return make(wanted, bucket);
    }
    struct site *site = &sites[*bucket - 1];
    int same = site->pattern == wanted->pattern && site->back == wanted->back &&
               (site->number == wanted->number || site->pattern != PATTERN_MOVE);
    return same ? site : NULL;
}

static int rewrite_locked(u64 call, u64 number) {
    u8 bytes[SITE_BEFORE + CALL_SIZE + SITE_AFTER];
    struct site wanted;
    if (number >> 32 != 0 || !in_text(call - SITE_BEFORE, call + CALL_SIZE + SITE_AFTER) ||
        read_user(bytes, call - SITE_BEFORE, sizeof bytes) < 0 ||
        site_recognise(&wanted, (u32)call, bytes, (u32)number) == PATTERN_NONE) {
        return 0;
    }
    /* With several threads, the two bytes that hold others have to be stored at once. */
    int in_steps = __atomic_load_n(&x32_several_threads, __ATOMIC_RELAXED);
    if (in_steps && ((wanted.address & 63) == 63 || !cores_can_be_told())) {
        return 0;
    }
    struct site *site = find_or_make(&wanted);
    if (site == NULL) {
        return 0;
    }
    u8 jump[7] = {0xe9, 0, 0, 0, 0, 0x66, 0x90};
    u64 target = site->trampoline != 0 ? site->trampoline : (u64)stub_of(site);
    put32(jump + 1, target - (site->address + JUMP_SIZE));
    return change_text(site->address, jump, site->replaced, in_steps);
}

/* The sites that have trapped once. A rewriting costs several times what a trap does, and a page of its own
 * to the program; much of what a program calls at its start is called once. */
#define SEEN 1024
static u32 seen[SEEN];

static int is_new(u32 call) {
    u32 *slot = &seen[(call * 2654435761U) >> 22];
    return __atomic_exchange_n(slot, call, __ATOMIC_RELAXED) != call;
}

void sites_rewrite(u64 call, u64 number) {
    if (!rewriting || is_new((u32)call)) {
        return;
    }
    struct account_stretch before = account_rewriting();
    lock_take(&lock);
    if (!rewrite_locked(call, number)) {
        refused++;
    }
    lock_release(&lock);
    account_rewritten(before);
}

/* `mov $imm64` holds eight bytes: whoever makes code at run time has move and call, seven, in a constant. */
static int in_constant(const u8 *call) {
    for (int before = JUMP_SIZE + 2; before <= JUMP_SIZE + 3; before++) {
        if ((call[-before] & 0xfe) == 0x48 && (call[1 - before] & 0xf8) == 0xb8) {
            return 1;
        }
    }
    return 0;
}

void sites_rewrite_all(u64 address, u64 size) {
    const u8 *text = (const u8 *)address;
    lock_take(&lock);
    for (u64 i = SITE_BEFORE; i + CALL_SIZE + SITE_AFTER <= size; i++) {
        int is_call = text[i] == 0x0f && text[i + 1] == 0x05 && !in_constant(text + i);
        if (is_call && !rewrite_locked(address + i, 0) && settings.trace) {
            complain("the bytes of a system call at %x are not rewritten", address + i);
        }
    }
    lock_release(&lock);
}

static const struct site *owner_of(u64 rip) { return &sites[owner[(rip - (u64)stubs) / STUB_SIZE]]; }

int sites_is_stub(u64 rip) { return rip >= (u64)stubs && rip < (u64)stubs + STUBS_SIZE; }

u64 sites_in_program(u64 rip, u64 *rax) {
    if (sites_is_stub(rip)) {
        const struct site *site = owner_of(rip);
        u64 offset = rip - (u64)stub_of(site);
        if (site->pattern == PATTERN_COMPARE && offset >= site->rest) {
            /* After the call. The program has no such place any more: the comparison is made here alone. */
            return rip;
        }
        if (site->pattern == PATTERN_CANCEL && site->made != 0 && offset >= site->rest) {
            *rax |= X32_BIT;
            return site->address;
        }
        if (site->stretched && (site->made == 0 || offset < site->made)) {
            return rip; /* it goes on here */
        }
        if (offset < site->between) {
            *rax = site->number;
            return site->address + site->replaced + offset;
        }
        if (site->between != 0 && (site->made == 0 || offset < site->made)) {
            *rax = site->number;
            return site->call;
        }
        if (site->made == 0 || offset < site->made) {
            /* Nothing has happened: from the beginning. */
            if (site->pattern == PATTERN_MOVE) {
                *rax = site->number;
            } else if (site->made != 0 && offset > JUMP_SIZE) {
                *rax |= X32_BIT;
            }
            return site->address;
        }
        if (offset == site->made) {
            /* Before the call, or the kernel is about to make it again. */
            *rax = (u32)*rax | X32_BIT;
            return site->call;
        }
        return site->back;
    }
    for (u32 i = 0; i < pool_count; i++) {
        if (rip >= pools[i].page && rip < pools[i].page + PAGE) {
            for (u32 j = 0; j < site_total; j++) {
                if (sites[j].trampoline == (u32)ROUND_DOWN(rip, TRAMPOLINE_SIZE)) {
                    return sites[j].address;
                }
            }
        }
    }
    return 0;
}

u64 sites_after_covered(u64 rip) {
    if (rip < CALL_SIZE || rip >= (1UL << 32)) {
        return 0;
    }
    u16 *bucket = bucket_of((u32)(rip - CALL_SIZE));
    const struct site *site = &sites[*bucket - 1];
    if (*bucket == 0 || site->pattern != PATTERN_COMPARE) {
        return 0;
    }
    return (u64)(stub_of(site) + site->rest);
}

u64 sites_call_before(u64 back) {
    u8 bytes[CALL_SIZE];
    if (sites_is_stub(back)) {
        return owner_of(back)->call;
    }
    if (read_user(bytes, back - CALL_SIZE, CALL_SIZE) == 0 && bytes[0] == 0x0f && bytes[1] == 0x05) {
        return back - CALL_SIZE;
    }
    for (u32 i = 0; i < site_total; i++) {
        if (sites[i].back == back) {
            return sites[i].pattern == PATTERN_EXIT ? sites[i].address : sites[i].call;
        }
    }
    return back - CALL_SIZE;
}
