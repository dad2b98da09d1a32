/*
 * What of the program's memory is text in which sites may be rewritten. Noted and asked while the sites are
 * held (sites_hold).
 */
#ifndef X32_TEXTS_H
#define X32_TEXTS_H

#include "kernel.h"

/* Whole pages below 4 GiB; of size 0 where there are none. */
struct range {
    u64 low, high;
};

/* The pages that a range touches. */
struct range pages_of(u64 address, u64 size);

/* Whether any of it may be text. */
int texts_touch(struct range range);
/* All of it is text; none of it is any longer. */
void texts_add(struct range range);
void texts_remove(struct range range);
/* The text that an address is in. */
struct range text_at(u64 address);

#endif
