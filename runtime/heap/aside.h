/*
 * Calls a function on another stack: what is rare and needs more of a stack than a program's small ones have.
 * Signals have to be held: a handler would run on that stack, too.
 */
#ifndef WIDTHWISE_HEAP_ASIDE_H
#define WIDTHWISE_HEAP_ASIDE_H

/* `top`: behind the last byte of the other stack, a multiple of 16. */
void aside_call(void (*function)(void *), void *argument, void *top);

#endif
