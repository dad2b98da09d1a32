/*
 * Known truth: a chain of multiplications, each waiting for the one before, as long as argument 1 says times
 * PER_MILLE / 1000.
 *
 * PER_MILLE is read as data, so that two loops that differ in it have the same instructions at the same
 * addresses: alignment can make one loop slower than another by more than the slowdown that is planted.
 */
#include <stdlib.h>

#ifndef PER_MILLE
#define PER_MILLE 1000
#endif

static volatile const unsigned long per_mille = PER_MILLE;

int main(int argc, char **argv) {
    unsigned long times = argc > 1 ? strtoul(argv[1], 0, 10) / 1000 * per_mille : 0, x = 1;
    for (; times > 0; times--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x)); /* or the whole chain is folded into nothing */
    }
    return 0;
}
