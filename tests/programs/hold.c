/*
 * Memory that grows and shrinks by known steps, each written to in full and held for a while.
 *
 *   hold [MS] STEP...    +N, -N   allocates or frees N MiB with malloc
 *                        mN, u    maps N MiB, unmaps them
 *                        sN       puts N MiB on the stack of a thread that waits, and ends
 *                        fN       forks a child that changes N MiB of what it was given, and ends
 *                        aNAME    writes a mark
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "widthwise-marks.h"

/* Blocks of 64 KiB: below glibc's M_MMAP_THRESHOLD, so that they lie in the heap, one after the other. */
enum { MIB = 1 << 20, BLOCK = 64 << 10, BLOCKS = MIB / BLOCK, MOST = 1024 * BLOCKS };

static char *blocks[MOST];
static int held;
static char *mapped;
static size_t mapped_size;
static long pause_ms = 300;

static void hold(void) {
    struct timespec time = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    while (nanosleep(&time, &time) < 0)
        continue;
}

static void *sit_on(void *argument) {
    size_t size = (size_t)argument;
    volatile char *stack = __builtin_alloca(size);
    for (size_t at = 0; at < size; at += 4096)
        stack[at] = 1;
    hold();
    return NULL;
}

static void step(const char *text) {
    int number = atoi(text + 1);
    pthread_t thread;
    pthread_attr_t attributes;
    switch (*text) {
    case '+':
        for (int i = 0; i < number * BLOCKS && held < MOST; i++)
            memset(blocks[held++] = malloc(BLOCK), 1, BLOCK);
        break;
    case '-':
        for (int i = 0; i < number * BLOCKS && held > 0; i++)
            free(blocks[--held]);
        break;
    case 'm':
        mapped_size = (size_t)number * MIB;
        mapped = mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(mapped, 1, mapped_size);
        break;
    case 'u':
        munmap(mapped, mapped_size);
        break;
    case 's':
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, (size_t)(number + 1) * MIB);
        pthread_create(&thread, &attributes, sit_on, (void *)((size_t)number * MIB));
        pthread_join(thread, NULL);
        return;
    case 'a':
        widthwise_mark(text + 1);
        return;
    case 'f':
        if (fork() == 0) {
            for (int i = 0; i < number * BLOCKS && i < held; i++)
                memset(blocks[i], 2, BLOCK);
            hold();
            _exit(0);
        }
        wait(NULL);
        return;
    default:
        abort();
    }
    hold();
}

int main(int count, char **words) {
    for (int i = 1; i < count; i++)
        if (i == 1 && *words[1] >= '0' && *words[1] <= '9')
            pause_ms = atol(words[1]);
        else
            step(words[i]);
    puts("held");
    return 0;
}
