// The C library's functions on strings and memory. Lengths and addresses are unknown to the compiler, which
// therefore calls.
#include "operation.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20, CHARACTERS = 63 };

static char *source, *target;
static volatile size_t result;

static const char *prepare(void) {
    if (source == NULL) {
        source = aligned_alloc(4096, LONGEST), target = aligned_alloc(4096, LONGEST);
        if (source == NULL || target == NULL)
            return failure("malloc");
        memset(target, 1, LONGEST);
        memset(source, 'x', LONGEST);
    }
    source[CHARACTERS] = target[CHARACTERS] = 0;
    memset(target, 'x', CHARACTERS);
    return NULL;
}

#define KEEP_POINTER(pointer) __asm__ volatile("" : "+r"(pointer)::"memory")

#define STRING(name, call)                                                                                   \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        REPEAT {                                                                                             \
            char *from = source, *to = target;                                                               \
            KEEP_POINTER(from);                                                                              \
            KEEP_POINTER(to);                                                                                \
            call;                                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    const struct operation operation_##name = {#name, micro_##name, 1, NULL, prepare, NULL, 0};

STRING(strlen, (void)to; result = strlen(from))
STRING(strcpy, strcpy(to, from))
STRING(strcmp, result = (size_t)strcmp(to, from))

static volatile size_t bytes_16 = 16, bytes_256 = 256, bytes_4k = 4096, bytes_64k = 65536, bytes_1m = LONGEST;
STRING(memcpy_16, memcpy(to, from, bytes_16))
STRING(memcpy_256, memcpy(to, from, bytes_256))
STRING(memcpy_4k, memcpy(to, from, bytes_4k))
STRING(memcpy_64k, memcpy(to, from, bytes_64k))
STRING(memcpy_1m, memcpy(to, from, bytes_1m))
STRING(memset_4k, (void)from; memset(to, 1, bytes_4k))

static volatile size_t bytes_64 = 64;
DECLARE(malloc);
LOOP(malloc) {
    REPEAT {
        void *block = malloc(bytes_64);
        KEEP_POINTER(block);
        free(block);
    }
}
const struct operation operation_malloc = {"malloc", micro_malloc, 1, NULL, NULL, NULL, 0};
