/*
 * What is in a store, the same for every ABI of a byte order: numbers of 32 and 64 bits at their natural
 * alignment, no pointers and no longs. A machine of another byte order or page size refuses the store.
 *
 *   page 0        superblock, written once
 *   pages 1 to 3  roots: two for durable commits, in turns, and one for commits that are not yet synced
 *   page 4        state that sessions share while the store is open; rebuilt by the first one
 *   then          one slot of 64 bytes for each session; identifiers of System V segments
 *   LOG_OFFSET    the log: frames (pages of data) and records, numbered from 0
 *   data_offset   the data
 *
 * A transaction writes whole pages into frames at the log's end. Its record lists which page each frame
 * holds; its root names the record. A checkpoint copies frames into the data, and then begins a new epoch
 * with an empty log. See docs/window.md for why that survives power cuts.
 */
#ifndef WIDTHWISE_WINDOW_FORMAT_H
#define WIDTHWISE_WINDOW_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_BITS 12
#define PAGE_BYTES 4096u
#define FORMAT_VERSION 1u
#define BYTE_ORDER_MARK 0x01020304u
#define MAGIC "WWwindow"
#define ROOT_MAGIC 0x746f6f7277657757ull
#define RECORD_MAGIC 0x6472636577657757ull
#define SHARED_MAGIC 0x6572616877657757ull

#define SHARED_OFFSET (4 * PAGE_BYTES)
#define SLOTS_OFFSET (5 * PAGE_BYTES)
#define MOST_SESSIONS 1000u
#define SEGMENTS_OFFSET (24 * PAGE_BYTES)
#define MOST_SEGMENTS 4096u
#define LOG_OFFSET (32 * PAGE_BYTES)
#define DATA_ALIGNMENT (2u << 20)

#define OFFSET_BITS                                                                                          \
    44 /* 16 TiB: what mmap2 of a 32-bit program reaches, and the most that ext4 holds in a file */
#define OFFSET_MASK ((1ull << OFFSET_BITS) - 1)
#define NO_FRAME UINT32_MAX

struct superblock {
    char magic[8];
    uint32_t byte_order, version;
    uint32_t page_bytes, kind;
    uint32_t tag; /* of the store's handles: 20 bits, not 0 */
    uint32_t segments;
    uint64_t capacity, log_bytes, data_offset, segment_bytes;
    char ipc_namespace[40]; /* in which identifiers of System V segments hold: boot, and inode */
    uint64_t checksum;
};
_Static_assert(sizeof(struct superblock) == 112 && offsetof(struct superblock, checksum) == 104,
               "superblock");

/* What a commit publishes. */
struct state {
    uint64_t version;    /* number of commits */
    uint64_t epoch;      /* how often the log began anew */
    uint64_t record;     /* frame where the newest record begins, or NO_FRAME */
    uint64_t tail;       /* frames of the log in use */
    uint64_t top;        /* bytes allocated by ww_allocate */
    uint64_t root;       /* the handle of ww_set_root */
    uint64_t backfilled; /* the data has all commits up to this version; in a root it has no meaning */
    uint64_t durable;    /* version of the newest durable root */
    uint64_t slot;       /* and which of the two that is */
};
#define STATE_WORDS (sizeof(struct state) / 8)
_Static_assert(sizeof(struct state) == 72, "state");

struct root {
    uint64_t magic;
    struct state state;
    uint64_t checksum;
};
_Static_assert(sizeof(struct root) == 88, "root");
enum { DURABLE_ROOTS = 2, VOLATILE_ROOT = 2, ROOTS = 3 };

/* Consecutive pages in consecutive frames. */
struct run {
    uint32_t page, frame, count;
};

struct record {
    uint64_t magic, version, epoch;
    uint32_t first_frame, frames; /* of the transaction; the record follows them */
    uint32_t runs, previous;      /* previous: frame of the record before this one, or NO_FRAME */
    uint64_t frames_checksum;
    uint64_t checksum; /* of this structure with 0 here, and the runs */
    /* struct run runs[] */
};
_Static_assert(sizeof(struct record) == 56 && sizeof(struct run) == 12, "record");

/* Page 4, mapped by all sessions. */
struct shared {
    uint64_t magic;
    uint64_t sequence; /* states[sequence & 1] is the one in force */
    struct state states[2];
    uint32_t writer;  /* process ID of the writer */
    uint32_t writing; /* not 0 while a writer is at work: one that finds it set must look at the roots */
};

/* A session's slot. */
struct slot {
    uint64_t
        snapshot; /* 0, or twice (version + 1) of the snapshot it reads, plus 1 if it reads from the log */
    uint32_t process, reserved;
    uint64_t padding[6];
};
_Static_assert(sizeof(struct slot) == 64, "slot");
_Static_assert(SLOTS_OFFSET + MOST_SESSIONS * sizeof(struct slot) <= SEGMENTS_OFFSET, "slots");
_Static_assert(SEGMENTS_OFFSET + MOST_SEGMENTS * 4 <= LOG_OFFSET, "segments");

/* Byte-range locks (F_OFD_SETLK): the kernel releases those of a process that was killed. */
enum { LOCK_OPEN, LOCK_SETUP, LOCK_WRITER, LOCK_NEXT_WRITER, LOCK_SLOTS = 16 };

#endif
