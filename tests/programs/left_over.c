/* left_over HOW MS: uses MS milliseconds of CPU time. here: itself. work: in a child that it does not wait
 * for. sleep: in a child that it waits for until then, and that sleeps on. daemon CHILDREN: each of these,
 * which it waits for, beside a daemon that sleeps. busy-daemon CHILDREN: one that works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void use(double ms) {
    struct timespec now;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 < ms);
}

/* A process in a session of its own, whose parent has ended. */
static void start_daemon(int works) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int descriptor = 0; descriptor < 64; descriptor++)
                close(descriptor);
            if (works)
                use(60e3);
            sleep(100);
        }
        _exit(0);
    }
    wait(NULL);
}

static int beside_daemon(int works, int children, double ms) {
    start_daemon(works);
    for (int child = 0; child < children; child++)
        if (fork() == 0) {
            use(ms);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
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
    if (strstr(argv[1], "daemon") != NULL)
        return beside_daemon(strcmp(argv[1], "daemon") != 0, argc > 3 ? atoi(argv[3]) : 1, ms);
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
