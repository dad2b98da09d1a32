/*
 * Calls a function on another stack: for rare work that needs more than a program's small stacks have. The
 * caller blocks signals first: a handler would run on that stack, too.
 */
#ifndef WIDTHWISE_HEAP_ASIDE_H
#define WIDTHWISE_HEAP_ASIDE_H

/* `top`: behind the last byte of the other stack, a multiple of 16. */
void aside_call(void (*function)(void *), void *argument, void *top);

#endif
