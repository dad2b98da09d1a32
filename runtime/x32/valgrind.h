/* What the runtime asks of valgrind, by instructions that do nothing but where valgrind looks for them. */
#ifndef X32_VALGRIND_H
#define X32_VALGRIND_H

#include "kernel.h"

int valgrind_is_here(void);
/* From here on the program may touch [from, to), or no longer. memcheck follows the stack pointer, and knows
 * nothing of the frames that the runtime makes. */
void valgrind_frame_begins(u64 from, u64 to);
void valgrind_frame_ends(u64 from, u64 to);
/* Whether memcheck reports what this thread does. */
void valgrind_reports(int does);

#endif
