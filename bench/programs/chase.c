/*
 * Bound by memory: argument 2 dependent loads through a random cycle over argument 1 KiB, and PER_MILLE /
 * 1000 as many after them. PER_MILLE is read as data: programs that differ in it have the same instructions
 * at the same addresses.
 */
#include <stdint.h>
#include <stdlib.h>

#ifndef PER_MILLE
#define PER_MILLE 1000
#endif

static volatile const unsigned long per_mille = PER_MILLE;

/* Sattolo's algorithm makes one cycle of all cells, each on a cache line of its own. */
struct cell {
    uint32_t next;
    char rest[60];
};

int main(int argc, char **argv) {
    unsigned long kib = argc > 2 ? strtoul(argv[1], 0, 10) : 64;
    unsigned long steps = argc > 2 ? strtoul(argv[2], 0, 10) / 1000 * per_mille : 0;
    uint32_t cells = (uint32_t)(kib * 1024 / sizeof(struct cell));
    struct cell *ring = malloc(cells * sizeof *ring);
    uint64_t state = 1;
    if (cells < 2 || !ring)
        return 2;
    for (uint32_t i = 0; i < cells; i++)
        ring[i].next = i;
    for (uint32_t i = cells - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t other = (uint32_t)((state >> 33) % i), kept = ring[i].next;
        ring[i].next = ring[other].next;
        ring[other].next = kept;
    }
    uint32_t at = 0;
    for (; steps > 0; steps--)
        at = ring[at].next;
    return at == cells;
}
