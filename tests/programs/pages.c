/* Known parts: objects of several types from pages that one function takes from malloc, and arrays and
   objects that are blocks of their own. A page's size is a multiple of a type's by chance. */
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000, PAGE = 4096 };

struct node {
    struct node *next;
    int value;
};
struct wide {
    void *all[4];
};
struct text {
    size_t length;
    unsigned count;
    char characters[2];
};
struct pool {
    char *page;
    size_t left;
};
struct entry {
    void *key, *value;
};
struct lone {
    void *own[2];
    long number;
};
struct cell {
    void *first, *second;
};
struct four {
    void *cells[2];
};

static struct pool whole;
static char *page;
static size_t left;
struct node *nodes;
struct wide *wides;
struct entry *entries[COUNT], **tables[COUNT];
struct lone *lones[COUNT];
struct four *fours[COUNT];

// Serves objects of all types from one page.
__attribute__((noinline)) static void *take_alloc(size_t bytes) {
    bytes = (bytes + 7) & ~(size_t)7;
    if (left < bytes) {
        page = malloc(PAGE);
        left = PAGE;
    }
    void *taken = page;
    page += bytes;
    left -= bytes;
    return taken;
}

__attribute__((noinline)) static void *alloc_from(struct pool *from, size_t bytes) {
    if (from->left < bytes) {
        from->page = malloc(PAGE);
        from->left = PAGE;
    }
    void *taken = from->page;
    from->page += bytes;
    from->left -= bytes;
    return taken;
}

// Pages of two sizes.
__attribute__((noinline)) static void *large_alloc(struct pool *from, size_t bytes) {
    static size_t next = PAGE;
    if (from->left < bytes) {
        from->page = malloc(next);
        from->left = next;
        next = next == PAGE ? 2 * PAGE : PAGE;
    }
    void *taken = from->page;
    from->page += bytes;
    from->left -= bytes;
    return taken;
}

__attribute__((noinline)) static void *xnmalloc(size_t count, size_t bytes) {
    void *made = malloc(count * bytes);
    if (made == NULL)
        abort();
    return made;
}

__attribute__((noinline)) static void *xmalloc(size_t bytes) {
    void *made = malloc(bytes);
    if (made == NULL)
        abort();
    return made;
}

#define OVERHEAD (sizeof(struct text) - 1)
__attribute__((noinline)) static struct text *text(size_t length) {
    struct text *made = take_alloc(length + OVERHEAD);
    made->length = length;
    return made;
}

__attribute__((noinline)) static void fill(struct pool *pool) {
    for (int i = 0; i < COUNT; i++) {
        struct node *node = take_alloc(sizeof(struct node));
        node->next = nodes;
        nodes = node;
        for (int k = 0; k < 9; k++) {
            wides = take_alloc(sizeof *wides);
            wides->all[0] = text(8);
        }
        struct wide *other = alloc_from(pool, sizeof(struct wide));
        other->all[0] = wides;
        nodes->value = other->all[0] != NULL;
    }
}

__attribute__((noinline)) static void *cells(struct pool *pool) {
    struct cell *three = large_alloc(pool, 3 * sizeof(struct cell));
    struct cell *eight = large_alloc(pool, sizeof *eight << 3);
    three->first = eight;
    return three;
}

int main(void) {
    fill(&whole);
    struct pool large = {0};
    for (int i = 0; i < COUNT; i++)
        cells(&large);
    for (int i = 0; i < COUNT; i++) {
        tables[i] = calloc(8, sizeof(struct entry *));
        entries[i] = xnmalloc(5, sizeof(struct entry));
        lones[i] = xmalloc(sizeof(struct lone));
        fours[i] = xmalloc(4 * sizeof(struct four));
    }
    return printf("%zu\n", sizeof(struct text)) < 0;
}
