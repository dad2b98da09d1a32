/* Known truth for how long blocks live: 3000 that are given back at once, 3000 that live through a nap of
 * 50 ms, 3000 through two of them, 3000, the largest, to the end; and a realloc that has no room ends no
 * life. With an argument, ten that live through a nap, between two readings of the recorder's clock. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 3000 };

static void *volatile one;

static void nap(void) {
    struct timespec rest = {.tv_nsec = 50000000};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

static void temporary(void) {
    for (int i = 0; i < MANY; i++) {
        one = malloc(16);
        free(one);
    }
}

static void ask(void **blocks, size_t size) {
    for (int i = 0; i < MANY; i++) {
        blocks[i] = malloc(size);
    }
}

static void give_back(void **blocks) {
    for (int i = 0; i < MANY; i++) {
        free(blocks[i]);
    }
}

static void one_nap(void) {
    static void *blocks[MANY];
    ask(blocks, 32);
    nap();
    give_back(blocks);
}

static void two_naps(void) {
    static void *blocks[MANY];
    ask(blocks, 32);
    nap();
    nap();
    give_back(blocks);
}

static void for_good(void) {
    static void *blocks[MANY];
    ask(blocks, 48);
    if (realloc(blocks[0], SIZE_MAX - 8192) != NULL) {
        _exit(9);
    }
}

static void few(void) {
    void *blocks[10];
    for (int i = 0; i < 10; i++) {
        blocks[i] = malloc(64);
    }
    nap();
    for (int i = 0; i < 10; i++) {
        free(blocks[i]);
    }
}

int main(int count, char **words) {
    (void)words;
    if (count > 1) {
        temporary();
        few();
        temporary();
        return 0;
    }
    temporary();
    one_nap();
    two_naps();
    for_good();
    return 0;
}
