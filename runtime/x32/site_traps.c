#include "site_traps.h"

/* In the page number's low bits. */
#define SEEN 128
#define TRAPS_OF_PAGE 12U
#define TRAPS_OF_ANY 200U /* from here on a site is not asked whether it is new */
#define TRAPS_MASK (PAGE - 1)
#define REFUSED TRAPS_MASK /* in the place of the number */
static u32 seen[SEEN];

/* The sites themselves. */
static u32 called[SEEN];

/* Between which all of them are, since most of a program's text is mapped where nothing has trapped: the
 * highest, and the complement of the lowest. */
static u32 highest, lowest_complement;

static void raise(u32 *bound, u32 to) {
    u32 now = __atomic_load_n(bound, __ATOMIC_RELAXED);
    while (to > now && !__atomic_compare_exchange_n(bound, &now, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void site_traps_forget(struct range range) {
    u32 lowest = ~__atomic_load_n(&lowest_complement, __ATOMIC_RELAXED);
    if (__atomic_load_n(&highest, __ATOMIC_RELAXED) < range.low || lowest >= range.high) {
        return;
    }
    for (u32 i = 0; i < SEEN; i++) {
        u32 page = (u32)ROUND_DOWN(seen[i], PAGE);
        seen[i] = page >= range.low && page < range.high ? 0 : seen[i];
        called[i] = called[i] >= range.low && called[i] < range.high ? 0 : called[i];
    }
}

/* Of two places the page's own, or the one that has trapped less. */
static u32 *place_of(u32 page) {
    u32 *one = &seen[((page >> 12) * 2654435761U) >> 25], *other = &seen[(one - seen) ^ 1];
    if (ROUND_DOWN(*one, PAGE) == page || ROUND_DOWN(*other, PAGE) == page) {
        return ROUND_DOWN(*one, PAGE) == page ? one : other;
    }
    return (*one & TRAPS_MASK) <= (*other & TRAPS_MASK) ? one : other;
}

static u32 count_trap(u32 call) {
    u32 page = (u32)ROUND_DOWN(call, PAGE), *place = place_of(page);
    u32 now = __atomic_load_n(place, __ATOMIC_RELAXED);
    now = ROUND_DOWN(now, PAGE) == page ? now : page;
    if ((now & TRAPS_MASK) < TRAPS_OF_ANY) {
        now++;
        __atomic_store_n(place, now, __ATOMIC_RELAXED);
    }
    return now & TRAPS_MASK;
}

static int is_new(u32 call) {
    u32 *slot = &called[(call * 2654435761U) >> 25];
    return __atomic_exchange_n(slot, call, __ATOMIC_RELAXED) != call;
}

enum trapped site_trapped(u32 call) {
    raise(&highest, call);
    raise(&lowest_complement, ~call);
    u32 traps = count_trap(call);
    if (traps == REFUSED) {
        return TRAPPED_FOR_GOOD;
    }
    int is_first = is_new(call);
    return traps >= TRAPS_OF_PAGE && (traps >= TRAPS_OF_ANY || !is_first) ? TRAPPED_OFTEN : TRAPPED_SELDOM;
}

void site_traps_refuse_page(u32 call) {
    u32 page = (u32)ROUND_DOWN(call, PAGE);
    __atomic_store_n(place_of(page), page | REFUSED, __ATOMIC_RELAXED);
}

void site_traps_of_page(u32 call, void (*visit)(u32 other)) {
    for (u32 i = 0; i < SEEN; i++) {
        u32 other = __atomic_load_n(&called[i], __ATOMIC_RELAXED);
        if (other != call && ROUND_DOWN(other, PAGE) == ROUND_DOWN(call, PAGE)) {
            visit(other);
        }
    }
}
