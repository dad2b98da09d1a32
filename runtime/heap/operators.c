/*
 * Hooks of C++'s operators new and delete. libstdc++'s operators call malloc and free, whose hooks record the
 * block. Allocators with operators of their own (jemalloc, tcmalloc, mimalloc) do not, so that these hooks
 * record the block.
 *
 * The functions have the names that the C++ ABI gives them (Itanium C++ ABI, 5.1.4): `m` is `unsigned long`,
 * which size_t is in LP64, and `j` is `unsigned int`.
 */
#ifndef WIDTHWISE_HEAP_LINKED

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "event.h"
#include "own_stack.h"
#include "real_allocator.h"

#ifdef __LP64__
#define SIZED(before, after) before##m##after
#else
#define SIZED(before, after) before##j##after
#endif
#define PUBLIC __attribute__((visibility("default")))

/* The operators of libstdc++ are malloc and free, except when there is no memory (libsupc++, new_op.cc), so
 * the hook may call these directly. An allocator's operators are always called. */
struct found {
    void *function;
    int is_allocators, is_plain;
    int is_global;  /* found for the whole process, and valid until its end */
    uint32_t epoch; /* in which it was found */
};

struct search {
    struct found *found;
    const char *name;
    uintptr_t caller;
};

static void classify(struct found *found) {
    Dl_info operator, allocator;
    if (dladdr(found->function, &operator) && dladdr((void *)real.malloc, &allocator)) {
        found->is_allocators = operator.dli_fbase == allocator.dli_fbase;
        found->is_plain = !found->is_allocators && strstr(operator.dli_fname, "/libstdc++.so") != NULL;
    }
}

/* The operators of a library that was opened with RTLD_LOCAL are visible only to it and to the libraries that
 * it needs. */
static void look(void *argument) {
    struct search *search = argument;
    struct thread *thread = &recorder_thread;
    uint32_t before = thread->inside;
    thread->inside = SILENT; /* allocations of the search are the recorder's own */
    struct found found = {.is_global = 1};
    found.function = dlsym(RTLD_NEXT, search->name);
    if (found.function == NULL) {
        Dl_info info;
        void *module = NULL;
        found.is_global = 0;
        if (dladdr1((void *)search->caller, &info, &module, RTLD_DL_LINKMAP)) {
            found.function = dlsym(module, search->name);
        }
    }
    if (found.function != NULL) {
        classify(&found);
    }
    found.epoch = recorder.epoch != NULL ? recorder.epoch->number : 0;
    /* Published in one step: another thread sees all of it or nothing. */
    search->found->is_allocators = found.is_allocators;
    search->found->is_plain = found.is_plain || found.function == NULL;
    search->found->is_global = found.is_global;
    search->found->epoch = found.epoch;
    __atomic_store_n(&search->found->function, found.function, __ATOMIC_RELEASE);
    thread->inside = before;
}

static int is_known(const struct found *found) {
    return found->function != NULL &&
           (found->is_global || (recorder.epoch != NULL && found->epoch == recorder.epoch->number));
}

/* If no operator is found, malloc or free takes its part. */
static void find(struct found *found, const char *name, uintptr_t caller) {
    if (!real_ready()) {
        return; /* dlsym allocates by malloc, so it never calls an operator */
    }
    struct search search = {found, name, caller};
    struct stream *stream = lifecycle_enter(ENTERED);
    if (stream != NULL) {
        aside_call(look, &search);
        lifecycle_leave(stream);
    } else {
        look(&search);
    }
}

