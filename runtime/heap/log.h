/* The tables in this comment keep their columns: */
/* clang-format off */
/*
 * The log of the heaps of a process tree: what the recorder writes, and `crates/heap-log` reads.
 *
 * Everything is little-endian and of fixed width in every ABI. A file is a header of one page, then
 * chunks of 64 KiB; chunk I begins at byte LOG_HEADER + I * LOG_CHUNK. The file is sparse: its size is reserved
 * in advance, so that no limit on file sizes stops the recorder later. `log_file.chunks` says how many chunks
 * were claimed; what lies beyond them is empty. A claimed chunk whose magic is 0 was never written to.
 *
 * Every process that writes to the file has one chunk of its own with the magic PROC, which holds a
 * `struct log_process` and nothing else; a parent's comes before its children's. A fork writes to its parent's
 * file. A program that was started by exec writes to the file of the process before it if it finds that file,
 * and otherwise to a new file.
 *
 * All other chunks hold records, magic CHNK. Each thread writes into chunks of its own, so that no thread waits
 * for another; the chunks of one thread are a stream. A stream belongs to one process. A byte 0 where a record
 * should begin is the end of its chunk, so a record's first byte is stored last.
 *
 * All stored records survive the end of the process, including SIGKILL: a stream's first chunk in the file is
 * its chunk buffer, which is mapped. Records are written there. When the buffer is full, a copy is flushed to
 * another chunk of the file, with `flushed` 0, and the buffer is used for the next chunk. (Writing a page with
 * write() costs a third of mapping it, and the buffer stays in the cache.) Of two chunks with the same stream and
 * index the first in the file counts, since the copy may be unfinished. A buffer that is marked as flushed does
 * not count.
 *
 * Streams are put in order by sequence numbers: every event has one, larger by one than the event before it
 * in its stream unless the record says how much larger. An allocation gets its number after the block was
 * allocated, a release before the block is freed, so that no block seems to be allocated twice. Numbers may be
 * missing: those of events whose recording was abandoned.
 *
 * Records; `...` is an unsigned LEB128 number unless another encoding is named:
 *
 *   kind 1 KNOWN   slot                                            an allocation like the last one of that slot
 *   kind 2 NEW     slot, node..., requested..., spare..., attributes  an allocation; sets the slot
 *   kind 3 FREE                                                    a release
 *   kind 4 OTHER   one of the records below, named by its second byte
 *
 * The first byte of the kinds 1 to 3 is kind | length << 3 | GAP | ODD. Then follow: if GAP is set, by how much
 * more than one the number grew...; if ODD is set, the lowest three bits of the address, in a byte; `length`
 * bytes of the address's distance from the one before it in this stream, in units of 8, zigzag; and the fields
 * of the table.
 *
 *   NODE     parent..., address a stack: its innermost call returns to the address (zigzag ..., distance from
 *                               the one before), around it is the stack `parent`. Stacks are numbered from 1
 *                               in each stream; 0 is the empty one, and BROKEN, 2^32 - 1, where the walk could
 *                               not go on
 *   TIME     ...                nanoseconds since the last one of this stream
 *   NUMBER   ...                the number of the event in the next record
 *   THREAD   ...                the stream is another thread's from here on: its kernel number
 *   MODULE   bias..., low..., high..., length of its path..., path
 *                               in this stream, from here to the next FORGET, the addresses from low up to
 *                               high are this file's. It comes before the first NODE that needs it, and
 *                               replaces every earlier module that it overlaps
 *   FORGET   number...          stacks, slots and modules of this stream are cleared. The stream continues as
 *                               if the last event had had this number and the address 0, and the last NODE the
 *                               address 0; stacks are numbered from 1 again
 *   MAP      address..., bytes..., node..., protection..., flags...
 *                               an event: the program itself mapped memory
 *   UNMAP    address..., bytes...
 *                               an event: the program itself unmapped memory
 *   MOVE     address..., bytes..., new address..., new bytes..., node..., flags...
 *                               an event: the program itself moved or resized memory; the flags are mremap's
 *   PROTECT  address..., bytes..., protection...
 *                               an event: the program itself changed the protection of memory
 *   KEPT                        the block of the last FREE of this stream is still there: realloc had no room
 *   EXEC     process..., state..., length of its path..., path
 *                               the process of that number is about to execute the file (0), has failed to (1),
 *                               or was started to execute it (2: posix_spawn; number 0: by system or popen, in an
 *                               environment without the recorder). A failure follows its beginning in the same
 *                               stream. A program that was executed and has no PROC chunk, with that number, no
 *                               parent and a later beginning, left no log
 */
/* clang-format on */
#ifndef WIDTHWISE_HEAP_LOG_H
#define WIDTHWISE_HEAP_LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_MAGIC "\x89WWHEAP\n"
#define LOG_VERSION 3
#define LOG_HEADER 4096
#define LOG_CHUNK 65536
#define LOG_CHUNK_MAGIC 0x4b4e4843U   /* CHNK */
#define LOG_PROCESS_MAGIC 0x434f5250U /* PROC */
#define LOG_NO_PARENT 0xffffffffU

