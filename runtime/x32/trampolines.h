/* Jumps below 4 GiB, in pages of their own between the program's: on the way from a site to a stub that is
 * out of its reach. */
#ifndef X32_TRAMPOLINES_H
#define X32_TRAMPOLINES_H

#include "stubs.h"

#define TRAMPOLINE_SIZE 16
/* Between a program and its heap: in so many bytes there is a page for each of its sites (site_distances). */
#define TRAMPOLINE_GAP ((1UL << 24) + 2 * PAGE)

/* Whether a jump at the site may go to `target`. */
int trampoline_suits(const struct site *site, u64 target);
/* One within the site's reach that leads to `stub`; 0 where there is none. */
u32 trampoline_make(const struct site *site, u64 stub);
void trampoline_free(u32 trampoline);
/* The trampoline that an address is in; 0 where it is in none. */
u32 trampoline_at(u64 address);
u64 trampolines_pages(void);
/* The first page of trampolines in [low, high); 0 where there is none. */
u64 trampolines_page(u64 low, u64 high);

#endif
