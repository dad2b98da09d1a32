/* What the launcher reads of files in /proc and of control groups. */
#ifndef WIDTHWISE_LAUNCHER_PROC_H
#define WIDTHWISE_LAUNCHER_PROC_H

#include <stdint.h>

/* The decimal after `key` at the beginning of a line, as in /proc/PID/status or cpu.stat; 0 if there is none.
 */
uint64_t field(const char *text, const char *key);

/* Reads /proc/PID/status, until the next call. */
const char *status_of(long pid);

/* Whether this is a process and the launcher's own child. The launcher waits for all that it traces: for
 * threads, whose rusage is that of their process, and for other processes' children, which these wait for and
 * have in their rusage. */
int is_own_child(long pid);

/* Whether a process that has ended had waited for a child. */
int is_parent(long pid);

#endif
