/* The stacks that a stream has numbered. */
#ifndef WIDTHWISE_HEAP_STACK_H
#define WIDTHWISE_HEAP_STACK_H

#include "recorder.h"

/* All of them are forgotten. */
void stack_forget(struct stream *stream);

#endif
