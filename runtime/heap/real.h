/*
 * The functions that the recorder stands in front of. Preloaded, they are the next ones of their names in the
 * program's search order: the C library's, or those of an allocator that was preloaded after the recorder.
 * Linked into the program, they are what the linker's --wrap leaves.
 */
#ifndef WIDTHWISE_HEAP_REAL_H
#define WIDTHWISE_HEAP_REAL_H

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
    FUNCTION(_Exit, void, (int))

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
/* Finds them. 0 while they are being looked for: what is asked for then comes out of `early_memory`. */
int real_find(void);
static inline int real_ready(void) { return __builtin_expect(real.malloc != NULL, 1) || real_find(); }
static inline int has_usable_size(void) { return real.malloc_usable_size != NULL; }

#endif

/* Whether a block's size stands before it. */
extern int real_is_glibc;
/* Where an allocator lies that is not glibc: what it asks of itself, or of the system, is not the program's
 * doing. */
extern struct stretch real_allocator;
/* Its operators jump to free and the like: whoever looks then sees the recorder's own call of the operator.
 */
extern struct stretch real_recorder;
static inline int is_allocators(uintptr_t place) {
    return is_within(real_allocator, place) || is_within(real_recorder, place);
}

/* Memory for those who ask while the real functions are being looked for: it is never given back. */
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

/* The bytes beyond the requested ones, and where glibc has the block: `spare` of a record. */
static inline uint64_t spare_of(void *block, size_t requested) {
    size_t usable, place = 0;
    if (real_is_glibc) {
        size_t chunk = ((const size_t *)block)[-1];
        place = chunk & CHUNK_MAPPED ? 1 : chunk & CHUNK_OTHER_ARENA ? 2 : 0;
        usable = (chunk & ~(size_t)7) - (chunk & CHUNK_MAPPED ? 2 : 1) * sizeof(size_t);
    } else {
        usable = has_usable_size() ? REAL(malloc_usable_size)(block) : requested;
    }
    return (uint64_t)(usable - requested) << 2 | place;
}

#endif
