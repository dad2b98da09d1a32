/* PASSES times: reads a byte of each of LINES cache lines, and executes 2 MiB of code if CODE is set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, MOST = 1 << 21 };
static volatile char block[MOST] __attribute__((aligned(4096)));

__attribute__((noinline)) static void code(void) {
    __asm__ volatile(".balign 4096\n\t.rept 262144\n\t.byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n\t.endr");
}

int main(void) {
    long passes = atol(getenv("PASSES")), lines = atol(getenv("LINES"));
    int has_code = atoi(getenv("CODE")), sum = 0;
    memset((char *)block, 1, sizeof block);
    for (long pass = 0; pass < passes; pass++) {
        for (long line = 0; line < lines; line++)
            sum += block[line * LINE];
        if (has_code)
            code();
    }
    printf("done %d\n", sum > 0 && passes > 0);
    return 0;
}
