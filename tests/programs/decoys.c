/* Known parts: blocks beside variables, parameters and structures that do not point to them, and whose types
   have the blocks' size in each ABI. No statistics and no node is on the heap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

struct opaque {
    void *own[5];
};
struct request {
    void *own[5];
};
struct statistics {
    void *own[4];
    long number;
};
struct node {
    struct node *next;
    void *text;
    size_t length;
    char *name;
};
struct server {
    struct statistics *statistics;
    struct request *requests[COUNT];
};

static struct statistics total;
static struct server server = {.statistics = &total};
static struct node nodes[COUNT], *head;
void *volatile kept[2 * COUNT];
static const size_t request_size = sizeof(struct request);

static void *get(size_t bytes) {
    void *block = malloc(bytes);
    if (!block)
        abort();
    return block;
}

static size_t text_size(const struct node *of) { return 64 * sizeof(void *) + 0 * of->length; }

// The type of the line is left out of the debug information, since nothing else has it.
__attribute__((noinline)) static void in_a_line(struct statistics *statistics) {
    for (int i = 0; i < COUNT; i++) {
        kept[i] = malloc(sizeof(struct opaque));
        statistics->number++;
    }
}

// The function that allocates is inlined into one with other variables.
__attribute__((noinline)) static void inlined(struct statistics *statistics) {
    for (int i = 0; i < COUNT; i++) {
        kept[COUNT + i] = get(request_size);
        statistics->number++;
    }
}

// The array's elements receive the blocks.
__attribute__((noinline)) static void received(struct server *of) {
    for (int i = 0; i < COUNT; i++) {
        of->requests[i] = malloc(request_size);
        of->statistics->number++;
    }
}

__attribute__((noinline)) static void in_a_loop(void) {
    // clang-format off
    for (struct node *n = head; n; n = n->next) n->text = memset(malloc(text_size(n)), 'x', 64);
    // clang-format on
}

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        nodes[i].next = head;
        head = &nodes[i];
    }
    in_a_line(&total);
    inlined(&total);
    received(&server);
    in_a_loop();
    printf("%ld\n", total.number);
    return 0;
}
