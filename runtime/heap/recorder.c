#define _GNU_SOURCE
#include "recorder.h"
#include "kernel.h"
#include "log_file.h"
#include "own_stack.h"

#include <string.h>

/* Where a signal handler forks, the child may continue a record that the handler interrupted. That record is
 * the parent's. */
static int is_parents(const struct stream *stream) {
    return recorder.epoch->number == 0 || stream->process != recorder.process_chunk;
}

static void begin_chunk(struct stream *stream) {
    volatile struct log_chunk *buffer = stream->buffer;
    *(volatile uint8_t *)(buffer + 1) = LOG_END;
    buffer->process = stream->process;
    buffer->stream = stream->name;
    buffer->index = stream->index++;
    buffer->magic = LOG_CHUNK_MAGIC;
    buffer->flushed = 0;
    stream->at = (uint8_t *)(stream->buffer + 1);
    stream->end = (uint8_t *)stream->buffer + LOG_CHUNK - LONGEST_RECORD;
}

/* The process may end between any two lines: a buffer that is marked as flushed does not count until it
 * begins the next chunk. */
static void rotate(void *argument) {
    struct stream *stream = argument;
    uint32_t chunk;
    stream->has_failed = 1;
    if (!log_file_claim(&chunk, &stream->loss)) {
        return;
    }
    if (stream->buffer == NULL) {
        stream->buffer = log_file_map(chunk, LOG_CHUNK, &stream->loss);
        if (stream->buffer == NULL) {
            return;
        }
    } else {
        if (!log_file_write(chunk, stream->buffer, &stream->loss)) {
            return;
        }
        ((volatile struct log_chunk *)stream->buffer)->flushed = 1;
    }
    begin_chunk(stream);
    stream->has_failed = 0;
}

int recorder_rotate(struct stream *stream) {
    if (stream->has_failed) {
        return 0;
    }
    if (is_parents(stream)) {
        if (stream->buffer == NULL) {
            return 0;
        }
        stream->at = (uint8_t *)(stream->buffer + 1);
        return 1;
    }
    aside_call(rotate, stream);
    if (stream->has_failed) {
        stream->at = stream->end = NULL;
    }
    return !stream->has_failed;
}

void recorder_lose(struct stream *stream) {
    if (!is_parents(stream)) {
        __atomic_fetch_add(&recorder.process->lost[stream->loss], 1, __ATOMIC_RELAXED);
    }
}

static int room(struct stream *stream) { return stream->at < stream->end || recorder_rotate(stream); }

int recorder_write(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers) {
    if (!room(stream)) {
        return 0;
    }
    uint8_t *at = stream->at + 1;
    *at++ = (uint8_t)kind;
    for (unsigned i = 0; i < count; i++) {
        at = put_number(at, numbers[i]);
    }
    recorder_commit(stream, at, LOG_OTHER);
    return 1;
}

void recorder_write_event(struct stream *stream, enum log_other kind, unsigned count,
                          const uint64_t *numbers) {
    uint64_t number = recorder_number();
    if (--stream->until_reading == 0) {
        recorder_write_time(stream);
    }
    if (!recorder_write(stream, LOG_NUMBER, 1, &number) || !recorder_write(stream, kind, count, numbers)) {
        recorder_lose(stream);
        return;
    }
    stream->number = number;
}

int recorder_write_text(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers,
                        const char *text) {
    size_t length = strnlen(text, PAGE);
    /* The only records that may be longer than the others. */
    if (stream->at != NULL && stream->at + length >= stream->end) {
        stream->at = stream->end;
    }
    if (!room(stream)) {
        return 0;
    }
    uint8_t *at = stream->at + 1;
    *at++ = (uint8_t)kind;
    for (unsigned i = 0; i < count; i++) {
        at = put_number(at, numbers[i]);
    }
    at = put_number(at, length);
    memcpy(at, text, length);
    recorder_commit(stream, at + length, LOG_OTHER);
    return 1;
}

void recorder_say(const char *text, size_t size) { syscall(SYS_write, 2, text, size); }

void recorder_write_time(struct stream *stream) {
    uint64_t time = kernel_time();
    uint64_t passed = time > stream->time ? time - stream->time : 0;
    uint32_t events = stream->events_per_reading;
    int closely = passed <= (uint64_t)events * CLOSELY;
    events = !closely ? 1 : events < MOST_EVENTS_PER_READING ? events * 2 : events;
    stream->events_per_reading = stream->until_reading = events;
    if (passed > 0) {
        stream->time = time;
        recorder_write(stream, LOG_TIME, 1, &passed);
    }
}
