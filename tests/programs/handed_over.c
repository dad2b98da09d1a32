// Functions that allocate, with and without a result, and lines that call them beside other calls that
// allocate.

#include <stdlib.h>

enum { COUNT = 1000 };

struct call {
    void *table, *slots[11];
    long number;
};
struct node {
    struct node *next;
    void *value;
    long key;
};
struct pair {
    struct pair *next;
    void *value[4];
    long key;
};
struct item {
    struct item *next;
    void *value[6];
    long key;
};

struct part {
    void *value, *other;
};

struct call *calls;
struct node *nodes;
struct pair *pairs;
struct item *items;
struct part *parts;

// It returns nothing. The size fits struct call on x86-64.
__attribute__((noinline)) static void alloc_rounded(void **to, unsigned entries) {
    unsigned size = (entries * (sizeof(void *) + 17) + 7) & ~7u;
    void *made = malloc(size);
    *to = made;
}

// The size is that of struct call.
__attribute__((noinline)) static void alloc_slots(void **to, unsigned entries) {
    unsigned size = entries * 13 * sizeof(void *);
    void *made = malloc(size);
    *to = made;
}

// It returns no pointer.
__attribute__((noinline)) static long alloc_counted(void **to, unsigned entries) {
    unsigned size = entries * 13 * sizeof(void *);
    void *made = malloc(size);
    *to = made;
    return entries;
}

__attribute__((noinline)) static void *alloc_table(unsigned entries) {
    unsigned size = entries * 13 * sizeof(void *);
    void *made = malloc(size);
    return made;
}

__attribute__((noinline)) static void *alloc_checked(size_t size) {
    void *made = malloc(size);
    if (!made)
        abort();
    return made;
}

// The block is where the argument points to.
__attribute__((noinline)) static int alloc_at(void **to, size_t size) {
    void *made = malloc(size);
    *to = made;
    return made != NULL;
}

#define NEW(type) ((struct type *)alloc_checked(sizeof(struct type)))

// clang-format off
__attribute__((noinline)) static struct call *rounded(void) { struct call *made = malloc(sizeof *made); alloc_rounded(&made->table, 4); return made; }
__attribute__((noinline)) static struct call *slots(void) { struct call *made = malloc(sizeof *made); alloc_slots(&made->table, 1); return made; }
__attribute__((noinline)) static struct call *counted(void) { struct call *made = malloc(sizeof *made); made->number = alloc_counted(&made->table, 1); return made; }
__attribute__((noinline)) static struct call *table(void) { struct call *made = malloc(sizeof *made); made->table = alloc_table(1); return made; }
// clang-format on

// The block is a sum, of which neither term is known.
// clang-format off
__attribute__((noinline)) static void *sum(int n) { size_t a = n * sizeof(struct part), b = n * sizeof(void *); char *made = malloc(a + b); return made; }
__attribute__((noinline)) static void *whole(int n) { size_t a = n * sizeof(struct part); void *made = malloc(a); return made; }
// clang-format on

__attribute__((noinline)) static struct call *lines(void) {
    struct call *made = malloc(sizeof *made);
    alloc_slots(&made->table, 1);
    return made;
}

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        struct call *all[] = {rounded(), slots(), counted(), table(), lines()};
        for (int k = 0; k < 5; k++)
            all[k]->slots[0] = calls, calls = all[k];
        struct node *node = alloc_checked(sizeof *node);
        node->next = nodes, nodes = node;
        struct item *item = NEW(item);
        item->next = items, items = item;
        struct pair *pair;
        if (!alloc_at((void **)&pair, sizeof *pair))
            return 1;
        pair->next = pairs, pairs = pair;
        for (int k = 0; k < 2; k++) {
            struct part *made = k ? sum(10) : whole(3);
            made->value = parts, parts = made;
        }
    }
    return 0;
}
