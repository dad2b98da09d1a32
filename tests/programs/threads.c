/* Known truth: N threads (argument 1), each burning T ms of CPU time (argument 2). */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static long milliseconds;

static void *burn(void *argument) {
    struct timespec now;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
    return argument;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1;
    milliseconds = argc > 2 ? atol(argv[2]) : 0;
    pthread_t *threads = calloc((unsigned long)count, sizeof *threads);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], 0, burn, 0))
            return 1;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    return 0;
}
