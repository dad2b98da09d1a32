/* What becomes of each of x32's system calls, 0 to 547: forwarded as it is, translated, or refused and why.
 */
#ifndef X32_TABLE_H
#define X32_TABLE_H

#include "thread.h"
#include "x32.h"

#define TABLE_SIZE 548U

struct row {
    const char *name;      /* null where x32 has no such call: ENOSYS */
    const char *arguments; /* for --trace, a letter each: d decimal, x hexadecimal, o octal, s text */
    long (*call)(struct frame *frame);
    const char *refused; /* why, where x32 has the call and the runtime has not: ENOSYS */
    u16 native;          /* the 64-bit number, where it is another one */
};

const struct row *table_row(u64 number);
/* Whether the call can be made straight from a stub: the same number, nothing to translate. */
int table_is_plain(u64 number);
/* The 64-bit kernel's number of a forwarded call. */
u64 table_native(u64 number);

#endif
