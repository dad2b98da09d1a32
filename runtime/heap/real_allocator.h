/*
 * The functions that the recorder intercepts. With preloading they are the next ones of their names in the
 * program's search order: the C library's, or those of an allocator that was preloaded after the recorder. In
 * a program that the recorder is linked into, they are the `__real_` functions of the linker's --wrap.
 */
#ifndef WIDTHWISE_HEAP_REAL_ALLOCATOR_H
#define WIDTHWISE_HEAP_REAL_ALLOCATOR_H

#include "log.h"
#include "module.h"

#include <setjmp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <ucontext.h>

/* Name, result, parameters. */
#define REAL_FUNCTIONS(FUNCTION)                                                                             \
    FUNCTION(malloc, void *, (size_t))                                                                       \
    FUNCTION(free, void, (void *))                                                                           \
    FUNCTION(calloc, void *, (size_t, size_t))                                                               \
    FUNCTION(realloc, void *, (void *, size_t))                                                              \
    FUNCTION(posix_memalign, int, (void **, size_t, size_t))                                                 \
    FUNCTION(aligned_alloc, void *, (size_t, size_t))                                                        \
    FUNCTION(memalign, void *, (size_t, size_t))                                                             \
    FUNCTION(valloc, void *, (size_t))                                                                       \
    FUNCTION(pvalloc, void *, (size_t))                                                                      \
    FUNCTION(malloc_usable_size, size_t, (void *))                                                           \
    FUNCTION(mmap, void *, (void *, size_t, int, int, int, off_t))                                           \
    FUNCTION(mmap64, void *, (void *, size_t, int, int, int, off64_t))                                       \
    FUNCTION(munmap, int, (void *, size_t))                                                                  \
    FUNCTION(mprotect, int, (void *, size_t, int))                                                           \
    FUNCTION(mremap, void *, (void *, size_t, size_t, int, ...))                                             \
    FUNCTION(close, int, (int))                                                                              \
    FUNCTION(dup2, int, (int, int))                                                                          \
    FUNCTION(dup3, int, (int, int, int))                                                                     \
    FUNCTION(execve, int, (const char *, char *const *, char *const *))                                      \
    FUNCTION(execvpe, int, (const char *, char *const *, char *const *))                                     \
    FUNCTION(fexecve, int, (int, char *const *, char *const *))                                              \
    FUNCTION(posix_spawn, int,                                                                               \
             (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,          \
              char *const *, char *const *))                                                                 \
    FUNCTION(posix_spawnp, int,                                                                              \
             (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,          \
              char *const *, char *const *))                                                                 \
    FUNCTION(system, int, (const char *))                                                                    \
    FUNCTION(popen, FILE *, (const char *, const char *))                                                    \
    FUNCTION(longjmp, void, (struct __jmp_buf_tag *, int))                                                   \
    FUNCTION(_longjmp, void, (struct __jmp_buf_tag *, int))                                                  \
    FUNCTION(siglongjmp, void, (struct __jmp_buf_tag *, int))                                                \
    FUNCTION(setcontext, int, (const ucontext_t *))                                                          \
    FUNCTION(_exit, void, (int))                                                                             \
    FUNCTION(_Exit, void, (int))                                                                             \
    FUNCTION(quick_exit, void, (int))                                                                        \
    FUNCTION(daemon, int, (int, int))

/* A static program closes no module; the others are not in every glibc. */
#define REAL_MODULES(FUNCTION)                                                                               \
    FUNCTION(dlclose, int, (void *))                                                                         \
    FUNCTION(close_range, int, (unsigned, unsigned, int))                                                    \
    FUNCTION(closefrom, void, (int))                                                                         \
    FUNCTION(execveat, int, (int, const char *, char *const *, char *const *, int))                          \
    FUNCTION(__longjmp_chk, void, (struct __jmp_buf_tag *, int))                                             \
    FUNCTION(_Fork, pid_t, (void))

#ifdef WIDTHWISE_HEAP_LINKED

#define HOOK(name) __wrap_##name
#define REAL(name) __real_##name
#define DECLARE(name, result, parameters) result __real_##name parameters;
REAL_FUNCTIONS(DECLARE)
#undef DECLARE
static inline int real_ready(void) { return 1; }
static inline int has_usable_size(void) { return 1; }

#else

#define HOOK(name) name
#define REAL(name) real.name
#define MEMBER(name, result, parameters) result(*name) parameters;
struct real {
    REAL_FUNCTIONS(MEMBER)
    REAL_MODULES(MEMBER)
};
#undef MEMBER
extern struct real real;
/* Finds them. 0 while the search is in progress: allocations are served from `early_memory` then. */
int real_find(void);
static inline int real_ready(void) { return __builtin_expect(real.malloc != NULL, 1) || real_find(); }
static inline int has_usable_size(void) { return real.malloc_usable_size != NULL; }

#endif

/* Whether the allocator is glibc's, which stores a block's size before it. */
extern int real_is_glibc;
/* Where an allocator lies that is not glibc's. The memory that it requests from itself or from the system is
 * not an allocation of the program. */
extern struct stretch real_allocator;
/* Its operators jump to free (a tail call), so the return address is that of the recorder's own call. */
extern struct stretch real_recorder;
static inline int is_allocators(uintptr_t code) {
    return is_within(real_allocator, code) || is_within(real_recorder, code);
}

/* Memory for allocations during the search for the real functions. It is never freed. */
extern uint8_t early[1 << 16];
void *early_memory(size_t size);
static inline int is_early(const void *address) {
    return (uintptr_t)address - (uintptr_t)early < sizeof early;
}
size_t early_size(const void *address);

/* Of glibc's chunk: its size with three flags in the word before the block (malloc/malloc.c, malloc_chunk).
 */
#define CHUNK_MAPPED 2
#define CHUNK_OTHER_ARENA 4

/* `spare` of a record: the bytes beyond the requested ones, and glibc's arena. */
static inline uint64_t spare_of(void *block, size_t requested) {
    size_t usable, arena = LOG_MAIN;
    if (real_is_glibc) {
        size_t chunk = ((const size_t *)block)[-1];
        arena = chunk & CHUNK_MAPPED ? LOG_MAPPED : chunk & CHUNK_OTHER_ARENA ? LOG_SECONDARY : LOG_MAIN;
        usable = (chunk & ~(size_t)7) - (chunk & CHUNK_MAPPED ? 2 : 1) * sizeof(size_t);
    } else {
        usable = has_usable_size() ? REAL(malloc_usable_size)(block) : requested;
    }
    /* 0 where they are not known: tcmalloc has no size of blocks that it gave before its own start. */
    size_t spare = usable > requested ? usable - requested : 0;
    return (uint64_t)spare << 2 | arena;
}

#endif
