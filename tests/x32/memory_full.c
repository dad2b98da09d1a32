/*
 * seconds: 180
 *
 * The address space ends at 4 GiB: it can be filled, and nothing breaks when it is full.
 */
#include "transcript.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(void) {
    enum { STEP = 16 << 20 };
    static char *blocks[300];
    int count = 0;
    while (count < 300) {
        char *block = mmap(NULL, STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block == MAP_FAILED)
            break;
        blocks[count++] = block;
    }
    say("full: %s", error_name(errno));
    IS(count > 180 && count < 256);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (blocks[i] < blocks[j] + STEP && blocks[j] < blocks[i] + STEP)
                say("blocks overlap");
    for (size_t size = STEP / 2; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
    IS(malloc(1 << 20) == NULL);
    say("system calls still work: %d", getppid() > 0);
    pid_t child = fork();
    if (child == 0)
        _exit(6);
    ended("fork", child);
    for (int i = 0; i < count; i++)
        if (munmap(blocks[i], STEP) != 0)
            say("munmap: %s", error_name(errno));
    void *again = malloc(100 << 20);
    IS(again != NULL);
    free(again);

    say("limits");
    child = fork();
    if (child == 0) {
        struct rlimit limit = {64 << 20, 64 << 20};
        RESULT(setrlimit(RLIMIT_AS, &limit));
        SUCCESS((int)(intptr_t)mmap(NULL, 200 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        SUCCESS((int)(intptr_t)mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        IS(malloc(100 << 20) == NULL);
        _exit(0);
    }
    ended("RLIMIT_AS", child);
    child = fork();
    if (child == 0) {
        struct rlimit limit = {8 << 20, 8 << 20};
        RESULT(setrlimit(RLIMIT_DATA, &limit));
        SUCCESS(
            (int)(intptr_t)mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        SUCCESS((int)(intptr_t)mmap(NULL, 32 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        SUCCESS((int)(intptr_t)sbrk(32 << 20));
        _exit(0);
    }
    ended("RLIMIT_DATA", child);
    return 0;
}
