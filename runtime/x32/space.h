/*
 * The program's address space: which pages below 4 GiB are taken, and where the next mapping goes. A 64-bit
 * process's mappings would go above 4 GiB, so the choice is made here and handed to the kernel with
 * MAP_FIXED_NOREPLACE; it has the last word, and where the two differ (a stack that grew, shmat's size), the
 * map of the process is read again.
 */
#ifndef X32_SPACE_H
#define X32_SPACE_H

#include "kernel.h"

/* Lays out the space below `stack_low`, the lowest address that the stack may grow to. `legacy`: from the
 * bottom up, as the kernel does where the stack is unlimited. */
void space_begin(u64 mapping_base, int legacy);
void space_take(u64 address, u64 size);
void space_free(u64 address, u64 size);
int space_is_free(u64 address, u64 size);
/* A free range within [low, high), or 0. */
u64 space_find(u64 size, u64 alignment, u64 low, u64 high);
/* The range the kernel would choose, or 0 where /proc has none either. */
u64 space_choose(u64 size, u64 alignment);
/* The end, at most `high`, of the pages from `low` on that are alike: shared with a file or with other
 * processes, so that what is written there is not the program's alone, or not. */
u64 space_shared_until(u64 low, u64 high, int *is_shared);
/* Whether the program has had any that are. */
int space_is_shared(void);
/* A range is shared with a file or with other processes from now on, or no longer. */
void space_note_shared(u64 address, u64 size, int is_shared);
/* Reads which pages are taken from /proc/self/maps. */
void space_read_again(void);
/* In a copy of the process, where no other thread reads them. */
void space_forked(void);
/* At a place that was chosen there is another mapping, new or unknown till now. `attempt`: how often the same
 * request has met that. Many are made: of several threads that are given the same place one gets it, and may
 * be preempted before it has noted that; and the thread that reads /proc for all may be, too. */
#define SPACE_ATTEMPTS 100
void space_learn(u64 address, u64 size, int attempt);

/* mmap, munmap, mremap and brk as a kernel does for an x32 program. */
long space_map(u64 address, u64 size, u64 protection, u64 flags, i64 fd, u64 offset);
long space_unmap(u64 address, u64 size);
/* A mapping is gone by another call. */
void space_gone(u64 address, u64 size);
long space_remap(u64 old, u64 old_size, u64 new_size, u64 flags, u64 new_address);
/* Anonymous memory anywhere in [low, high), for the runtime's own use. */
long space_map_within(u64 size, u64 protection, u64 low, u64 high);

/* The program's heap begins at `start`. */
void space_begin_heap(u64 program_end, u64 start);
u64 space_heap_start(void);
u64 space_heap_end(void);
long space_break(u64 wanted);

#endif
