/*
 * Writes the log. What is called at every allocation is here, to be inlined into the functions that stand in
 * front of malloc and its kin (hooks.c, operators.c); what happens rarely is in recorder.c.
 *
 * The rules of this code: it runs inside malloc, in signal handlers, in children of fork, before and after
 * main. It never allocates, takes no lock that another thread could hold across a fork, and gives errno back
 * as it found it.
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
#define RULES 4096
#define DEEPEST 2048
/* A reading of the clock costs as much as a small allocation: where these follow each other closely, it is
 * read at every so many events, and where they do not, at each. */
#define MOST_EVENTS_PER_READING 256
#define CLOSELY 1000U /* ns from one to the next */
/* No record but MODULE is longer. */
#define LONGEST_RECORD 64

struct block {
    uint32_t node;
    uint32_t attributes;
    uint64_t requested;
    uint64_t spare;
};

struct frame {
    uintptr_t place; /* the address it is returned to */
    uintptr_t stack; /* the stack pointer there */
    uintptr_t frame; /* the frame pointer there */
    uint32_t node;
};

/* What one thread writes to at a time. */
struct stream {
    uint8_t *at;
    uint8_t *end; /* of what may be written before another chunk is needed */
    struct log_chunk *desk;
    uint64_t number; /* of its last event */
    uint64_t address;
    uint64_t told; /* ns: the last TIME */
    uint32_t until_reading, events_per_reading;
    uint32_t index, name;
    struct block slots[SLOTS];

    /* The stack that was walked last, the outermost call first. */
    uint32_t depth;
    struct frame frames[DEEPEST];
    uintptr_t readable_low, readable_high; /* stack that was looked at */
    struct rule rules[RULES];
    uintptr_t node_place;
    uint32_t node_count, node_room;
    struct node *nodes;
    uint32_t generation;

    struct stream *next; /* of those that no thread has */
};

/* In a page that the kernel clears in a child of fork: where it is 0, this is a process without a log of its
 * own. */
struct epoch {
    uint32_t number; /* changes also when a module is closed */
};

enum inside {
    OUTSIDE,
    RECORDING, /* a signal's handler that allocates meanwhile is not recorded, and that is told */
    SILENT     /* what is allocated now is the recorder's own, or an allocator's for itself */
};

struct thread {
    struct stream *stream;
    uint32_t epoch;
    uint32_t inside;
};

struct recorder {
    struct epoch *epoch;
    uint64_t number; /* of the next event */
    struct log_header *header;
    const char *single_threaded; /* __libc_single_threaded */
    int stacks;
};

extern struct recorder recorder;
extern __thread struct thread recorder_thread __attribute__((tls_model("initial-exec")));

/* Makes the thread able to record. NULL: nothing is to be recorded. */
struct stream *recorder_prepare(struct thread *thread);
/* Goes on in another chunk. 0: there is no room on the disk. */
int recorder_turn(struct stream *stream);
void recorder_tell_time(struct stream *stream);
/* The number of the stack of a call that returns to `place` with these registers. */
uint32_t recorder_stack(struct stream *stream, uintptr_t place, uintptr_t stack, uintptr_t frame);
/* One of the records named by their second byte, made of numbers. */
void recorder_tell(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers);
/* The same for a record that is an event. */
void recorder_tell_event(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers);
/* On standard error. */
void recorder_say(const char *text, size_t size);
/* The file that a function of the allocator is in has been found. */
void recorder_allocator(const char *path, int glibc, int replaced);
/* A module was closed: what is known of places may not be true any more. */
void recorder_closed(void);

/* The state of the caller of the function that this is used in; it has to keep a frame pointer. */
#define CALLER_PLACE ((uintptr_t)__builtin_return_address(0))
#define CALLER_STACK ((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(stack_word))
#define CALLER_FRAME ((uintptr_t) * (stack_word *)__builtin_frame_address(0))
#define CALLER CALLER_PLACE, CALLER_STACK, CALLER_FRAME

/* Begins an event. NULL: nothing is to be recorded. */
static inline struct stream *recorder_enter(void) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = thread->stream;
    if (UNLIKELY(thread->inside || recorder.epoch == NULL || thread->epoch != recorder.epoch->number)) {
        return recorder_prepare(thread);
    }
    thread->inside = RECORDING;
    __asm__ volatile("" ::: "memory"); /* a signal's handler sees it */
    return stream;
}

static inline void recorder_leave(void) {
    __asm__ volatile("" ::: "memory");
    recorder_thread.inside = OUTSIDE;
}

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

/* What the kinds 1 to 3 begin with. The first byte is given back, to be stored when the record is whole. */
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
    if (UNLIKELY(stream->at >= stream->end) && !recorder_turn(stream)) {
        return 0;
    }
    if (UNLIKELY(--stream->until_reading == 0)) {
        recorder_tell_time(stream);
    }
    return 1;
}

/* Makes a record that has been written valid. What follows it is cleared first: the file was empty, but a
 * record may have been written eight bytes at a time. */
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
                                                                     uint32_t attributes, uintptr_t place,
                                                                     uintptr_t stack, uintptr_t frame) {
    uint64_t number = recorder_number();
    if (UNLIKELY(!recorder_room(stream))) {
        return;
    }
    uint32_t node = 0;
    if (recorder.stacks) {
        node = recorder_stack(stream, place, stack, frame);
        if (UNLIKELY(stream->at >= stream->end) && !recorder_turn(stream)) {
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
