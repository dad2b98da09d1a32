/* Known parts: buffers of a fixed size, each allocated beside a structure in one line, by every function that
   aligns blocks. A buffer's size is a multiple of the structure's in one ABI by chance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

struct node {
    struct node *next;
    void *data;
    int key;
};
struct twin {
    struct twin *next;
    void *data;
    int key;
};
struct lone {
    void *data[2];
    long key;
};

void *kept[COUNT];

// clang-format off
__attribute__((noinline)) static struct node *beside_a_buffer(void) {
    void *data;
    struct node *made;
    if (posix_memalign(&data, 16, 156) || !(made = malloc(sizeof *made))) abort();
    made->data = data;
    return made;
}

__attribute__((noinline)) static struct twin *both_aligned(void) {
    void *data, *made;
    if (posix_memalign(&data, 16, 120) || posix_memalign(&made, 16, sizeof(struct twin))) abort();
    ((struct twin *)made)->data = data;
    return made;
}

// The name of no allocating function is in the line.
#define TAKE(bytes) malloc(bytes)
__attribute__((noinline)) static struct lone *by_another_name(void) {
    void *data = TAKE(192); struct lone *made = malloc(sizeof *made);
    made->data[0] = data;
    return made;
}
// clang-format on

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        struct node *node = beside_a_buffer();
        struct twin *twin = both_aligned();
        struct lone *lone = by_another_name();
        node->next = kept[0];
        twin->next = kept[0];
        lone->data[1] = twin;
        twin->data = node;
        kept[i] = lone;
    }
    return printf("%zu\n", sizeof(struct node)) < 0;
}
