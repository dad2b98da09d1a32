/* `x32run --list-calls`: what becomes of every x32 call, as a table in Markdown (docs/x32-calls.md). */
#ifndef X32_LISTING_H
#define X32_LISTING_H

void listing_print(void);

#endif
