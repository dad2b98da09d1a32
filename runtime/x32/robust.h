/*
 * The robust list: mutexes that are released should their owner die. The kernel walks it when a thread ends,
 * however that ends; x32's is linked by 4-byte pointers, so it is registered through the i386 entry, which
 * costs some 5 microseconds.
 *
 * A list is registered as soon as another thread or process can wait for its mutexes: when the process gets a
 * second thread, or shares memory with another process (MAP_SHARED, shmat, CLONE_VM). Until then no waiter
 * outlives the thread. While the process is alone only its one thread has to be registered when that changes.
 *
 * Where the kernel has no such entry, the runtime walks the list where it sees the thread end: by exit,
 * exit_group and execve, not by a signal. The kernel does it in the middle of an execve that cannot fail any
 * more; the runtime has to before. So an execve that is known to fail releases nothing, what no other process
 * can wait for is not released, and after a failure what nobody has taken meanwhile is taken back.
 */
#ifndef X32_ROBUST_H
#define X32_ROBUST_H

#include "thread.h"

/* Before the process gets a second thread, and before the program has its first shared mapping. */
void robust_not_alone(void);
/* Another process, which is no vfork child, gets the same memory. */
void robust_memory_has_processes(void);
/* Whether the runtime walks the thread's list. */
int robust_releases(const struct thread *thread);
/* The calling thread ends. */
void robust_thread_ends(struct thread *thread);
/* All of them do. */
void robust_process_ends(void);

/* What an execve has released; of more than so many the rest is not taken back. */
#define RELEASED_MOST 64U
struct released {
    u32 count;
    struct released_mutex {
        u32 futex, was, is;
    } at[RELEASED_MOST];
};
void robust_before_exec(struct thread *thread, struct released *released);
void robust_after_failed_exec(struct thread *thread, const struct released *released);

#endif
