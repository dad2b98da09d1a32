/* spinning_children N MS FILE: N children use MS milliseconds of CPU time each, without system calls, and
 * start in turn. Their parent appends `PID MICROSECONDS` to the file for each, by wait4. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long turns;

/* How many turns take a millisecond. */
static unsigned long pace(void) {
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (turns = 0; turns < 10000000; turns++)
        ;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    return (unsigned long)(1e7 / ms);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    unsigned long end = pace() * strtoul(argv[2], 0, 10);
    for (long i = atol(argv[1]); i > 0; i--)
        if (fork() == 0) {
            for (turns = 0; turns < end; turns++)
                ;
            _exit(0);
        }
    FILE *file = fopen(argv[3], "a");
    struct rusage usage;
    for (int status, pid; (pid = wait4(-1, &status, 0, &usage)) > 0;) {
        long us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
                  usage.ru_stime.tv_usec;
        fprintf(file, "%d %ld\n", pid, us);
    }
    return fclose(file);
}
