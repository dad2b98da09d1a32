/* A program that may have little memory (RLIMIT_AS), and takes all of it.
 *
 *   memory_limit MEGABYTES     it may have so much more than it has when main has begun
 *   memory_limit 0 BLOCKS      there is no limit, but to what fill() takes
 *
 * It starts 16 threads, which wait. It asks for blocks of 64 KiB in fill() until there are no more, and gives
 * 16 of them back. Then each thread asks for 100 blocks in starve(), its first, for which the 16 are enough.
 * It prints how many blocks fill() and starve() got. Nothing else of its own asks for memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define THREADS 16

static void **filled; /* each block points to the one before it */
static unsigned got;
static void *volatile kept;
static pthread_barrier_t is_full, is_over;

static void check(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "memory_limit: %s: errno %d\n", what, errno);
        _exit(9);
    }
}

static size_t has(void) {
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    check(file >= 0 && read(file, text, sizeof text - 1) > 0, "/proc/self/statm");
    close(file);
    return (size_t)atol(text) * 4096;
}

__attribute__((noinline)) static unsigned fill(unsigned most) {
    unsigned count = 0;
    for (void **block; count < most && (block = malloc(65536)) != NULL; count++) {
        *block = (void *)filled;
        filled = block;
    }
    return count;
}

__attribute__((noinline)) static void *starve(void *nothing) {
    pthread_barrier_wait(&is_full);
    for (size_t i = 0; i < 100; i++) {
        kept = malloc(1 + i);
        __atomic_fetch_add(&got, kept != NULL, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&is_over); /* so that none has what another has left */
    return nothing;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    check(count > 1, "no number");
    pthread_barrier_init(&is_full, NULL, THREADS + 1);
    pthread_barrier_init(&is_over, NULL, THREADS);
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* what is given back stays in the heap */
    mallopt(M_ARENA_MAX, 1);            /* an arena for a thread needs more than there is */
    for (int i = 0; i < THREADS; i++) {
        check(pthread_create(&threads[i], NULL, starve, NULL) == 0, "pthread_create");
    }
    if (atol(words[1]) != 0) {
        size_t whole = has() + ((size_t)atol(words[1]) << 20);
        struct rlimit limit = {whole, whole};
        check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    }
    unsigned blocks = fill(count > 2 ? (unsigned)atol(words[2]) : ~0U);
    for (int i = 0; i < 16; i++) {
        void **block = filled;
        check(block != NULL, "too little memory");
        filled = *block;
        free(block);
    }
    pthread_barrier_wait(&is_full);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    char text[64];
    int length = snprintf(text, sizeof text, "%u %u\n", blocks, got);
    check(write(1, text, (size_t)length) == length, "write");
    return 0;
}