#define FIND(symbol)                                                                                         \
    static struct found found;                                                                               \
    if (UNLIKELY(!is_known(&found))) {                                                                       \
        find(&found, #symbol, CALLER_CODE);                                                                  \
    }

/* No libstdc++ is loaded that could throw bad_alloc. */
static void recorder_no_memory(void) {
    static const char text[] = "widthwise heap recorder: operator new: no memory, and no library to throw\n";
    recorder_say(text, sizeof text - 1);
    abort();
}

#define RECORD(block, size, spare, attributes)                                                               \
    do {                                                                                                     \
        uint64_t more = (block) != NULL ? (spare) : 0;                                                       \
        struct stream *stream = (block) != NULL ? lifecycle_enter(ENTERED) : NULL;                           \
        if (LIKELY(stream != NULL)) {                                                                        \
            event_allocated(stream, (block), (size), more, (attributes), CALLER);                            \
            lifecycle_leave(stream);                                                                         \
        }                                                                                                    \
    } while (0)

/* `plain`: the call by which libstdc++'s operator gets the block. */
#define NEW(symbol, parameters, arguments, plain, attributes)                                                \
    PUBLIC void *symbol parameters {                                                                         \
        FIND(symbol)                                                                                         \
        void *(*next)parameters = (void *(*)parameters)found.function;                                       \
        void *block = NULL;                                                                                  \
        if (LIKELY(found.is_plain)) {                                                                        \
            block = plain;                                                                                   \
            if (LIKELY(block != NULL)) {                                                                     \
                RECORD(block, size, spare_of(block, size), attributes);                                      \
                return block;                                                                                \
            }                                                                                                \
        }                                                                                                    \
        if (UNLIKELY(next == NULL)) {                                                                        \
            recorder_no_memory();                                                                            \
            return NULL;                                                                                     \
        }                                                                                                    \
        if (!found.is_allocators || is_allocators(CALLER_CODE)) {                                            \
            return next arguments;                                                                           \
        }                                                                                                    \
        block = next arguments;                                                                              \
        RECORD(block, size, spare_of(block, size), attributes);                                              \
        return block;                                                                                        \
    }

#define DELETE(symbol, parameters, arguments)                                                                \
    PUBLIC void symbol parameters {                                                                          \
        FIND(symbol)                                                                                         \
        void(*next) parameters = (void(*) parameters)found.function;                                         \
        if ((!found.is_plain && !found.is_allocators) || is_allocators(CALLER_CODE)) {                       \
            next arguments;                                                                                  \
            return;                                                                                          \
        }                                                                                                    \
        if (UNLIKELY(is_early(block))) {                                                                     \
            return;                                                                                          \
        }                                                                                                    \
        struct stream *stream = block != NULL ? lifecycle_enter(ENTERED) : NULL;                             \
        if (LIKELY(stream != NULL)) {                                                                        \
            event_released(stream, block);                                                                   \
            lifecycle_leave(stream);                                                                         \
        }                                                                                                    \
        if (LIKELY(found.is_plain)) {                                                                        \
            real.free(block);                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        next arguments;                                                                                      \
        /* No tail call: the operator may jump to free, whose caller would then be the program. */           \
        __asm__ volatile("");                                                                                \
    }

#define MALLOC real.malloc(size != 0 ? size : 1)
/* libstdc++ rounds the size up to the alignment (new_opa.cc). */
#define ALIGN real.aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1))
#define PLAIN LOG_OPERATOR
#define ALIGNED (LOG_OPERATOR | (uint32_t)__builtin_ctzl(alignment | 1UL << 31) << 3)

#define NEW_BY_NAME(...) NEW(__VA_ARGS__)
#define DELETE_BY_NAME(...) DELETE(__VA_ARGS__)

NEW_BY_NAME(SIZED(_Znw, ), (size_t size), (size), MALLOC, PLAIN)
NEW_BY_NAME(SIZED(_Zna, ), (size_t size), (size), MALLOC, PLAIN)
NEW_BY_NAME(SIZED(_Znw, RKSt9nothrow_t), (size_t size, const void *nothrow), (size, nothrow), MALLOC, PLAIN)
NEW_BY_NAME(SIZED(_Zna, RKSt9nothrow_t), (size_t size, const void *nothrow), (size, nothrow), MALLOC, PLAIN)
NEW_BY_NAME(SIZED(_Znw, St11align_val_t), (size_t size, size_t alignment), (size, alignment), ALIGN, ALIGNED)
NEW_BY_NAME(SIZED(_Zna, St11align_val_t), (size_t size, size_t alignment), (size, alignment), ALIGN, ALIGNED)
NEW_BY_NAME(SIZED(_Znw, St11align_val_tRKSt9nothrow_t), (size_t size, size_t alignment, const void *nothrow),
            (size, alignment, nothrow), ALIGN, ALIGNED)
NEW_BY_NAME(SIZED(_Zna, St11align_val_tRKSt9nothrow_t), (size_t size, size_t alignment, const void *nothrow),
            (size, alignment, nothrow), ALIGN, ALIGNED)

DELETE_BY_NAME(_ZdlPv, (void *block), (block))
DELETE_BY_NAME(_ZdaPv, (void *block), (block))
DELETE_BY_NAME(_ZdlPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow))
DELETE_BY_NAME(_ZdaPvRKSt9nothrow_t, (void *block, const void *nothrow), (block, nothrow))
DELETE_BY_NAME(SIZED(_ZdlPv, ), (void *block, size_t size), (block, size))
DELETE_BY_NAME(SIZED(_ZdaPv, ), (void *block, size_t size), (block, size))
DELETE_BY_NAME(_ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE_BY_NAME(_ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE_BY_NAME(SIZED(_ZdlPv, St11align_val_t), (void *block, size_t size, size_t alignment),
               (block, size, alignment))
DELETE_BY_NAME(SIZED(_ZdaPv, St11align_val_t), (void *block, size_t size, size_t alignment),
               (block, size, alignment))
DELETE_BY_NAME(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow),
               (block, alignment, nothrow))
DELETE_BY_NAME(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, const void *nothrow),
               (block, alignment, nothrow))

#endif
