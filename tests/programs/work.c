/* Known truth: N million steps (argument 1) of arithmetic, which an optimising compiler makes several times
 * cheaper; `unlikely` is never called, which only a profile can tell. */
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1000 };

__attribute__((noinline)) static unsigned pass(const unsigned *table, unsigned by) {
    unsigned sum = 0;
    for (int i = 0; i < LENGTH; i++)
        sum += (table[i] ^ by) * 3u;
    return sum;
}

__attribute__((noinline)) static unsigned unlikely(unsigned state) {
    for (unsigned i = 0; i < 100; i++)
        state = state * 1664525u + i * state;
    return state;
}

int main(int argc, char **argv) {
    unsigned long passes = (argc > 1 ? strtoul(argv[1], 0, 10) : 1) * (1000000 / LENGTH);
    unsigned state = 1, table[LENGTH];
    for (unsigned i = 0; i < LENGTH; i++)
        table[i] = i * i;
    while (passes-- > 0) {
        state = pass(table, state);
        if (argc > 5)
            state = unlikely(state);
    }
    printf("%u\n", state);
    return 0;
}
