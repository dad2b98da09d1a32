/* Hooks of malloc, calloc, realloc, free and the aligned allocations, and of the program's own mmap. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event.h"
#include "modules.h"
#include "real_allocator.h"

/* `spare_of` comes before the record: an allocator may allocate to answer malloc_usable_size. */
#define RECORD(block, size, attributes)                                                                      \
    do {                                                                                                     \
        if (LIKELY((block) != NULL && !is_allocators(CALLER_CODE))) {                                        \
            uint64_t spare = spare_of((block), (size));                                                      \
            struct stream *stream = lifecycle_enter(ENTERED);                                                \
            if (LIKELY(stream != NULL)) {                                                                    \
                event_allocated(stream, (block), (size), spare, (attributes), CALLER);                       \
                lifecycle_leave(stream);                                                                     \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

/* Records a release before the block is freed. A block with a mapping of its own may have held a stack, which
 * cannot be read afterwards. */
static inline void release(void *block, uintptr_t code, uintptr_t entered) {
    struct stream *stream = is_allocators(code) ? NULL : lifecycle_enter(entered);
    if (UNLIKELY(real_is_glibc && ((const size_t *)block)[-1] & CHUNK_MAPPED)) {
        state_unmaps();
    }
    if (LIKELY(stream != NULL)) {
        event_released(stream, block);
        lifecycle_leave(stream);
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
    release(block, CALLER_CODE, ENTERED);
    REAL(free)(block);
}

void *HOOK(calloc)(size_t count, size_t size) {
    if (UNLIKELY(!real_ready())) {
        return early_memory(count * size); /* never written to, so it is zero */
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
        release(old, CALLER_CODE, ENTERED);
    }
    void *block = REAL(realloc)(old, size);
    RECORD(block, size, LOG_REALLOC);
    if (UNLIKELY(block == NULL && old != NULL && size != 0)) {
        struct stream *stream = lifecycle_enter(ENTERED);
        if (stream != NULL) {
            recorder_write(stream, LOG_KEPT, 0, NULL);
            lifecycle_leave(stream);
        }
    }
    return block;
}

/* An alignment as the log has it: the exponent of its power of two. */
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

static inline void mapped(void *address, size_t size, int protection, int flags, uintptr_t code,
                          uintptr_t stack, uintptr_t frame, uintptr_t entered) {
    struct stream *stream = address != MAP_FAILED ? lifecycle_enter(entered) : NULL;
    if (stream != NULL) {
        uint32_t node = recorder.stacks ? stack_number(stream, code, stack, frame) : 0;
        uint64_t numbers[5] = {(uintptr_t)address, size, node, (uint32_t)protection, (uint32_t)flags};
        recorder_write_event(stream, LOG_MAP, 5, numbers);
        lifecycle_leave(stream);
    }
}

static inline void unmapped(void *address, size_t size, uintptr_t entered) {
    struct stream *stream = lifecycle_enter(entered);
    state_unmaps();
    if (stream != NULL) {
        uint64_t numbers[2] = {(uintptr_t)address, size};
        recorder_write_event(stream, LOG_UNMAP, 2, numbers);
        lifecycle_leave(stream);
    }
}

static inline void moved(uint64_t numbers[6], uintptr_t code, uintptr_t stack, uintptr_t frame,
                         uintptr_t entered) {
    struct stream *stream = lifecycle_enter(entered);
    state_unmaps();
    if (stream != NULL) {
        numbers[4] = recorder.stacks ? stack_number(stream, code, stack, frame) : 0;
        recorder_write_event(stream, LOG_MOVE, 6, numbers);
        lifecycle_leave(stream);
    }
}

void *HOOK(mmap)(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = REAL(mmap)(address, size, protection, flags, fd, offset);
    if (!is_allocators(CALLER_CODE)) {
        mapped(found, size, protection, flags, CALLER, ENTERED);
    }
    return found;
}

void *HOOK(mmap64)(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
    if (UNLIKELY(!real_ready())) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = REAL(mmap64)(address, size, protection, flags, fd, offset);
    if (!is_allocators(CALLER_CODE)) {
        mapped(found, size, protection, flags, CALLER, ENTERED);
    }
    return found;
}

int HOOK(munmap)(void *address, size_t size) {
    if (UNLIKELY(!real_ready())) {
        errno = EINVAL;
        return -1;
    }
    if (!is_allocators(CALLER_CODE)) {
        unmapped(address, size, ENTERED);
    }
    return REAL(munmap)(address, size);
}

/* Memory that is reserved without access may become the program's, and the reverse. */
int HOOK(mprotect)(void *address, size_t size, int protection) {
    if (UNLIKELY(!real_ready())) {
        return (int)syscall(SYS_mprotect, address, size, protection);
    }
    int result = REAL(mprotect)(address, size, protection);
    struct stream *stream = result == 0 && !is_allocators(CALLER_CODE) ? lifecycle_enter(ENTERED) : NULL;
    if (!(protection & PROT_READ)) {
        state_unmaps();
    }
    if (stream != NULL) {
        uint64_t numbers[3] = {(uintptr_t)address, size, (uint32_t)protection};
        recorder_write_event(stream, LOG_PROTECT, 3, numbers);
        lifecycle_leave(stream);
    }
    return result;
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
    if (found != MAP_FAILED && !is_allocators(CALLER_CODE)) {
        /* After the call, which may fail and then changes nothing. Whether it is a file's is known of the old
         * range only. */
        uint64_t numbers[6] = {(uintptr_t)old, old_size, (uintptr_t)found, size, 0, (uint32_t)flags};
        moved(numbers, CALLER, ENTERED);
    }
    return found;
}

#ifndef WIDTHWISE_HEAP_LINKED
/* If others have opened the module too, it stays loaded, and the cached rules stay valid. */
int HOOK(dlclose)(void *module) {
    if (UNLIKELY(!real_ready() || REAL(dlclose) == NULL)) {
        return -1;
    }
    uintptr_t within = (uintptr_t)((const struct link_map *)module)->l_ld;
    int result = REAL(dlclose)(module);
    if (!modules_is_loaded(within)) {
        lifecycle_closed();
    }
    return result;
}
#endif

#pragma GCC visibility pop
