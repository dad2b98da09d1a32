/* johansson-2006, 4.1 and 5: a call through a pointer, a million times by default, and a 64-bit constant. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int call(int (*function)(void)) { return function(); }
__attribute__((noinline)) unsigned long constant(void) { return (unsigned long)0x123456789abcdef0ull; }
static int zero(void) { return 0; }
int main(int count, char **words) {
    long calls = count > 1 ? atol(words[1]) : 1000000;
    int sum = 0;
    for (long i = 0; i < calls; i++)
        sum += call(zero);
    printf("%d %d\n", sum, (int)(constant() & 0xf));
    return 0;
}
