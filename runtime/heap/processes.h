/* Programs that this process executes: they are recorded, too, and each execution is written to the log. */
#ifndef WIDTHWISE_HEAP_PROCESSES_H
#define WIDTHWISE_HEAP_PROCESSES_H

/* Remembers what a program's environment has to have to be recorded. */
void processes_know_environment(void);
/* A process is about to be forked. */
void processes_fork(void);
/* No other process can have come to write to the log. */
int processes_is_alone(void);

#endif
