/* The program's memory, which may not be there: reading and writing it ends in 0 or -EFAULT, as in the
 * kernel. */
#ifndef X32_MEMORY_H
#define X32_MEMORY_H

#include "kernel.h"

/* The program's size of the address space: IA32_PAGE_OFFSET, arch/x86/include/asm/page_64_types.h. */
#define TASK_SIZE 0xffffe000UL

int read_user(void *to, u64 from, size_t size);
int write_user(u64 to, const void *from, size_t size);
/* Reads text up to its 0; -ENAMETOOLONG where that does not fit. */
int read_user_text(char *to, u64 from, size_t room);

#define READ_USER(variable, address) read_user(&(variable), (address), sizeof(variable))
#define WRITE_USER(address, variable) write_user((address), &(variable), sizeof(variable))

#endif
