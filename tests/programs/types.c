/*
 * Memory made of known parts, for the types of heap blocks of C: COUNT objects of each kind, by malloc and
 * calloc. It prints the sizes that the compiler gives them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef COUNT
#define COUNT 1000
#endif

struct entry {
    struct entry *next;
    long key;
    double value;
};

typedef struct {
    struct entry **buckets;
    size_t used;
    char name[5];
} table;

struct point {
    double x, y;
};

/* Not static: a compiler leaves out objects that nothing can see. */
table *tables[10];
struct point *points;

static struct entry *make(struct entry *next, long key) {
    struct entry *made = malloc(sizeof(struct entry));
    made->next = next;
    made->key = key;
    made->value = 0.5;
    return made;
}

static table *make_table(void) {
    table *made;
    made = malloc(sizeof *made);
    made->buckets = calloc(COUNT, sizeof(struct entry *));
    made->used = 0;
    strcpy(made->name, "abcd");
    return made;
}

int main(void) {
    for (int i = 0; i < 10; i++) {
        tables[i] = make_table();
    }
    for (long i = 0; i < COUNT; i++) {
        tables[0]->buckets[i] = make(NULL, i);
        // All memory is resident.
        for (int other = 1; other < 10; other++)
            tables[other]->buckets[i] = tables[0]->buckets[i];
    }
    points = malloc(COUNT * sizeof *points);
    for (long i = 0; i < COUNT; i++)
        points[i].x = points[i].y = 1;
    printf("%zu %zu %zu\n", sizeof(struct entry), sizeof(table), sizeof(struct point));
    fflush(stdout);
    return points[0].x == 1 ? 0 : 1;
}
