/* Known truth: sleeps N times (argument 1) for M milliseconds (argument 2): N voluntary switches, N*M ms of
 * wall time. */
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    long times = argc > 1 ? atol(argv[1]) : 1, milliseconds = argc > 2 ? atol(argv[2]) : 10;
    struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (times-- > 0)
        nanosleep(&nap, 0);
    return 0;
}