enum log_kind { LOG_END, LOG_KNOWN, LOG_NEW, LOG_FREE, LOG_OTHER };
enum log_other {
    LOG_NODE = 1,
    LOG_TIME,
    LOG_NUMBER,
    LOG_THREAD,
    LOG_MODULE,
    LOG_FORGET,
    LOG_MAP,
    LOG_UNMAP,
    LOG_KEPT,
    LOG_EXEC,
    LOG_MOVE,
    LOG_PROTECT
};

/* What came of a program that was to be executed: `state` of EXEC. */
enum log_exec { LOG_ABOUT_TO, LOG_FAILED, LOG_STARTED };

#define LOG_GAP 0x40
#define LOG_ODD 0x80
#define LOG_BROKEN 0xffffffffU

/* Attributes of a block: its log_origin, 3 bits; the requested alignment, if any, as a power of two, 5 bits.
 * Its spare bytes are those beyond the requested ones; the number's lowest two bits are its log_arena: glibc
 * has it in the main arena, mapped by itself, or in an arena other than the main one. */
enum log_arena { LOG_MAIN, LOG_MAPPED, LOG_SECONDARY };
enum log_origin { LOG_MALLOC, LOG_CALLOC, LOG_REALLOC, LOG_ALIGNED, LOG_OPERATOR };

/* Bits of `log_process.state`. */
enum log_state {
    LOG_ENDED =
        1, /* it ended by exit(), by _exit() or by returning from main; not by a signal, nor by exec */
    LOG_HAS_STACKS = 4,
    LOG_OWN_MALLOC = 8, /* the program brings its own malloc, whose calls the recorder cannot intercept */
    LOG_GLIBC =
        16, /* blocks are glibc's: a word before each (two where it is mapped by itself) is the chunk's */
    LOG_LINKED = 32 /* the recorder was linked into the program */
};

/* Why events were not recorded: indexes of `log_process.lost`. */
enum log_loss {
    LOG_LOST_DISK,       /* the disk was full */
    LOG_LOST_FILE_LIMIT, /* the limit on file sizes (RLIMIT_FSIZE) was reached */
    LOG_LOST_RESERVE,    /* the size that was reserved for the file was reached and could not be raised */
    LOG_LOST_MEMORY,     /* the recorder could get no memory of its own (RLIMIT_AS, RLIMIT_DATA) */
    LOG_LOST_MAPPING,    /* the file could be neither opened nor mapped again */
    LOG_LOST_NESTED,     /* signal handlers interrupted each other too deeply inside the recorder */
    LOG_LOSSES
};

struct log_file {
    char magic[8];
    uint16_t version;
    uint16_t reserved0;
    uint32_t page;
    uint32_t chunk;
    uint32_t chunks;   /* claimed so far */
    uint64_t reserved; /* bytes that the file may grow to without changing its size */
    uint32_t created;  /* 1: by widthwise, before any process; 0: by the first process */
    uint32_t reserved1;
};

/* At the beginning of every chunk of records. */
struct log_chunk {
    uint32_t magic;
    uint32_t process; /* the chunk that holds its `log_process` */
    uint32_t stream;  /* in its process */
    uint32_t index;   /* in its stream */
    uint32_t flushed; /* 1: a copy of it is whole */
    uint32_t reserved[3];
};

struct log_process {
    uint32_t magic;
    uint8_t word; /* bytes of a pointer */
    uint8_t reserved0;
    uint16_t machine;       /* e_machine */
    uint32_t process;       /* its number */
    uint32_t parent;        /* the chunk of the process it was forked from; LOG_NO_PARENT: it was not */
    uint64_t began;         /* CLOCK_MONOTONIC, ns */
    uint64_t inherited;     /* events of the parent before this number happened to this process too */
    uint32_t state;         /* log_state */
    uint32_t broken;        /* stacks that could not be followed to their outermost call */
    uint64_t lost[8];       /* events that were not recorded, by log_loss */
    uint64_t anonymous;     /* bytes of the recorder's own memory that look like the program's */
    uint32_t parent_number; /* the number of the process that started this one (getppid) */
    uint32_t reserved1;
    char allocator[256]; /* the file that malloc is in */
    char program[3072];  /* /proc/self/exe, then NUL */
};

/* The layout is the same for every ABI: crates/layout generates the reader's structures from this header. */
_Static_assert(sizeof(struct log_file) == 40 && offsetof(struct log_file, reserved) == 24, "log_file");
_Static_assert(sizeof(struct log_chunk) == 32 && offsetof(struct log_chunk, flushed) == 16, "log_chunk");
_Static_assert(sizeof(struct log_process) == 3448 && offsetof(struct log_process, lost) == 40, "log_process");

#endif
