/* Processes that are traced, so that their memory is read while they stand at their exit (EXIT_STOP). */
#ifndef WIDTHWISE_LAUNCHER_EXIT_STOPS_H
#define WIDTHWISE_LAUNCHER_EXIT_STOPS_H

#include "protocol.h"

/* Begins a run: no process of it has been read. */
void exit_stops_begin(void);

/* Attaches to the run's first process; an error is negative. */
long exit_stops_attach(long pid);

/* Reads one stop of a traced process, of which wait4 gave the status, and continues the process. */
void exit_stops_pass(struct reply *reply, long pid, int status);

#endif
