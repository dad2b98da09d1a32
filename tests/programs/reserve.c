/* Known truth: reserves N MiB (argument 1) of address space and touches none of it. */
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    unsigned long bytes = argc > 1 ? strtoul(argv[1], 0, 10) << 20 : 0;
    return bytes > 0 &&
           mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED;
}
