/* The program's memory, which may not be there: reading and writing it ends in 0 or -EFAULT, as in the
 * kernel. */
#ifndef X32_USER_MEMORY_H
#define X32_USER_MEMORY_H

#include "kernel.h"

/* The program's size of the address space: IA32_PAGE_OFFSET, arch/x86/include/asm/page_64_types.h. */
#define TASK_SIZE 0xffffe000UL

/* No process can read it, whatever it has mapped: the kernel refuses a call with it in the order of its own
 * checks. */
#define UNREADABLE (1UL << 63)

int read_user(void *to, u64 from, size_t size);
int write_user(u64 to, const void *from, size_t size);
/* Reads text up to its 0; -ENAMETOOLONG where that does not fit. */
int read_user_text(char *to, u64 from, size_t room);

/* Around what takes the program's memory away: no thread is in the middle of reading it (user_memory.c). The
 * first says whether it counted, which the second wants to know. */
int memory_unmapping_begins(void);
void memory_unmapping_ends(int counted);
/* In a copy of the process, which has one thread. */
void memory_forked(void);

#define READ_USER(variable, address) read_user(&(variable), (address), sizeof(variable))
#define WRITE_USER(address, variable) write_user((address), &(variable), sizeof(variable))

#endif
