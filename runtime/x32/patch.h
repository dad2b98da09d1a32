/* Writing into what is executed: stubs, trampolines, and the program's own text. */
#ifndef X32_PATCH_H
#define X32_PATCH_H

#include "kernel.h"

/* The third byte of a jump that covers two instructions: hlt, which faults; or its third and fourth, a
 * `syscall`, which traps. */
#define TRAP_BYTE 0xf4U
#define TRAP_CALL 0x050fU

/* Set when the process gets its second thread. */
extern int x32_several_threads;

/* Writes where no thread executes yet. 0 where that is not to be had. */
int patch_unused(u64 at, const u8 *bytes, u64 size);
/* Whether `patch_text` can write at `at` now, with the threads there are; `covers_by_call`: the third and
 * fourth byte become TRAP_CALL. */
int patch_is_safe(u64 at, int covers_by_call);
/* Writes over instructions that any thread may be about to execute. The third byte, or the third and fourth,
 * hold a thread that comes to the second of two instructions, if they are TRAP_BYTE or TRAP_CALL before or
 * after: they are the first to be made so and the last to be changed back. */
int patch_text(u64 at, const u8 *bytes, u64 size);

/* Around several of these: what they make writable stays so until the end, and is made so once. */
void patch_begin_batch(void);
void patch_end_batch(void);

#endif
