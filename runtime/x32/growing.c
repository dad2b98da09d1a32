#include "growing.h"

#define PAGES (1UL << 20)

/* One bit for each page; nothing here is touched before there is the first. */
LARGE static u64 growing[PAGES / 64];
int growing_any;

void growing_set(u64 address, u64 size, int grows) {
    u64 end = address + size < address ? 1UL << 32 : address + size;
    end = ROUND_UP(end < (1UL << 32) ? end : 1UL << 32, PAGE) / PAGE;
    growing_any |= grows;
    for (u64 page = address / PAGE; page < end; page++) {
        u64 *word = &growing[page / 64];
        if (page % 64 == 0 && end - page >= 64) {
            __atomic_store_n(word, grows ? ~0UL : 0, __ATOMIC_RELAXED);
            page += 63;
        } else if (grows) {
            __atomic_fetch_or(word, 1UL << (page % 64), __ATOMIC_RELAXED);
        } else {
            __atomic_fetch_and(word, ~(1UL << (page % 64)), __ATOMIC_RELAXED);
        }
    }
}

int growing_has(u64 page) {
    return growing_any && page < PAGES &&
           ((__atomic_load_n(&growing[page / 64], __ATOMIC_RELAXED) >> (page % 64)) & 1);
}

u64 growing_start(u64 page, u64 lowest) {
    u64 low = page;
    u8 resident;
    while (low > lowest && !failed(KERNEL_3(__NR_mincore, (low - 1) * PAGE, PAGE, &resident))) {
        low--;
    }
    growing_set(low * PAGE, (page - low) * PAGE, 1);
    return low;
}

void growing_found(u64 low, u64 high) {
    if (high <= 1UL << 32 && growing_has(high / PAGE - 1)) {
        growing_set(low, high - low, 1);
    }
}
