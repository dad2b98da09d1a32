/*
 * The file that starts x32 programs: the one this process was started from. /proc/thread-self/exe leads there
 * always, but a process that is looked up in /proc is entered there first and taken out when it ends, which
 * costs some 20 microseconds for each execve. So its path is remembered with its device and inode, and used
 * as long as it leads to the same file.
 */
#ifndef X32_OWN_FILE_H
#define X32_OWN_FILE_H

#include "kernel.h"

/* At the start: AT_EXECFN, which need not lead there. */
void own_file_begin(const char *path);
/* The option by which another process of the runtime has started this one (own_file_option). It stays where
 * it is. */
void own_file_given(const char *option);
/* Before a fork, so that not every child has to find out. */
void own_file_learn(void);
/* A descriptor of it, by its path; an error where that is not known, or leads elsewhere. */
long own_file_open(void);
/* "device:inode:path", after own_file_open() has opened it. */
const char *own_file_option(void);

#endif
