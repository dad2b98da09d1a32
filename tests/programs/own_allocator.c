/* An allocator, to be preloaded, in which a signal may come at any moment: its handler may allocate, or leave
 * by a jump. A block is never used again. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROOM ((size_t)512 << 20)

/* Before a block stands its size. */
static char room[ROOM] __attribute__((aligned(4096)));
static size_t used;

void *memalign(size_t alignment, size_t size) {
    alignment = alignment < 16 ? 16 : alignment;
    size_t whole = (size + alignment + 31) & ~(size_t)15;
    if (whole < size || whole > ROOM) {
        errno = ENOMEM;
        return NULL;
    }
    size_t before = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
    if (before > ROOM - whole) {
        errno = ENOMEM;
        return NULL;
    }
    char *block =
        (char *)(((uintptr_t)(room + before) + sizeof(size_t) + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((size_t *)block)[-1] = size;
    return block;
}

void *malloc(size_t size) { return memalign(16, size); }

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t size) {
    return size != 0 && count > ROOM / size ? NULL : malloc(count * size); /* which was never written to */
}

static size_t size_of(void *block) { return block != NULL ? ((size_t *)block)[-1] : 0; }

size_t malloc_usable_size(void *block) {
#ifdef KNOWS_NO_SIZES /* as tcmalloc of the blocks from before its start */
    return (void)block, 0;
#else
    return size_of(block);
#endif
}

void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (block != NULL && old != NULL) {
        size_t before = size_of(old);
        memcpy(block, old, before < size ? before : size);
    }
    return block;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = memalign(alignment, size);
    return *result != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
