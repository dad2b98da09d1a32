/*
 * The robust list: mutexes that are to be given up should their owner die. The kernel walks it when a thread
 * ends, however that ends; x32's is linked by 4-byte pointers, so it is registered through the i386 entry.
 * Where the kernel has none, the runtime walks it where it sees the thread end: by exit, exit_group and
 * execve, not by a signal.
 */
#ifndef X32_ROBUST_H
#define X32_ROBUST_H

#include "thread.h"

/* The calling thread ends. */
void robust_thread_ends(struct thread *thread);
/* All of them do. */
void robust_process_ends(void);

#endif
