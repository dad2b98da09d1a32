/* Known truth: what it asks for is the same in every run (fixed), or depends on who comes first (threads), on
 * where it is loaded (addresses; coin: on one bit of that), or on the clock (time). With MORE every other
 * block of `fixed` has a fifth more bytes, and every block of `threads` MORE times as many. `held` asks for
 * 16 MB and stays for a while; with HALF it writes to half of that alone. `phases` asks for 20 MB, stays for
 * STAY ms, gives all but the last block back, which keeps the rest in the heap, and stays for 400 ms. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef MORE
#define MORE 1
#endif

static char *filled(size_t size) {
    char *block = malloc(size);
    if (block == NULL) {
        exit(1);
    }
    return memset(block, 1, size);
}

static void fixed(void) {
    for (int i = 0; i < 2000; i++) {
        filled(1000);
        filled(MORE > 1 ? 1200 : 1000); /* OTHER */
    }
}

static void *come_and_go(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed;
    for (int round = 0; round < 20; round++) {
        char *blocks[100];
        for (int i = 0; i < 100; i++) {
            random = random * 1664525 + 1013904223;
            blocks[i] = filled((1000 + (random >> 20)) * MORE);
        }
        for (int i = 0; i < 100; i++) {
            free(blocks[i]);
        }
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    for (uintptr_t i = 0; i < 8; i++) {
        if (pthread_create(&all[i], NULL, come_and_go, (void *)(i + 1))) {
            exit(1);
        }
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(all[i], NULL);
    }
}

static void by_number(unsigned random) {
    for (int i = 0; i < 50; i++) {
        random = random * 1664525 + 1013904223;
        char *block = filled(random >> 15);
        if (random & 0x10000) {
            free(block);
        }
    }
}

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void held(void) {
    for (int i = 0; i < 16; i++) {
        char *block = malloc(1 << 20);
        if (block == NULL) {
            exit(1);
        }
#ifdef HALF
        memset(block, 1, 1 << 19);
#else
        memset(block, 1, 1 << 20);
#endif
    }
    nap(800);
}

#ifndef STAY
#define STAY 200
#endif

static void phases(void) {
    char *blocks[5000];
    for (int i = 0; i < 5000; i++) {
        blocks[i] = filled(4000);
    }
    nap(STAY);
    for (int i = 0; i < 4999; i++) {
        free(blocks[i]);
    }
    nap(400);
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "fixed";
    unsigned place = (unsigned)((uintptr_t)&filled >> 12);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (strcmp(mode, "threads") == 0) {
        threads();
    } else if (strcmp(mode, "addresses") == 0) {
        by_number(place);
    } else if (strcmp(mode, "coin") == 0) {
        filled(place & 1 ? 3 << 20 : 2 << 20);
    } else if (strcmp(mode, "time") == 0) {
        by_number((unsigned)now.tv_nsec);
    } else if (strcmp(mode, "held") == 0) {
        held();
    } else if (strcmp(mode, "phases") == 0) {
        phases();
    } else {
        fixed();
    }
    puts("done");
    return 0;
}
