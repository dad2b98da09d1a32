/*
 * Writes records. This header holds the code of every allocation, which the hooks inline (hooks.c,
 * operators.c). Rarer code is in recorder.c (records and chunks), lifecycle.c (the process, its threads and
 * forks), stack.c (walks), modules.c and log_file.c.
 *
 * The rules of this code: it runs inside malloc, in signal handlers, on stacks of a few kilobytes, in
 * children of fork, before and after main. It never allocates, takes no lock that another thread could hold
 * across a fork, needs less than 2 KiB of the caller's stack, and preserves errno.
 */
#ifndef WIDTHWISE_HEAP_RECORDER_H
#define WIDTHWISE_HEAP_RECORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "log.h"
#include "unwind.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define SLOTS 256
#define DEEPEST 2048
#define READABLE_PAGES 64
#define NEAR_RULES 512
#define OWN_STACK 32768
/* A reading of the clock costs as much as a small allocation. Where events follow each other closely, the
 * clock is read once in several events; elsewhere it is read at each. */
#define MOST_EVENTS_PER_READING 256
#define CLOSELY 1000U /* ns from one to the next */
/* No record but MODULE and EXEC is longer. */
#define LONGEST_RECORD 64

struct block {
    uint32_t node;
    uint32_t attributes;
    uint64_t requested;
    uint64_t spare;
};

struct frame {
    uintptr_t code;  /* the code address that the call returns to */
    uintptr_t stack; /* the stack pointer there */
    uintptr_t frame; /* the frame pointer there */
    uint32_t node;
};

/* A stack: nodes lie in memory by their numbers, so that those of one stack, which were made one after the
 * other, lie side by side. */
struct node {
    uintptr_t code;
    uint32_t parent;   /* its number */
    uint32_t sibling;  /* the next child of its parent */
    uint32_t child;    /* the first of its own */
    uint32_t children; /* how many it has */
};

/* What one thread writes to at a time. */
struct stream {
    uint8_t *at;
    uint8_t *end; /* of what may be written before another chunk is needed */
    struct log_chunk *buffer;
    uintptr_t entered; /* about where the stack was when the last event began */
    uint64_t number;   /* of its last event */
    uint64_t address;
    uint64_t time; /* ns: the last TIME */
    uint32_t until_reading, events_per_reading;
    uint32_t epoch;   /* in which its stacks, slots and modules were written; 0: they have to be forgotten */
    uint32_t process; /* the chunk of the process that it belongs to */
    uint32_t index, name;
    uint32_t has_failed; /* 1: no chunk is to be had; `loss` says why */
    enum log_loss loss;
    struct block slots[SLOTS];

    /* A signal's handler that interrupts a record writes to another stream. */
    struct stream *outer; /* the one whose record was interrupted */
    struct stream *inner; /* the one for the next interruption */

    /* The stack that was walked last, the outermost call first. */
    uint32_t depth;
    uint32_t unmappings; /* as of that walk: memory that was unmapped since cannot be read any more */
    struct frame frames[DEEPEST];
    struct frame walked[DEEPEST]; /* of the walk in progress, the innermost call first */
    uintptr_t readable[READABLE_PAGES];
    struct rule near_rules[NEAR_RULES]; /* those used last, which stay in the processor's nearest cache */
    uint32_t rule_count, rule_room;
    struct rule
        *rules; /* a table by code address; the first addresses of modules that were written are in it, too */
    struct unwind_scratch scratch;
    uintptr_t node_code;
    uint32_t node_count, node_room; /* number 0 is the empty stack */
    struct node *nodes;
    struct node broken;   /* what could not be followed further */
    uint32_t *node_index; /* the children of those that have many, by a hash; twice as many as there is room
                             for nodes */

    uint32_t environment_room;
    char **environment; /* of a program that is executed */

    struct stream *next; /* of those that no thread has */
    uint8_t own_stack[OWN_STACK] __attribute__((aligned(16)));
};

/* In a page that the kernel clears in a child of fork: 0 means that this process has no log of its own yet.
 */
