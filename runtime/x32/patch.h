/* Writing into what is executed: stubs, trampolines, and the program's own text. */
#ifndef X32_PATCH_H
#define X32_PATCH_H

#include "kernel.h"

/* The third byte of a jump that covers two instructions: hlt, which faults. */
#define TRAP_BYTE 0xf4U

/* Set when the process gets its second thread. */
extern int x32_several_threads;

/* Writes where nobody executes yet. 0 where that is not to be had. */
int patch_unused(u64 at, const u8 *bytes, u64 size);
/* Whether `patch_text` can write at `at` now, with the threads there are. */
int patch_is_safe(u64 at);
/* Writes over instructions that any thread may be about to execute. The third byte is what holds a thread
 * that comes to the second of two instructions, if it is TRAP_BYTE before or after: it is the first to be
 * made so and the last to be changed back. */
int patch_text(u64 at, const u8 *bytes, u64 size);

/* Around several of these: what they make writable stays so until the end, and is made so once. */
void patch_begin_batch(void);
void patch_end_batch(void);

#endif
