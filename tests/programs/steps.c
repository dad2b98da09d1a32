/* Known truth: a loop of exactly STEPS iterations (of the environment; a million if it is not there), two
 * instructions each, one of them a branch. The rest of the program is the same whatever their number. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *asked = getenv("STEPS");
    unsigned steps = asked ? (unsigned)strtoul(asked, 0, 10) : 1000000;
    __asm__ volatile("1: decl %0\n\tjnz 1b" : "+r"(steps) : : "cc");
    puts("done");
    return 0;
}