struct epoch {
    uint32_t number; /* changes also when a module is closed */
};

enum inside {
    OUTSIDE,
    RECORDING, /* a signal handler that allocates now writes to another stream */
    SILENT     /* what is allocated now is the recorder's own; signals are held */
};

struct thread {
    struct stream *stream;
    uint32_t inside;
};

struct recorder {
    struct epoch *epoch;
    uint64_t number; /* of the next event */
    struct log_process *process;
    const char *single_threaded; /* __libc_single_threaded */
    int stacks;
    uint32_t process_chunk;
    uint32_t unmappings; /* their number: a walk reads no memory that was unmapped since */
};

extern struct recorder recorder;
extern __thread struct thread recorder_thread __attribute__((tls_model("initial-exec")));

/* Prepares the thread for recording. NULL: nothing is to be recorded. */
struct stream *recorder_prepare(void);
/* The thread continues the record that a handler interrupted. */
void recorder_resume(struct stream *stream);
/* Continues in another chunk. 0: there is none. */
int recorder_rotate(struct stream *stream);
/* An event cannot be recorded. */
void recorder_lose(struct stream *stream);
void recorder_write_time(struct stream *stream);
/* The number of the stack of a call that returns to `code` with these registers. */
uint32_t recorder_stack(struct stream *stream, uintptr_t code, uintptr_t stack, uintptr_t frame);
/* One of the records named by their second byte, made of numbers. 0: there is no room. */
int recorder_write(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers);
/* The same for a record that is an event. */
void recorder_write_event(struct stream *stream, enum log_other kind, unsigned count,
                          const uint64_t *numbers);
/* The same for a record that ends in a text. */
int recorder_write_text(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers,
                        const char *text);
/* On standard error. */
void recorder_say(const char *text, size_t size);
/* The file of the allocator's functions has been found. */
void recorder_allocator(const char *path, int glibc, int replaced);
/* A module was closed: cached rules of code addresses may be wrong now. */
void recorder_closed(void);
/* The process ends by a call of its own. */
void recorder_ends(void);
/* The thread leaves all frames below that stack pointer. */
void recorder_jumps(uintptr_t target);
/* In the child of a fork, before it does anything else. */
void recorder_forked(void);
/* Calls a function with signals held, on the recorder's own stack if there is one. */
void recorder_aside(void (*function)(void *), void *argument);

/* The state of the caller of the function that uses this macro; that function needs a frame pointer. */
#define CALLER_CODE ((uintptr_t)__builtin_return_address(0))
#define CALLER_STACK ((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(stack_word))
#define CALLER_FRAME ((uintptr_t) * (stack_word *)__builtin_frame_address(0))
#define CALLER CALLER_CODE, CALLER_STACK, CALLER_FRAME
/* A handler's frames lie below this on the stack that it interrupts: the kernel's signal frame alone is
 * larger than the distance. A jump to above it leaves the function that this is used in. */
#define ENTERED (CALLER_STACK - 256)

/* Begins an event. NULL: the event is not to be recorded. */
static inline struct stream *recorder_enter(uintptr_t entered) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = thread->stream;
    if (UNLIKELY(thread->inside || stream == NULL || stream->epoch != recorder.epoch->number)) {
        stream = recorder_prepare();
        if (stream == NULL) {
            return NULL;
        }
    }
    thread->inside = RECORDING;
    __asm__ volatile("" ::: "memory"); /* a signal's handler sees it */
    stream->entered = entered;
    return stream;
}

static inline void recorder_leave(struct stream *stream) {
    __asm__ volatile("" ::: "memory");
    struct thread *thread = &recorder_thread;
    if (UNLIKELY(stream->outer != NULL || thread->stream != stream)) {
        recorder_resume(stream);
        return;
    }
    thread->inside = OUTSIDE;
}

/* Memory was unmapped, perhaps a coroutine's stack: cached readable pages are not valid any more. */
static inline void recorder_unmaps(void) { __atomic_fetch_add(&recorder.unmappings, 1, __ATOMIC_RELAXED); }

