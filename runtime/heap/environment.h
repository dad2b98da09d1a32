/* The variables that the dynamic linker and the recorder need in a program that is executed. */
#ifndef WIDTHWISE_HEAP_ENVIRONMENT_H
#define WIDTHWISE_HEAP_ENVIRONMENT_H

#include "state.h"

/* Stores their values in this process. */
void environment_know(void);
/* Whether the environment has them all. */
int environment_is_complete(char *const *environment);
/* The environment with those that are missing, in memory of the stream. */
char *const *environment_completed(struct stream *stream, char *const *environment);

#endif
