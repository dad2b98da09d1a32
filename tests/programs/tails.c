/* Known parts: blocks that begin with a structure and continue with something else, and pages of a pool whose
   line measures another object, too. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

struct chunk {
    struct chunk *next;
    char text[];
};
struct older {
    struct older *next;
    char text[0];
};
struct outer {
    long number;
    struct chunk inner;
};
struct header {
    struct header *next;
    size_t length;
};
struct pool {
    char *at;
    struct pool *parent;
};
struct plain {
    void *first, *second;
};
struct entry {
    struct entry *next;
    unsigned long hash;
    char key[];
};
struct table {
    struct table *parent;
    int count;
    void *slots[];
};
struct label {
    char *owner;
    long number;
};
struct several {
    int key;
    struct several *next[];
};
struct keys {
    struct keys *next;
    long key[];
};
struct padded {
    long number;
    char kind, text[];
};

struct chunk *chunks;
struct older *olders;
struct outer *outers;
struct header *headers;
struct pool *pools;
struct plain *plains;
struct entry *entries;
struct table *tables;
struct label *labels;
struct padded *padded;
struct several *severals;

__attribute__((noinline)) static void several(size_t bytes) {
    struct chunk *chunk = malloc(bytes);
    chunk->next = chunks;
    chunks = chunk;
    struct older *older = malloc(bytes);
    older->next = olders;
    olders = older;
    struct outer *outer = malloc(bytes);
    outer->number = 1;
    outers = outer;
    struct outer *calloced = calloc(4, sizeof *calloced);
    outers = calloced->number ? outer : calloced;
}

__attribute__((noinline)) static void text(size_t length) {
    size_t bytes = sizeof(struct header) + length;
    struct header *header = malloc(bytes);
    header->next = headers;
    header->length = length;
    headers = header;
}

__attribute__((noinline)) static void array(size_t bytes) {
    struct plain *plain = malloc(bytes);
    plain->first = plains;
    plains = plain;
}

__attribute__((noinline)) static struct header *page_alloc(size_t bytes) {
    struct header *page = malloc((bytes + sizeof(struct header) + 4095) & ~(size_t)4095);
    page->next = NULL;
    page->length = 0;
    return page;
}

// What is behind these objects is as much in every ABI, or as many pointers.
__attribute__((noinline)) static void tails(size_t length) {
    struct entry *entry = malloc(sizeof *entry + length);
    entry->next = entries;
    entries = entry;
    struct table *table = malloc(sizeof *table + length * sizeof(void *));
    table->parent = tables;
    tables = table;
    struct label *label = malloc(sizeof(struct label) + length);
    label->number = 1;
    labels = label;
    // The padding of this one is a part of its text, and another one in each ABI.
    struct padded *made = malloc(offsetof(struct padded, text) + length);
    made->number = 2;
    padded = made;
    // Several objects, and other things behind them, in blocks that one object with pointers would fit.
    struct several *several = calloc(20, sizeof *several + sizeof several->next[0]);
    severals = several;
    size_t each = sizeof *several + length * sizeof several->next[0];
    several = malloc(20 * each);
    severals = several;
    struct keys *keys = malloc(sizeof *keys + length * sizeof(long) + length * sizeof(void *));
    keys->next = NULL;
    // Rounded to another number of bytes in each ABI.
    struct entry *rounded = malloc((sizeof *rounded + length + 15) & ~(size_t)15);
    rounded->next = entries;
    entries = rounded;
}

// Several statements in one line.
// clang-format off
__attribute__((noinline)) static void page(void) {
    struct header *own = page_alloc(sizeof(struct pool)); struct pool *pool = (struct pool *)own->next; own->length += sizeof *pool; pools = pool;
}
// clang-format on

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        several(4096);
        text(32 + 16 * (i % 4));
        array(4 * sizeof(struct plain));
        page();
        tails(1 + i % 29);
    }
    return printf("%d\n", pools != NULL) < 0;
}
