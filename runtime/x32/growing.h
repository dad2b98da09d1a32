/* Which pages below 4 GiB are of mappings that grow down (MAP_GROWSDOWN), but for the program's own stack. */
#ifndef X32_GROWING_H
#define X32_GROWING_H

#include "kernel.h"

#define GROWING_GAP 256UL /* stack_guard_gap, mm/mmap.c: pages */

/* Whether there has been one. */
extern int growing_any;

void growing_set(u64 address, u64 size, int grows);
/* Of the range, which is or is no longer such a mapping. */
static inline void growing_note(u64 address, u64 size, int grows) {
    if (grows || growing_any) {
        growing_set(address, size, grows);
    }
}

int growing_has(u64 page);
/* The first page of a mapping whose first one was `page`, and that may have grown, down to `lowest`. */
u64 growing_start(u64 page, u64 lowest);
/* The kernel has one mapping there. */
void growing_found(u64 low, u64 high);

#endif
