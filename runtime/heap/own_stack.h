/*
 * Calls functions on the recorder's own stacks: for rare work that needs more than a program's small stacks
 * have. A handler would run on that stack, too, so that signals are held meanwhile.
 */
#ifndef WIDTHWISE_HEAP_OWN_STACK_H
#define WIDTHWISE_HEAP_OWN_STACK_H

/* Holds signals, and calls the function on the stack of the thread's stream if there is one. */
void aside_call(void (*function)(void *), void *argument);
/* The same on the first stack, which the process has once: the caller has the lock of lifecycle.c, and holds
 * signals. */
void aside_call_first(void (*function)(void *), void *argument);

#endif
