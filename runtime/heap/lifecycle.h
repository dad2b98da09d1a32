/* The recorder during the life of a process and its threads, and the beginning and end of each event. */
#ifndef WIDTHWISE_HEAP_LIFECYCLE_H
#define WIDTHWISE_HEAP_LIFECYCLE_H

#include "state.h"

/* Prepares the thread for recording. NULL: nothing is to be recorded. */
struct stream *lifecycle_prepare(void);
/* The thread continues the record that a handler interrupted, or returns the stream that it has borrowed. */
void lifecycle_resume(struct stream *stream);
/* A module was closed: cached rules of code addresses may be wrong now. */
void lifecycle_closed(void);
/* The process ends by a call of its own. */
void lifecycle_ends(void);
/* The process does not end after all. */
void lifecycle_goes_on(void);
/* The thread leaves all frames below that stack pointer. */
void lifecycle_jumps(uintptr_t target);
/* A process is about to be forked: it may write to the log. */
void lifecycle_forks(void);
/* In the child of a fork, before it does anything else. */
void lifecycle_forked(void);

/* The state of the caller of the function that uses this macro; that function needs a frame pointer. */
#define CALLER_CODE ((uintptr_t)__builtin_return_address(0))
#define CALLER_STACK ((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(stack_word))
#define CALLER_FRAME ((uintptr_t) * (stack_word *)__builtin_frame_address(0))
#define CALLER CALLER_CODE, CALLER_STACK, CALLER_FRAME
/* A handler's frames lie below this on the stack that it interrupts: the kernel's signal frame alone is
 * larger than the distance. A jump to above it leaves the function that this is used in. */
#define ENTERED (CALLER_STACK - 256)

/* Begins an event. NULL: the event is not to be recorded. */
static inline struct stream *lifecycle_enter(uintptr_t entered) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = thread->stream;
    if (UNLIKELY(thread->inside || stream == NULL || stream->epoch != recorder.epoch->number)) {
        stream = lifecycle_prepare();
        if (stream == NULL) {
            return NULL;
        }
    }
    thread->inside = RECORDING;
    __asm__ volatile("" ::: "memory"); /* a signal's handler sees it */
    stream->entered = entered;
    return stream;
}

static inline void lifecycle_leave(struct stream *stream) {
    __asm__ volatile("" ::: "memory");
    struct thread *thread = &recorder_thread;
    if (UNLIKELY(stream->outer != NULL || thread->stream != stream || thread->leaving)) {
        lifecycle_resume(stream);
        return;
    }
    thread->inside = OUTSIDE;
}

#endif
