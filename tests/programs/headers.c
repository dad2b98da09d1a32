/* Known parts: blocks that begin with a header, blocks of a line with two calls, and structures whose second
   name the source uses. Their sizes are multiples of small types' sizes by chance. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

struct header {
    struct header *next;
    size_t size;
};
struct packet {
    size_t length;
    char characters[];
};
struct arena {
    char *base;
    size_t used, capacity;
    struct arena *next;
};
typedef struct named {
    void *first;
    long second;
    char third;
} Named;
typedef struct later Later;
struct later {
    void *all[6];
};
typedef Later *LaterPointer;

void *kept[6 * COUNT];
int last;
struct header *headers;
struct arena *arenas;
Named *last_named;

__attribute__((noinline)) static void chunk(void) {
    struct header *made = malloc(sizeof(struct header) + 4096);
    made->next = headers;
    headers = made;
}

__attribute__((noinline)) static void chunk_of(size_t bytes) {
    struct header *made = malloc(bytes);
    made->next = headers;
    headers = made;
}

__attribute__((noinline)) static void packet(size_t length) {
    struct packet *made = malloc(sizeof *made + length * sizeof made->characters[0]);
    made->length = length;
    kept[last++] = made;
}

// Two calls in one line.
// clang-format off
__attribute__((noinline)) static void grow(void) {
    struct arena *made = malloc(sizeof *made); made->base = malloc(65536);
    made->next = arenas;
    arenas = made;
}
// clang-format on

// The unit has a pointer to a structure as large as three pointers.
__attribute__((noinline)) static void *checked_alloc(size_t bytes) {
    void *made = malloc(bytes);
    if (made == NULL)
        abort();
    return made;
}

__attribute__((noinline)) static void others(void) {
    void **row = checked_alloc(3 * sizeof(void *));
    kept[last++] = row;
    kept[last++] = last_named = malloc(sizeof(Named));
    kept[last++] = malloc(sizeof(Later));
    LaterPointer again = malloc(sizeof(*again));
    kept[last++] = again;
}

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        chunk();
        chunk_of(sizeof(struct header) + 8192);
        packet(100);
        others();
    }
    for (int i = 0; i < 40; i++)
        grow();
    return printf("%zu\n", headers->size) < 0;
}
