/* The registers that a signal frame carries besides the general ones: x87, SSE, AVX and what came after. */
#ifndef X32_XSTATE_H
#define X32_XSTATE_H

#include "kernel.h"

/* What a frame carries of them, at most. */
#define VECTOR_ROOM 4096U

/* Saves those of this thread in the kernel's form (arch/x86/kernel/fpu/signal.c), as many as there is room
 * for; `to` is aligned to 64 bytes. The bytes written. */
u32 xstate_save(u8 *to, u32 room);
/* Puts those of a frame of the kernel's back into this thread; 0 where there are none. */
int xstate_restore(u64 state);
/* How many bytes of state a frame of the kernel's has at that address. */
u64 xstate_size(u64 state);

#endif
