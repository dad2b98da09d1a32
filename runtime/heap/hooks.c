/* In front of malloc and its kin, and of the program's own mmap. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "real.h"
#include "recorder.h"

#define RECORD(block, size, attributes)                                                                      \
    do {                                                                                                     \
        if (LIKELY((block) != NULL && !is_allocators(CALLER_PLACE))) {                                       \
            struct stream *stream = recorder_enter();                                                        \
            if (LIKELY(stream != NULL)) {                                                                    \
                recorder_allocated(stream, (block), (size), spare_of((block), (size)), (attributes),         \
                                   CALLER);                                                                  \
                recorder_leave();                                                                            \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

static inline void release(void *block, uintptr_t place) {
    struct stream *stream = is_allocators(place) ? NULL : recorder_enter();
    if (LIKELY(stream != NULL)) {
        recorder_released(stream, block);
        recorder_leave();
    }
}

#pragma GCC visibility push(default)

void *HOOK(malloc)(size_t size) {
    if (UNLIKELY(!real_ready())) {
        return early_memory(size);
    }
    void *block = REAL(malloc)(size);
    RECORD(block, size, LOG_MALLOC);
    return block;
}

void HOOK(free)(void *block) {
    if (UNLIKELY(block == NULL || is_early(block))) {
        return;
    }
    if (UNLIKELY(!real_ready())) {
        return;
    }
    release(block, CALLER_PLACE);
    REAL(free)(block);
}

void *HOOK(calloc)(size_t count, size_t size) {
    if (UNLIKELY(!real_ready())) {
        return early_memory(count * size); /* which nobody has written to */
    }
    void *block = REAL(calloc)(count, size);
    RECORD(block, count * size, LOG_CALLOC);
    return block;
}

void *HOOK(realloc)(void *old, size_t size) {
    if (UNLIKELY(!real_ready() || is_early(old))) {
        void *block = real_ready() ? HOOK(malloc)(size) : early_memory(size);
        if (block != NULL && old != NULL) {
            size_t before = early_size(old);
            memcpy(block, old, before < size ? before : size);
        }
        return block;
    }
    if (old != NULL) {
        release(old, CALLER_PLACE);
    }
    void *block = REAL(realloc)(old, size);
    RECORD(block, size, LOG_REALLOC);
    if (UNLIKELY(block == NULL && old != NULL && size != 0)) {
        struct stream *stream = recorder_enter();
        if (stream != NULL) {
            recorder_tell(stream, LOG_KEPT, 0, NULL);
            recorder_leave();
        }
    }
    return block;
}

/* How an alignment is written: its power of two. */
static inline uint32_t aligned(size_t alignment) {
    return LOG_ALIGNED | (alignment > 1 ? (uint32_t)__builtin_ctzl(alignment) << 3 : 0);
}

int HOOK(posix_memalign)(void **result, size_t alignment, size_t size) {
    if (UNLIKELY(!real_ready())) {
        return ENOMEM;
    }
    int error = REAL(posix_memalign)(result, alignment, size);
    if (error == 0) {
        RECORD(*result, size, aligned(alignment));
    }
    return error;
}

void *HOOK(aligned_alloc)(size_t alignment, size_t size) {
    if (UNLIKELY(!real_ready())) {
        return NULL;
    }
    void *block = REAL(aligned_alloc)(alignment, size);
    RECORD(block, size, aligned(alignment));
    return block;
}

void *HOOK(memalign)(size_t alignment, size_t size) {
    if (UNLIKELY(!real_ready() || REAL(memalign) == NULL)) {
        return NULL;
    }
    void *block = REAL(memalign)(alignment, size);
    RECORD(block, size, aligned(alignment));
    return block;
}

void *HOOK(valloc)(size_t size) {
    if (UNLIKELY(!real_ready() || REAL(valloc) == NULL)) {
        return NULL;
    }
    void *block = REAL(valloc)(size);
    RECORD(block, size, aligned(4096));
    return block;
}

void *HOOK(pvalloc)(size_t size) {
    if (UNLIKELY(!real_ready() || REAL(pvalloc) == NULL)) {
        return NULL;
    }
    void *block = REAL(pvalloc)(size);
    RECORD(block, size, aligned(4096));
    return block;
}

static void mapped(void *address, size_t size, int protection, int flags, uintptr_t place, uintptr_t stack,
                   uintptr_t frame) {
    struct stream *stream = address != MAP_FAILED ? recorder_enter() : NULL;
    if (stream != NULL) {
        uint32_t node = recorder.stacks ? recorder_stack(stream, place, stack, frame) : 0;
        uint64_t numbers[5] = {(uintptr_t)address, size, node, (uint32_t)protection, (uint32_t)flags};
        recorder_tell_event(stream, LOG_MAP, 5, numbers);
        recorder_leave();
    }
}

static void unmapped(void *address, size_t size) {
    struct stream *stream = recorder_enter();
    if (stream != NULL) {
        uint64_t numbers[2] = {(uintptr_t)address, size};
        recorder_tell_event(stream, LOG_UNMAP, 2, numbers);
        recorder_leave();
    }
}

void *HOOK(mmap)(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = REAL(mmap)(address, size, protection, flags, fd, offset);
    if (!is_allocators(CALLER_PLACE)) {
        mapped(found, size, protection, flags, CALLER);
    }
    return found;
}

void *HOOK(mmap64)(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = REAL(mmap64)(address, size, protection, flags, fd, offset);
    if (!is_allocators(CALLER_PLACE)) {
        mapped(found, size, protection, flags, CALLER);
    }
    return found;
}

int HOOK(munmap)(void *address, size_t size) {
    if (UNLIKELY(!real_ready())) {
        errno = EINVAL;
        return -1;
    }
    if (!is_allocators(CALLER_PLACE)) {
        unmapped(address, size);
    }
    return REAL(munmap)(address, size);
}

void *HOOK(mremap)(void *old, size_t old_size, size_t size, int flags, ...) {
    void *wanted = NULL;
    if (flags & MREMAP_FIXED) {
        va_list more;
        va_start(more, flags);
        wanted = va_arg(more, void *);
        va_end(more);
    }
    if (UNLIKELY(!real_ready())) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = REAL(mremap)(old, old_size, size, flags, wanted);
    if (found != MAP_FAILED && !is_allocators(CALLER_PLACE)) {
        /* After the call: it may have failed, and then all is as it was. */
        unmapped(old, old_size);
        mapped(found, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, CALLER);
    }
    return found;
}

#ifndef WIDTHWISE_HEAP_LINKED
int HOOK(dlclose)(void *module) {
    if (UNLIKELY(!real_ready() || REAL(dlclose) == NULL)) {
        return -1;
    }
    int result = REAL(dlclose)(module);
    recorder_closed();
    return result;
}
#endif

#pragma GCC visibility pop
