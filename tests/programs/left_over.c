/* left_over HOW MS: uses MS milliseconds of CPU time. here: itself. work: in a child that it does not wait
 * for. sleep: in a child that it waits for until then, and that sleeps on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void use(double ms) {
    struct timespec now;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 < ms);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    double ms = atof(argv[2]);
    int ready[2];
    if (strcmp(argv[1], "here") == 0) {
        use(ms);
        return 0;
    }
    if (pipe(ready) != 0)
        return 1;
    int sleeps = strcmp(argv[1], "sleep") == 0;
    if (fork() == 0) {
        setsid();
        if (sleeps)
            use(ms);
        if (write(ready[1], "r", 1) != 1)
            return 1;
        if (!sleeps)
            use(ms);
        else
            sleep(100);
        return 0;
    }
    char byte;
    return read(ready[0], &byte, 1) != 1;
}
