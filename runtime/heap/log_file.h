/*
 * The log's file: found or made once, and from then on written to whatever the program does with its
 * descriptors, limits, user and root folder.
 *
 * Two ways lead to a chunk of the file. While the program has one thread, the file is opened by its name,
 * checked to be the same file, and closed again: this is fast. Another thread could meet that descriptor, so
 * that with threads, and where the file cannot be opened (EMFILE, another user, another root), a page of the
 * file that has been mapped since the beginning is mapped once more, at another offset (mremap with an old
 * size of 0, then remap_file_pages): this takes neither a name nor a descriptor. The file's size is reserved
 * at the beginning, since limits on file sizes hold for growing a file, not for writing to what is mapped.
 */
#ifndef WIDTHWISE_HEAP_LOG_FILE_H
#define WIDTHWISE_HEAP_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* Finds the log of the processes before this one, or makes one. 0: there is none. `base` is absolute. */
int log_file_open(const char *base);
/* Claims a free chunk. 0: there is no room; `loss` says why. */
int log_file_claim(uint32_t *chunk, enum log_loss *loss);
/* Maps the beginning of a chunk, shared; the room is there on the disk, so that writing raises no SIGBUS.
 * NULL: `loss` says why. */
void *log_file_map(uint32_t chunk, size_t size, enum log_loss *loss);
/* Writes a whole chunk. 0: `loss` says why. */
int log_file_write(uint32_t chunk, const void *data, enum log_loss *loss);
/* Memory of the recorder's own, zeroed, and never shared. It is a private mapping of a file without a name,
 * in the folder of the log: the mappings of the process show that it is not what the program asked
 * for. Where no such file can be made it looks like the program's, and `anonymous` grows by its size. */
void *log_file_memory(uint64_t size, uint64_t *anonymous);
/* The descriptor that is kept for programs that this one executes; -1: there is none any more. */
int log_file_descriptor(void);
/* Whether a number is that descriptor's. */
int log_file_is_descriptor(int fd);
/* Another descriptor for the log, which leaves that number free. */
void log_file_move_descriptor(void);
/* No other process writes to the file any more: gives the room back that was reserved. */
void log_file_trim(void);

#endif
