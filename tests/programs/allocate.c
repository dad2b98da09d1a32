/* Known truth: touches exactly N MiB (argument 1), one byte in each page. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    unsigned long bytes = argc > 1 ? strtoul(argv[1], 0, 10) << 20 : 0;
    if (bytes > 0) {
        volatile char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return 1;
        for (unsigned long at = 0; at < bytes; at += 4096)
            memory[at] = 1;
    }
    puts("touched");
    return 0;
}
