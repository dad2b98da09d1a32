/* Known parts: arrays of numbers that have names of their own, which no structure uses. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef unsigned long word_t;
typedef ptrdiff_t distance_t;

int main(void) {
    intptr_t *places = malloc(1000 * sizeof(intptr_t));
    time_t *times = malloc(2000 * sizeof(time_t));
    word_t *words = malloc(4000 * sizeof(word_t));
    ptrdiff_t *differences = malloc(5000 * sizeof *differences);
    distance_t *distances = malloc(6000 * sizeof(distance_t));
    long *longs = malloc(7000 * sizeof(long));
    void *volatile kept[] = {places, times, words, differences, distances, longs};
    return printf("%zu\n", sizeof(time_t)) < 0 || kept[5] == NULL;
}
