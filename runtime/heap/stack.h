/*
 * Walks stacks by the rules of unwind_rules.h and numbers them, fast enough to do it at every allocation: a
 * walk stops as soon as it meets the stack that was walked last, a frame with the same code, stack and frame
 * pointer, outside of which every return address is still as it was. Most calls differ from the last one in a
 * few frames only.
 */
#ifndef WIDTHWISE_HEAP_STACK_H
#define WIDTHWISE_HEAP_STACK_H

#include "state.h"

/* The number of the stack of a call that returns to `code` with these registers. */
uint32_t stack_number(struct stream *stream, uintptr_t code, uintptr_t stack, uintptr_t frame);
/* Clears them. */
void stack_forget(struct stream *stream);

#endif
