/*
 * Two threads, one call: the first makes it so often that its place is rewritten, and then makes its page
 * writable, so that the place is put back. Between its breakpoints `rewriting.c` stops it while it writes,
 * and asks the second thread to make the same call. Built for x32.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* getppid(), with the number in eax right before, in rax, with an instruction between, and loaded earlier,
 * before a comparison. */
static const unsigned char moved[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
static const unsigned char long_moved[] = {0x48, 0xc7, 0xc0, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
static const unsigned char between[] = {0xb8, 0x6e, 0, 0, 0x40, 0x31, 0xff, 0x0f, 0x05, 0xc3};
static const unsigned char compared[] = {0xb8, 0x6e, 0,    0,    0x40, 0xeb, 0,    0x0f, 0x05,
                                         0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0xf4};
/* `place`: of the first byte that is replaced. */
static const struct kind {
    const unsigned char *code;
    unsigned size, place;
} kinds[] = {{moved, sizeof moved, 0},
             {long_moved, sizeof long_moved, 0},
             {between, sizeof between, 0},
             {compared, sizeof compared, 7}};
enum { KINDS = sizeof kinds / sizeof *kinds, TRAPS = 12, DIRECTIONS = 2 };

static int (*volatile site)(void);
static volatile int asked, answered, right, ready;
static int parent;

static int call(void) { return ((int (*)(void))site)(); }

static void *other(void *nothing) {
    ready = 1;
    for (;;) {
        /* With no call of its own, in which it would wait for the runtime. */
        while (asked == answered)
            ;
        right = call() == parent;
        answered = asked;
    }
    return nothing;
}

/* Tells the tracer what is to be written next, and after how many steps of that to ask; what it answers:
 * whether there were as many. */
static int breakpoint(unsigned kind, unsigned steps, const unsigned char *at) {
    const volatile void *words[2] = {&asked, &answered};
    unsigned answer;
    __asm__ volatile("int3"
                     : "=a"(answer)
                     : "a"(kind), "b"(steps), "D"(words[0]), "S"(words[1]), "d"(at)
                     : "memory");
    return (int)answer;
}

int main(void) {
    pthread_t thread;
    int wrong = 0;
    parent = getppid();
    pthread_create(&thread, NULL, other, NULL);
    /* The calls that it begins with are over then. */
    while (!ready)
        ;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (unsigned direction = 0, steps = 1; direction < DIRECTIONS; steps++) {
            unsigned char *page =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(page, kinds[kind].code, kinds[kind].size);
            mprotect(page, 4096, PROT_READ | PROT_EXEC);
            site = (int (*)(void))page;
            int is_back = direction == 1, was_asked;
            right = 1;
            for (int i = 1; i < TRAPS; i++)
                call();
            if (is_back)
                call();
            breakpoint(2 * kind + direction, steps, page + kinds[kind].place);
            if (is_back)
                mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
            else
                call();
            was_asked = breakpoint(0, 0, NULL);
            wrong += !right || call() != parent;
            munmap(page, 4096);
            if (!was_asked) {
                direction++;
                steps = 0;
            }
        }
    }
    printf("wrong: %d\n", wrong);
    return wrong != 0;
}
