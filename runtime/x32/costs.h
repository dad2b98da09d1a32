/*
 * What each way of a system call costs on this machine, beside the kernel's own: `--costs`. A little program
 * of the runtime's own makes calls in every way; what they cost natively is measured before anything is
 * intercepted.
 */
#ifndef X32_COSTS_H
#define X32_COSTS_H

#include "thread.h"

/* Of one loop. */
#define COSTS_CALLS 128
#define COSTS_ROUNDS 24

/* Measures and ends the process. */
__attribute__((noreturn)) void costs_measure(void);
/* A call of the little program's that reports what a loop took: 1 where it is one. */
int costs_note(const struct frame *frame);
void costs_print(void);

#endif
