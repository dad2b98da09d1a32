/*
 * built: static, dynamic, static-pie
 *
 * brk: the raw call and glibc's, forward, back and out of bounds.
 */
#include "transcript.h"
#include <sys/mman.h>

static uintptr_t raw_brk(uintptr_t to) {
    uintptr_t answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_brk), "D"(to) : "rcx", "r11", "memory");
    return answer;
}

int main(void) {
    uintptr_t first = raw_brk(0);
    IS(first != 0);
    IS(raw_brk(first + 100) == first + 100);
    memset((void *)first, 1, 100);
    IS(raw_brk(first + (1 << 20)) == first + (1 << 20));
    char *top = (char *)first + (1 << 20) - 1;
    IS(*top == 0);
    *top = 7;
    ((char *)first)[200] = 9;
    IS(raw_brk(first + 100) == first + 100);
    IS(raw_brk(first + (1 << 20)) == first + (1 << 20));
    IS(*top == 0);
    IS(((char *)first)[200] == 9 || ((char *)first)[200] == 0);
    IS(raw_brk(1 << 16) == first + (1 << 20));
    IS(raw_brk(8) == first + (1 << 20));
    IS(raw_brk(0xfffff000) == first + (1 << 20));
    IS(raw_brk((uintptr_t)0xffffffff) == first + (1 << 20));
    /* Something in the way. */
    void *block = mmap((void *)((first + (4 << 20)) & ~4095u), 4096, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    IS(block != MAP_FAILED);
    IS(raw_brk(first + (3 << 20)) == first + (3 << 20));
    IS(raw_brk(first + (5 << 20)) == first + (3 << 20));
    munmap(block, 4096);
    IS(raw_brk(first + (5 << 20)) == first + (5 << 20));
    IS(raw_brk(first) == first);
    void *before = sbrk(0);
    IS(sbrk(4096) == before);
    IS(sbrk(0) == (char *)before + 4096);
    RESULT(brk((char *)before + 8192));
    RESULT(brk((void *)8));
    IS(sbrk(-8192) == (char *)before + 8192);
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[300];
    int heaps = 0;
    sbrk(40960);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]")) {
            unsigned long from, to;
            sscanf(line, "%lx-%lx", &from, &to);
            heaps += (uintptr_t)before >= from && (uintptr_t)before <= to;
        }
    IS(heaps <= 2);
    void *now = sbrk(0);
    pid_t child = fork();
    if (child == 0) {
        IS(sbrk(4096) == now);
        _exit(0);
    }
    ended("a child's own", child);
    IS(sbrk(0) == now);
    char *many[1000];
    for (int i = 0; i < 1000; i++)
        memset(many[i] = malloc(i * 37 + 1), i, i * 37 + 1);
    int wrong = 0;
    for (int i = 0; i < 1000; i++)
        wrong += many[i][i * 37] != (char)i, free(many[i]);
    VALUE(wrong);
    return 0;
}
