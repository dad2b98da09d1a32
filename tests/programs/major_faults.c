/*
 * Known truth: LEAST to MOST major faults, by chance, if both are given to the compiler; else none. It has
 * the pages of the file PATH (argument 1) dropped from memory, and touches so many of them, which the kernel
 * has to read then. With `make` as argument 2 it writes the file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MOST
#define LEAST 0
#define MOST 0
#endif

/* Far apart, so that reading one page brings no other along. */
enum { APART = 256 << 10, SIZE = 64 * APART };

static int make(int file) {
    static char block[APART];
    for (int i = 0; i < SIZE / APART; i++)
        if (write(file, block, sizeof block) != sizeof block)
            return 1;
    return fsync(file) != 0;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0)
        return 3;
    if (argc > 2 && strcmp(argv[2], "make") == 0)
        return make(file);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int faults = LEAST + (int)(now.tv_nsec / 1000 % (MOST - LEAST + 1));
    volatile char *pages = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
    if (pages == MAP_FAILED || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        return 4;
    madvise((void *)pages, SIZE, MADV_RANDOM);
    for (int i = 0; i < faults; i++)
        (void)pages[i * APART];
    return 0;
}
