/* Puts a program and its interpreter into memory below 4 GiB. Gives up, with one message, where that cannot
 * be. */
#ifndef X32_LOADER_H
#define X32_LOADER_H

#include "elf.h"

struct loaded {
    struct image image;
    u32 bias; /* added to every address as linked */
};

struct program {
    struct loaded main, interpreter;
    int has_interpreter;
    u32 start; /* where execution begins */
    u32 heap_start;
};

/* The beginning of a file, where headers and the interpreter's name usually are. */
struct beginning {
    u8 bytes[1024];
    i64 size; /* or an error */
};

void program_read_beginning(struct beginning *beginning, long fd);
/* `beginning` is the file's. `random`: pages by which a movable program is moved up. */
void program_load(struct program *program, struct beginning *beginning, long fd, const char *path,
                  u64 random);

#endif
