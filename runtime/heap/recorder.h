/*
 * Writes records to the chunk buffer of a stream. This header holds what every event needs; rarer code is in
 * recorder.c.
 */
#ifndef WIDTHWISE_HEAP_RECORDER_H
#define WIDTHWISE_HEAP_RECORDER_H

#include "state.h"

/* No record but MODULE and EXEC is longer. */
#define LONGEST_RECORD 64

/* Continues in another chunk. 0: there is none. */
int recorder_rotate(struct stream *stream);
/* An event cannot be recorded. */
void recorder_lose(struct stream *stream);
void recorder_write_time(struct stream *stream);
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

#endif
