/* Known truth: a team of N (argument 1) OpenMP threads computes for MS milliseconds (argument 2) of CPU time
 * each, twice, with a part between that the main thread computes alone. At its end it appends its CPU time to
 * FILE (argument 3), in nanoseconds: `cpu N`. With OMP_WAIT_POLICY=active the others use CPU time while they
 * wait. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void compute(double milliseconds) {
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + (long long)(milliseconds * 1e6);
    while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    int team = atoi(argv[1]);
    double each = atof(argv[2]);
    for (int part = 0; part < 2; part++) {
#pragma omp parallel num_threads(team)
        compute(each);
        if (part == 0) {
            compute(each / 2);
        }
    }
    FILE *file = fopen(argv[3], "a");
    if (file == NULL) {
        return 1;
    }
    fprintf(file, "cpu %lld\n", now(CLOCK_PROCESS_CPUTIME_ID));
    return fclose(file) != 0;
}
