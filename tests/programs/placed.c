// A program whose speed depends on where its function lies: it does as much work again for each 16 bytes by
// which the function's address misses a cache line. -DSHIFT=3 changes nothing but this place, in a build with
// one layout.

#include <stdint.h>
#include <stdlib.h>

#ifndef SHIFT
#define SHIFT 0
#endif
#define TEXT(value) #value
#define VALUE(macro) TEXT(macro)

__asm__(".text\n.p2align 6\n.skip 64 + 16 * " VALUE(SHIFT) "\n");

__attribute__((noinline)) uint64_t work(uint64_t steps) {
    uint64_t state = 1;
    for (uint64_t i = 0; i < steps; i++)
        state = state * 6364136223846793005u + 1442695040888963407u;
    return state;
}

int main(int count, char **words) {
    uint64_t steps = count > 1 ? strtoull(words[1], NULL, 10) : 1;
    uint64_t place = (uintptr_t)work / 16 % 4;
    volatile uint64_t kept = work(steps * (1 + place));
    (void)kept;
    return 0;
}
