/* What is in the headers of an x32 file. Pure: bytes in, facts or the reason why not out. */
#ifndef X32_ELF_H
#define X32_ELF_H

#include "kernel.h"

#define SEGMENTS 64

struct segment {
    u32 address; /* as linked */
    u32 file_offset;
    u32 file_size, memory_size;
    u32 protection; /* PROT_* */
};

struct image {
    u64 device, inode; /* of its file */
    struct segment segments[SEGMENTS];
    u32 segment_count;
    u32 low, high; /* whole pages; high is the first one that is not the image's */
    u32 alignment; /* the greatest of its segments, at least a page */
    u32 entry;
    u32 header_address; /* where the program headers will be, as linked; 0 where no segment holds them */
    u16 header_count;
    u8 movable;      /* ET_DYN */
    u8 states_stack; /* it has PT_GNU_STACK */
    u8 executable_stack;
    u32 interpreter_offset, interpreter_size; /* 0 where there is none */
};

enum elf_kind { ELF_X32, ELF_OTHER, ELF_NONE };

/* What the first 64 bytes of a file mean. */
enum elf_kind elf_kind(const u8 *bytes, size_t size);

#define ELF_HEADER_SIZE 52
#define ELF_PROGRAM_HEADER_SIZE 32
#define ELF_PROGRAM_HEADERS 128

/* Where the program headers are: their offset in the file, and how many. Null where all is well. */
const char *elf_read_header(const u8 *bytes, size_t size, u32 *offset, u16 *count);
/* Reads header and program headers of an x32 file of `file_size` bytes. Null where all is well, else what is
 * wrong. */
const char *elf_read(const u8 *header, const u8 *program_headers, u16 count, u64 file_size,
                     struct image *image);

#endif
