/* Known truth: process trees whose processes' own peaks say little of the tree's. Amounts are MiB, times ms.
 *
 * third MIB HOLD: touches MIB, forks a child that writes to a third of it and holds it: MIB * 4 / 3.
 * chain HOLD MIB...: touches the first MIB, holds it, executes itself for the others: the largest.
 * orphans COUNT MIB HOLD: a child forks COUNT children and ends at once; they all hold MIB at one time: COUNT
 * * MIB. turns MIB HOLD: touches MIB and gives it back, then a child does: MIB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_for(const char *milliseconds) {
    long time = atol(milliseconds);
    struct timespec spec = {time / 1000, time % 1000 * 1000000};
    nanosleep(&spec, 0);
}

static void write_to(char *memory, long bytes) {
    for (long at = 0; at < bytes; at += 4096)
        memory[at]++;
}

static char *touched(long bytes) {
    char *memory = mmap(0, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_to(memory, bytes);
    return memory;
}

/* Holds MIB and ends; all who have the pipe `ready` do so together. */
static void hold_together(long bytes, const char *milliseconds, int ready[2], int go[2]) {
    touched(bytes);
    char byte = 0;
    close(go[1]);
    if (write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0)
        pause_for(milliseconds);
    _exit(0);
}

static void orphans(char **argv) {
    long count = atol(argv[2]);
    int ready[2], go[2], ended[2];
    if (pipe(ready) || pipe(go) || pipe(ended))
        exit(1);
    if (fork() == 0) {
        for (long i = 0; i < count; i++)
            if (fork() == 0)
                hold_together(atol(argv[3]) << 20, argv[4], ready, go);
        _exit(0);
    }
    wait(0);
    close(ended[1]);
    char byte;
    for (long i = 0; i < count; i++)
        if (read(ready[0], &byte, 1) != 1)
            exit(1);
    close(go[1]);
    while (read(ended[0], &byte, 1) > 0)
        ;
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "third")) {
        long bytes = atol(argv[2]) << 20;
        char *memory = touched(bytes);
        if (fork() == 0) {
            write_to(memory, bytes / 3);
            pause_for(argv[3]);
            _exit(0);
        }
        wait(0);
    } else if (argc > 3 && !strcmp(argv[1], "chain")) {
        touched(atol(argv[3]) << 20);
        pause_for(argv[2]);
        if (argc > 4) {
            argv[3] = argv[2];
            argv[2] = argv[1];
            argv[1] = argv[0];
            execv("/proc/self/exe", argv + 1);
            return 1;
        }
    } else if (argc > 4 && !strcmp(argv[1], "orphans")) {
        orphans(argv);
    } else if (argc > 3 && !strcmp(argv[1], "turns")) {
        long bytes = atol(argv[2]) << 20;
        munmap(touched(bytes), (size_t)bytes);
        if (fork() == 0) {
            touched(bytes);
            pause_for(argv[3]);
            _exit(0);
        }
        wait(0);
    } else {
        return 2;
    }
    return puts("held") < 0;
}
