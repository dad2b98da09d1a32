/*
 * The log's file. The recorder finds or makes it once. Afterwards it can write to it, even if the program
 * closes descriptors, sets limits, or changes its user or root folder.
 *
 * There are two ways to write a chunk. While the program has one thread, the recorder opens the file by its
 * name, checks that it is the same file, writes and closes it: this is fast. With several threads, another
 * thread could use that descriptor. Then, and where the file cannot be opened (EMFILE, another user, another
 * root), the recorder maps a page of the file once more at another offset (mremap with an old size of 0, then
 * remap_file_pages), which takes neither a name nor a descriptor. The file's size is reserved at the
 * beginning: limits on file sizes restrict growing a file, not writing to mapped pages.
 */
#ifndef WIDTHWISE_HEAP_LOG_FILE_H
#define WIDTHWISE_HEAP_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* Finds the log of earlier processes, or makes one. 0: there is none. `base` is absolute. */
int log_file_open(const char *base);
/* Claims a free chunk. 0: there is no room; `loss` says why. */
int log_file_claim(uint32_t *chunk, enum log_loss *loss);
/* Maps the beginning of a chunk, shared. Its disk blocks are allocated, so that writing raises no SIGBUS.
 * NULL: `loss` says why. */
void *log_file_map(uint32_t chunk, size_t size, enum log_loss *loss);
/* Writes a whole chunk. 0: `loss` says why. */
int log_file_write(uint32_t chunk, const void *data, enum log_loss *loss);
/* Memory of the recorder's own, zeroed, and never shared. It is a private mapping of a file without a name,
 * in the folder of the log, so that its path in the process's mappings distinguishes it from the program's
 * memory. Where no such file can be made, the memory is anonymous, and `anonymous` grows by its size. */
void *log_file_memory(uint64_t size, uint64_t *anonymous);
/* The descriptor that is kept for programs that this one executes; -1: there is none. */
int log_file_descriptor(void);
/* Whether that descriptor has this number. */
int log_file_is_descriptor(int fd);
/* Moves that descriptor to another number. */
void log_file_move_descriptor(void);
/* No other process writes to the file any more: truncates it to its used size. */
void log_file_trim(void);

#endif