static inline uint64_t recorder_number(void) {
    if (LIKELY(*recorder.single_threaded)) {
        return recorder.number++;
    }
    return __atomic_fetch_add(&recorder.number, 1, __ATOMIC_RELAXED);
}

static inline uint8_t *put_number(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static inline uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

/* Writes the beginning of the kinds 1 to 3. Its first byte goes to `first`: recorder_commit stores it when
 * the record is complete. */
static inline uint8_t *put_event(struct stream *stream, uint8_t *at, uint64_t number, uintptr_t address,
                                 uint8_t *first) {
    uint64_t gap = number - stream->number - 1;
    uint64_t distance = zigzag((int64_t)((uint64_t)address >> 3) - (int64_t)(stream->address >> 3));
    uint8_t flags = 0;
    if (UNLIKELY(gap != 0)) {
        flags |= LOG_GAP;
        at = put_number(at, gap);
    }
    if (UNLIKELY(address & 7)) {
        flags |= LOG_ODD;
        *at++ = address & 7;
    }
    unsigned length = distance == 0 ? 0 : (71 - (unsigned)__builtin_clzll(distance)) >> 3;
    memcpy(at, &distance, sizeof distance);
    stream->number = number;
    stream->address = address;
    *first |= (uint8_t)(flags | length << 3);
    return at + length;
}

static inline int recorder_room(struct stream *stream) {
    if (UNLIKELY(stream->at >= stream->end) && !recorder_rotate(stream)) {
        recorder_lose(stream);
        return 0;
    }
    if (UNLIKELY(--stream->until_reading == 0)) {
        recorder_write_time(stream);
    }
    return 1;
}

/* Makes a complete record valid. The byte behind it is cleared first, since a record may have been written
 * eight bytes at a time. */
static inline void recorder_commit(struct stream *stream, uint8_t *end, uint8_t first) {
    *end = 0;
    __asm__ volatile("" ::: "memory");
    *(volatile uint8_t *)stream->at = first;
    stream->at = end;
}

/* A block unlike the last one of its slot. */
__attribute__((noinline)) static uint8_t *recorder_put_new(uint8_t *at, struct block *slot,
                                                           struct block block) {
    *slot = block;
    at = put_number(at, block.node);
    at = put_number(at, block.requested);
    at = put_number(at, block.spare);
    *at++ = (uint8_t)block.attributes;
    return at;
}

__attribute__((always_inline)) static inline void recorder_allocated(struct stream *stream, void *address,
                                                                     size_t requested, uint64_t spare,
                                                                     uint32_t attributes, uintptr_t code,
                                                                     uintptr_t stack, uintptr_t frame) {
    uint64_t number = recorder_number();
    if (UNLIKELY(!recorder_room(stream))) {
        return;
    }
    uint32_t node = 0;
    if (recorder.stacks) {
        node = recorder_stack(stream, code, stack, frame);
        if (UNLIKELY(stream->at >= stream->end) && !recorder_rotate(stream)) {
            recorder_lose(stream);
            return;
        }
    }
    uint32_t index = (node * 0x9e3779b1U + (uint32_t)requested * 0x85ebca6bU) >> 24;
    struct block *slot = &stream->slots[index];
    int known = slot->node == node && slot->requested == requested && slot->spare == spare &&
                slot->attributes == attributes;
    uint8_t first = known ? LOG_KNOWN : LOG_NEW;
    uint8_t *at = put_event(stream, stream->at + 1, number, (uintptr_t)address, &first);
    *at++ = (uint8_t)index;
    if (UNLIKELY(!known)) {
        at = recorder_put_new(at, slot, (struct block){node, attributes, requested, spare});
    }
    recorder_commit(stream, at, first);
}

__attribute__((always_inline)) static inline void recorder_released(struct stream *stream, void *address) {
    uint64_t number = recorder_number();
    if (UNLIKELY(!recorder_room(stream))) {
        return;
    }
    uint8_t first = LOG_FREE;
    uint8_t *at = put_event(stream, stream->at + 1, number, (uintptr_t)address, &first);
    recorder_commit(stream, at, first);
}

#endif
