#include "trampolines.h"
#include "space.h"
#include "user_memory.h"

#define TRAMPOLINES (PAGE / TRAMPOLINE_SIZE)
#define POOLS 128
/* Of jmp rel32, less what a page of trampolines and the site itself take. */
#define REACH ((1UL << 31) - 2 * PAGE)
/* Where nothing else goes before the address space is full: between what is never mapped and where programs
 * begin. */
#define LOW_POOLS 0x10000UL
#define LOW_POOLS_END 0x400000UL

/* Pages are only ever added. */
LARGE static struct pool {
    u32 page;
    u64 used[TRAMPOLINES / 64]; /* one bit for each */
} pools[POOLS];
static u32 pool_count;

static u32 pools_made(void) { return __atomic_load_n(&pool_count, __ATOMIC_ACQUIRE); }

u64 trampolines_pages(void) { return pools_made(); }

u64 trampolines_page(u64 low, u64 high) {
    u64 first = 0;
    for (u32 i = 0, count = pools_made(); i < count; i++) {
        u64 page = pools[i].page;
        if (page + PAGE > low && page < high && (first == 0 || page < first)) {
            first = page;
        }
    }
    return first;
}

static u64 absolute(i64 value) { return (u64)(value < 0 ? -value : value); }

int trampoline_suits(const struct site *site, u64 target) {
    u64 distance = target - (site->address + JUMP_SIZE);
    struct distances wanted = site_distances(site);
    return absolute((i64)distance) < REACH &&
           (wanted.unit == 0 || distance % wanted.unit - wanted.first < DISTANCES);
}

static u32 take_from_pool(struct pool *pool, const struct site *site) {
    for (u32 i = 0; i < TRAMPOLINES; i++) {
        u32 trampoline = pool->page + i * TRAMPOLINE_SIZE;
        if (!(pool->used[i / 64] >> (i % 64) & 1) && trampoline_suits(site, trampoline)) {
            pool->used[i / 64] |= 1UL << (i % 64);
            return trampoline;
        }
    }
    return 0;
}

/* A page in which there is a trampoline that suits; 0 where there is none in [low, high). */
static u64 page_between(const struct site *site, u64 low, u64 high) {
    struct distances wanted = site_distances(site);
    if (wanted.unit == 0) {
        return space_find(PAGE, PAGE, low, high);
    }
    /* One place in every unit. */
    u64 first = ROUND_UP(site->address + JUMP_SIZE + wanted.first, TRAMPOLINE_SIZE) % wanted.unit;
    for (u64 at = ROUND_DOWN(high, wanted.unit) + first; at >= low + wanted.unit; at -= wanted.unit) {
        u64 page = ROUND_DOWN(at, PAGE);
        if (page >= low && page + PAGE <= high && space_is_free(page, PAGE)) {
            return page;
        }
    }
    return 0;
}

/* The same from below. */
static u64 page_above(const struct site *site, u64 low, u64 high) {
    struct distances wanted = site_distances(site);
    if (wanted.unit == 0) {
        return space_find(PAGE, PAGE, low, high);
    }
    u64 first = ROUND_UP(site->address + JUMP_SIZE + wanted.first, TRAMPOLINE_SIZE) % wanted.unit;
    for (u64 at = ROUND_DOWN(low, wanted.unit) + first; at < high; at += wanted.unit) {
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
        /* Of the program itself, in the gap before the heap: anywhere else it would divide what is free. */
        u64 heap = space_heap_start(), high = address + REACH < TASK_SIZE ? address + REACH : TASK_SIZE;
        page = page_above(site, address, address < heap && heap < high ? heap : high);
    }
    if (page == 0 || failed(space_map_within(PAGE, PROT_READ | PROT_EXEC, page, page + PAGE))) {
        return NULL;
    }
    struct pool *pool = &pools[pool_count];
    pool->page = (u32)page;
    __atomic_store_n(&pool_count, pool_count + 1, __ATOMIC_RELEASE);
    return pool;
}

static u32 take(const struct site *site) {
    for (u32 i = 0; i < pool_count; i++) {
        u32 trampoline = take_from_pool(&pools[i], site);
        if (trampoline != 0) {
            return trampoline;
        }
    }
    struct pool *pool = pool_for(site);
    return pool != NULL ? take_from_pool(pool, site) : 0;
}

u32 trampoline_make(const struct site *site, u64 stub) {
    /* jmp *2(%rip): the address is aligned, as the program may have set AC. */
    u8 jump[TRAMPOLINE_SIZE] = {0xff, 0x25, 2, 0, 0, 0};
    u32 trampoline = take(site);
    if (trampoline == 0) {
        return 0;
    }
    put32(jump + 8, stub);
    put32(jump + 12, stub >> 32);
    if (!code_write_unused(trampoline, jump, sizeof jump)) {
        trampoline_free(trampoline);
        return 0;
    }
    return trampoline;
}

void trampoline_free(u32 trampoline) {
    for (u32 i = 0; i < pool_count; i++) {
        if (ROUND_DOWN(trampoline, PAGE) == pools[i].page) {
            u32 place = (trampoline - pools[i].page) / TRAMPOLINE_SIZE;
            pools[i].used[place / 64] &= ~(1UL << (place % 64));
        }
    }
}

u32 trampoline_at(u64 address) {
    for (u32 i = 0, count = pools_made(); i < count; i++) {
        if (address >= pools[i].page && address < pools[i].page + PAGE) {
            return (u32)ROUND_DOWN(address, TRAMPOLINE_SIZE);
        }
    }
    return 0;
}
