/* Programs that this process executes. They are recorded too, and each execution is written to the log. */
#ifndef WIDTHWISE_HEAP_PROCESSES_H
#define WIDTHWISE_HEAP_PROCESSES_H

/* Stores the variables that the environment of a recorded program needs. */
void processes_know_environment(void);
/* A process is about to be forked. */
void processes_fork(void);
/* Whether no other process can be writing to the log. */
int processes_is_alone(void);

#endif
