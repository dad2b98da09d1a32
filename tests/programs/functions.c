/*
 * Functions of known cost: spin() executes exactly 2 000 002 instructions, touch() has 300 page faults,
 * guess() mispredicts half of its 100 000 branches. The program calls spin() once, a forked child once, and a
 * child that executes the program again once.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void spin(void);
__asm__(".text\n"
        ".globl spin\n"
        ".type spin, @function\n"
        "spin:\n"
        "mov $1000000, %ecx\n"
        "1: dec %ecx\n"
        "jnz 1b\n"
        "ret\n"
        ".size spin, .-spin\n");

__attribute__((noinline)) void touch(volatile char *pages) {
    for (int page = 0; page < 300; page++) {
        pages[page * 4096] = 1;
    }
}

__attribute__((noinline)) unsigned guess(void) {
    unsigned state = 1;
    unsigned taken = 0;
    for (int branch = 0; branch < 100000; branch++) {
        state = state * 1664525 + 1013904223;
        if (state >> 31) {
            __asm__ volatile("" : "+r"(taken));
            taken++;
        }
    }
    return taken;
}

int main(int count, char **words) {
    spin();
    if (count > 1) {
        return 0;
    }
    if (fork() == 0) {
        spin();
        _exit(0);
    }
    wait(NULL);
    if (fork() == 0) {
        execl(words[0], words[0], "again", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    wait(&status);
    void *pages = mmap(NULL, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return 1;
    }
    /* Each page alone, whatever the machine's setting of huge pages. */
    madvise(pages, 300 * 4096, MADV_NOHUGEPAGE);
    touch(pages);
    printf("%u\n", guess());
    return status;
}
