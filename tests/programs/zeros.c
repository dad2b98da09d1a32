// Holds 16 MiB of variables that begin as zeros; or, with -DBEHIND, 16 MiB that are mapped right behind a
// writable page of its own file, as if they were such variables.
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, SIZE = 16 << 20 };

#ifndef BEHIND
static char variables[SIZE];
#endif

int main(void) {
#ifdef BEHIND
    char *room = mmap(NULL, PAGE + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = open("/proc/self/exe", O_RDONLY);
    if (room == MAP_FAILED || file < 0)
        return 1;
    char *data = mmap(room, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
    char *behind =
        mmap(room + PAGE, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (data != room || behind != room + PAGE)
        return 1;
    *data = 1;
    memset(behind, 1, SIZE);
#else
    memset(variables, 1, SIZE);
#endif
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    return 0;
}
