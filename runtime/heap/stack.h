/* The stacks that a stream has numbered. */
#ifndef WIDTHWISE_HEAP_STACK_H
#define WIDTHWISE_HEAP_STACK_H

#include "recorder.h"

/* Clears them. */
void stack_forget(struct stream *stream);

#endif
