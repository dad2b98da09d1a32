/* Known truth: P minor faults (argument 1): a page is touched and given back, P times. */
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    long times = argc > 1 ? atol(argv[1]) : 0;
    volatile char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (times-- > 0) {
        *page = 1;
        madvise((void *)page, 4096, MADV_DONTNEED);
    }
    return 0;
}
