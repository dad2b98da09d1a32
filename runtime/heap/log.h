/* A table is a table. clang-format knows these words alone: */
/* clang-format off */
/*
 * The log of a process's heap: what the recorder writes, and `crates/anatomy` reads.
 *
 * Everything is little-endian and of fixed width, whatever the program's. A log is a header of one page, then
 * chunks of 64 KiB. A thread writes into chunks of its own, so that none waits for another; the chunks of one
 * thread are a stream. A byte 0 where a record should begin is the end of its chunk, so a record's first byte
 * is stored last.
 *
 * Whatever ends the process, all that was stored is there: a stream's first chunk in the file is its desk, which
 * is mapped. A chunk is written there; when it is full a copy is put away at the end of the file, and the desk
 * is used for the next. (Pages of the file that are each written to by one write() cost a third of what pages
 * cost that are each mapped, and the desk stays in the cache.) So of two chunks of one number the first in the
 * file counts, since the copy may be unfinished; and a desk that says that it has been put away does not count.
 *
 * Streams are put in order by sequence numbers: every event has one, larger by one than the event before it
 * in its stream unless the record says how much larger. An allocation gets its number when the block has
 * come, a release before it goes, so that no block seems to be had twice.
 *
 * Records; `…` is an unsigned LEB128 number unless said otherwise:
 *
 *   kind 1 KNOWN   slot                                               a block like the last one of that slot
 *   kind 2 NEW     slot, node…, requested…, spare…, attributes        a block, and from now on that slot
 *   kind 3 FREE                                                       a block goes
 *   kind 4 OTHER   one of the records below, named by its second byte
 *
 * The first byte of the kinds 1 to 3 is kind | length << 3 | GAP | ODD. Then come: where GAP is set, by how
 * much more than one the number grew…; where ODD is set, the lowest three bits of the address, in a byte;
 * `length` bytes of the address's distance from the one before it in this stream, in units of 8, zigzag; and
 * what the table says.
 *
 *   NODE     parent…, address   a stack: its innermost call returns to the address (zigzag …, distance from the
 *                               one before), around it is the stack `parent`. Stacks are numbered from 1 in
 *                               each stream; 0 is the empty one, and BROKEN, 2^32 - 1, where the walk could
 *                               not go on
 *   TIME     …                  nanoseconds since the last one of this stream
 *   NUMBER   …                  the number of the event in the next record
 *   THREAD   …, generation…     the stream is another thread's now, whose number the kernel has
 *   MODULE   generation…, bias…, low…, high…, length of its path…, path
 *   CLOSED   generation…        modules were closed: stacks and slots of this stream are forgotten, and an
 *                               address may mean something else from now on. THREAD does the same where the
 *                               generation is not the stream's last one
 *   MAP      address…, bytes…, node…, protection…, flags…
 *                               an event: the program itself asked for memory
 *   UNMAP    address…, bytes…   an event: and gave it back
 *   KEPT                        the block of the last FREE of this stream is still there: realloc had no room
 */
/* clang-format on */
#ifndef WIDTHWISE_HEAP_LOG_H
#define WIDTHWISE_HEAP_LOG_H

#include <stdint.h>

#define LOG_MAGIC "\x89WWHEAP\n"
#define LOG_VERSION 2
#define LOG_HEADER 4096
#define LOG_CHUNK 65536
#define LOG_CHUNK_MAGIC 0x4b4e4843U /* CHNK */

enum log_kind { LOG_END, LOG_KNOWN, LOG_NEW, LOG_FREE, LOG_OTHER };
enum log_other {
    LOG_NODE = 1,
    LOG_TIME,
    LOG_NUMBER,
    LOG_THREAD,
    LOG_MODULE,
    LOG_CLOSED,
    LOG_MAP,
    LOG_UNMAP,
    LOG_KEPT
};

#define LOG_GAP 0x40
#define LOG_ODD 0x80
#define LOG_BROKEN 0xffffffffU

/* Attributes of a block: how it was asked for, 3 bits; its alignment where one was asked for, as a power of
 * two, 5 bits. Its spare bytes are those that it has beyond the requested ones; the number's lowest two bits
 * say where glibc has it: 1 mapped by itself, 2 in an arena other than the main one. */
enum log_origin { LOG_MALLOC, LOG_CALLOC, LOG_REALLOC, LOG_ALIGNED, LOG_OPERATOR };

/* What is to be told beside the records. */
enum log_state {
    LOG_ENDED = 1, /* it ended by exit() or by returning from main */
    LOG_FULL = 2,  /* no room was left on the disk; what came after is not here */
    LOG_HAS_STACKS = 4,
    LOG_OWN_MALLOC = 8, /* the program brings its own malloc, which nobody can stand in front of */
    LOG_GLIBC =
        16, /* blocks are glibc's: a word before each (two where it is mapped by itself) is the chunk's */
    LOG_LINKED = 32 /* the recorder was linked into the program */
};

struct log_header {
    char magic[8];
    uint16_t version;
    uint8_t word; /* bytes of a pointer */
    uint8_t reserved0;
    uint16_t machine; /* e_machine */
    uint16_t reserved1;
    uint32_t page;
    uint32_t chunk;
    uint32_t process, parent; /* numbers; a parent only where it was forked from a process with a log */
    uint64_t began;           /* CLOCK_MONOTONIC, ns */
    uint64_t inherited;       /* events of the parent before this number happened to this process too */
    uint32_t state;           /* log_state */
    uint32_t missed;          /* events that came while the recorder itself was interrupted */
    uint32_t broken;          /* stacks that could not be followed to their outermost call */
    uint32_t chunks;          /* claimed so far */
    char allocator[256];      /* the file that malloc is in */
    char program[3072];       /* /proc/self/exe, then NUL */
};

struct log_chunk {
    uint32_t magic;
    uint32_t stream;
    uint32_t index;    /* in its stream */
    uint32_t put_away; /* 1: a copy of it is whole */
};

#endif
