/* Known truth: computes for MS milliseconds (argument 1) of CPU time while it holds a lock of the whole
 * machine on the file LOCK (argument 2). Two of them take twice as long as one, so that their throughput is
 * that of one. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

int main(int argc, char **argv) {
    long wanted = argc > 1 ? atol(argv[1]) : 0;
    int lock = argc > 2 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
    if (lock < 0 || flock(lock, LOCK_EX) < 0) {
        return 1;
    }
    struct timespec used;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < wanted);
    return 0;
}
