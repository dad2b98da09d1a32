/* Known truth: COUNT children (argument 1), begun STAGGER ms apart (argument 4), each of which touches MIB of
 * its own (argument 2) and holds it for HOLD ms (argument 3). They share nothing. Argument 5: a file to which
 * each run appends two numbers: the most bytes that its children held at one moment lies between them.
 * Argument 6: `together` (no child ends before all have begun) or `apart` (the default). */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What is being given back is in `most` and not in `least`. */
static struct shared { atomic_long held[2], highest[2], begun; } * shared;
enum { LEAST, MOST };

static void pause_for(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, 0);
}

static void hold(int which, long bytes) {
    long now = atomic_fetch_add(&shared->held[which], bytes) + bytes,
         highest = atomic_load(&shared->highest[which]);
    while (now > highest && !atomic_compare_exchange_weak(&shared->highest[which], &highest, now))
        ;
}

static void child(long bytes, long milliseconds, long wait_for) {
    char *memory = mmap(0, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; at < bytes; at += 4096) {
        hold(MOST, 4096);
        memory[at] = 1;
        hold(LEAST, 4096);
    }
    atomic_fetch_add(&shared->begun, 1);
    while (atomic_load(&shared->begun) < wait_for)
        pause_for(1);
    pause_for(milliseconds);
    atomic_fetch_sub(&shared->held[LEAST], bytes);
    munmap(memory, (size_t)bytes);
    atomic_fetch_sub(&shared->held[MOST], bytes);
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    long count = atol(argv[1]), bytes = atol(argv[2]) << 20;
    long wait_for = argc > 6 && !strcmp(argv[6], "together") ? count : 0;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < count; i++) {
        if (fork() == 0)
            child(bytes, atol(argv[3]), wait_for);
        pause_for(atol(argv[4]));
    }
    while (wait(0) > 0)
        ;
    FILE *truths = fopen(argv[5], "a");
    if (!truths)
        return 1;
    fprintf(truths, "%ld %ld\n", atomic_load(&shared->highest[LEAST]), atomic_load(&shared->highest[MOST]));
    fclose(truths);
    return puts("held") < 0;
}
