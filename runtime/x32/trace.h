/* --trace and --stats. */
#ifndef X32_TRACE_H
#define X32_TRACE_H

#include "thread.h"

/* Of a number that is i386's. */
#define TRACE_I386 (1UL << 32)

void trace_before(const struct frame *frame, u64 number);
void trace_after(const struct frame *frame, u64 number, long result);
void trace_count_trap(void);
/* What is printed at the end of the process, where --stats was given. */
void trace_statistics(void);

#endif
