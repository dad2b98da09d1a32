/* Known truth: computes for MS milliseconds (argument 1) of CPU time while it holds a lock of the whole
 * machine on the file LOCK (argument 2), and a millisecond more if it had to wait for the lock. Two of them
 * take a little more than twice as long as one: the millisecond is more than the start of a process, which
 * the two share. So the throughput of two is not higher than that of one. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

int main(int argc, char **argv) {
    long wanted = argc > 1 ? atol(argv[1]) : 0;
    int lock = argc > 2 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
    if (lock < 0) {
        return 1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        wanted++;
        if (flock(lock, LOCK_EX) < 0) {
            return 1;
        }
    }
    struct timespec used;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < wanted);
    return 0;
}
