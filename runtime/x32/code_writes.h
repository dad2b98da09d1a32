/* Writing into what is executed: stubs, trampolines, and the program's own text. */
#ifndef X32_CODE_WRITES_H
#define X32_CODE_WRITES_H

#include "kernel.h"

/* The third byte of a jump that covers two instructions: hlt, which faults; or its third and fourth, a
 * `syscall`, which traps. */
#define TRAP_BYTE 0xf4U
#define TRAP_CALL 0x050fU

static inline u32 get16(const volatile u8 *at) { return at[0] | (u32)at[1] << 8; }
/* `jmp .`, which holds a thread: it executes that until something else is there. */
#define JUMP_TO_ITSELF 0xfeebU

/* Set when the process gets its second thread. */
extern int x32_several_threads;

/* Writes where no thread executes yet. 0 where that is not to be had. */
int code_write_unused(u64 at, const u8 *bytes, u64 size);
/* Whether `code_write` can write at `at` now, with the threads there are; `covers_by_call`: the third and
 * fourth byte become TRAP_CALL. */
int code_write_is_safe(u64 at, int covers_by_call);
/* Writes over instructions that any thread may be about to execute. `meanwhile` is what the first two bytes
 * are while the others are written (site_meanwhile): these become so in one store, and what they are to be in
 * another. The third byte, or the third and fourth,
 * hold a thread that comes to the second of two instructions, if they are TRAP_BYTE or TRAP_CALL before or
 * after: they are the first to be made so and the last to be changed back. */
int code_write(u64 at, const u8 *bytes, u64 size, u32 meanwhile);

/* Around several of these: what they make writable stays so until the end, and is made so once. Where a page
 * of [low, high) is made writable, all of it is, and so with the runtime's own text: a mapping of which one
 * page was writable once is several mappings for the kernel from then on (VM_ACCOUNT, mprotect_fixup), each
 * of which costs every fork and every exec. With low = high the pages alone are. */
void code_writes_begin(u64 low, u64 high);
void code_writes_end(void);
/* Whether the kernel has refused one of them since the beginning. */
int code_writes_were_refused(void);

#endif
