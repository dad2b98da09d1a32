// Known truth: read-only data of a program. Pointers that the dynamic linker relocates (.data.rel.ro),
// numbers
// (.rodata), a variable, and code of less than a page. All of it is resident before the
// first step. Each step allocates a block, so that memory is read several times.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 500000
#define STEPS 6
#define STEP (1 << 20)
// Microseconds.
#define PAUSE 300000

const char *const names[COUNT] = {[0 ... COUNT - 1] = "name"};
const long numbers[COUNT] = {[0 ... COUNT - 1] = 7};

int main(void) {
    const char *const volatile *name = names;
    const volatile long *number = numbers;
    unsigned long sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += (unsigned long)(name[i][0] + number[i]);
    for (int i = 0; i < STEPS; i++) {
        char *block = malloc(STEP);
        if (block == NULL)
            return 1;
        memset(block, 1, STEP);
        usleep(PAUSE);
    }
    printf("%lu\n", sum);
    return 0;
}
