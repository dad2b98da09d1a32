// Memory: chasing pointers over growing lists, and bandwidth.
#include "operation.h"

#include <stdlib.h>
#include <string.h>

// A node of a list as programs have it: two pointers, 16 bytes with 8-byte pointers and 8 bytes with 4-byte
// pointers. Rows are numbers of nodes: the caches' steps are where the width puts them.
struct node {
    struct node *next;
    void *content;
};

enum { MOST_NODES = 1 << 20, STEPS = 32 };

static struct node *nodes;
// Where each list was left, so that repetitions do not begin at the same node.
static struct node *volatile position;

// One random cycle through all nodes (Sattolo, "An algorithm to generate a random cyclic permutation", 1986).
static const char *link_nodes(uint32_t count) {
    if (nodes == NULL && (nodes = aligned_alloc(4096, MOST_NODES * sizeof(struct node))) == NULL)
        return failure("malloc");
    for (uint32_t i = 0; i < count; i++)
        nodes[i].next = &nodes[i], nodes[i].content = NULL;
    uint64_t state = 1;
    for (uint32_t i = count - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t other = (uint32_t)((state >> 33) % i);
        struct node *next = nodes[i].next;
        nodes[i].next = nodes[other].next;
        nodes[other].next = next;
    }
    position = nodes;
    // Once around: into the caches, as far as it fits.
    struct node *node = nodes;
    for (uint32_t i = 0; i < count; i++)
        node = node->next;
    position = node;
    return NULL;
}

#define CHASE(size, count)                                                                                   \
    DECLARE(chase_##size);                                                                                   \
    LOOP(chase_##size) {                                                                                     \
        struct node *node = position;                                                                        \
        REPEAT { TIMES32(node = node->next;) }                                                               \
        position = node;                                                                                     \
    }                                                                                                        \
    static const char *prepare_##size(void) { return link_nodes(count); }                                    \
    const struct operation operation_chase_##size = {                                                        \
        "chase_" #size, micro_chase_##size, STEPS, NULL, prepare_##size, NULL, 0};

CHASE(256, 1 << 8)
CHASE(512, 1 << 9)
CHASE(1k, 1 << 10)
CHASE(2k, 1 << 11)
CHASE(4k, 1 << 12)
CHASE(8k, 1 << 13)
CHASE(16k, 1 << 14)
CHASE(32k, 1 << 15)
CHASE(64k, 1 << 16)
CHASE(128k, 1 << 17)
CHASE(256k, 1 << 18)
CHASE(512k, 1 << 19)
CHASE(1m, 1 << 20)

// An iteration is a part of the buffer, and the next one goes on behind it: a part is short enough to lie
// between two ticks of an emulated machine's clock in every ABI (counts.c).
enum { BUFFER = 8 << 20, PART = 1 << 20, CHUNK = 16 };
enum { WORDS = BUFFER / sizeof(unsigned long), PART_WORDS = PART / sizeof(unsigned long) };

static unsigned long *first, *second;
static size_t next_part;
static volatile unsigned long sum;

static const char *prepare_buffers(void) {
    if (first == NULL) {
        first = aligned_alloc(4096, BUFFER), second = aligned_alloc(4096, BUFFER);
        if (first == NULL || second == NULL)
            return failure("malloc");
        memset(first, 1, BUFFER);
        memset(second, 1, BUFFER);
    }
    return NULL;
}

// Words of the ABI's own width (`long`), as lmbench's bw_mem has words of `int`. The barrier keeps the
// compiler from vectors and from calling memcpy: what is measured is the same loop with every compiler.
#define BANDWIDTH(name, statement)                                                                           \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        REPEAT {                                                                                             \
            unsigned long total = 0;                                                                         \
            size_t end = next_part + PART_WORDS;                                                             \
            for (size_t i = next_part; i < end; i += CHUNK) {                                                \
                unsigned long *from = first + i, *to = second + i;                                           \
                TIMES4(statement(0) statement(1) statement(2) statement(3) from += 4; to += 4;)              \
                __asm__ volatile("" : "+r"(total)::"memory");                                                \
                (void)from, (void)to;                                                                        \
            }                                                                                                \
            sum = total;                                                                                     \
            next_part = end % WORDS;                                                                         \
        }                                                                                                    \
    }                                                                                                        \
    const struct operation operation_##name = {#name,           micro_##name, PART >> 10, NULL,              \
                                               prepare_buffers, NULL,         8};

#define READ(k) total += *(volatile unsigned long *)&from[k];
#define WRITE(k) *(volatile unsigned long *)&to[k] = total;
#define COPY(k) *(volatile unsigned long *)&to[k] = *(volatile unsigned long *)&from[k];
BANDWIDTH(memory_read, READ)
BANDWIDTH(memory_write, WRITE)
BANDWIDTH(memory_copy, COPY)
