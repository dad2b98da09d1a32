/*
 * seconds: 120
 *
 * Code that is shared, replaced, moved, or written again after it ran: it is always the program's own bytes
 * that run, and that the program and the file see.
 */
#include "transcript.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

enum {
    WRITE = PROT_READ | PROT_WRITE,
    CODE = PROT_READ | PROT_EXEC,
    ALL = PROT_READ | PROT_WRITE | PROT_EXEC,
    PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS,
    SIZE = 4096
};

/* Calls umask(mask): after a far move, whose instructions between are the stub's, too; and before a
 * comparison. */
static const unsigned char moved[] = {0xb8, 0x5f, 0, 0, 0x40, 0xbf, 0x11, 0, 0, 0, 0x0f, 0x05, 0xc3};
static const unsigned char compared[] = {0xbf, 0x11, 0,    0,    0,    0xb8, 0x5f, 0,    0,    0x40, 0xeb, 0,
                                         0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0x19, 0xc0, 0xc3};
enum { MOVED_MASK = 6, COMPARED_MASK = 1, COMPARED_LIMIT = 16 };

typedef int function(void);
static int run(const void *code) {
    int result = 0;
    for (int i = 0; i < 16; i++) /* twelve traps make a page worth rewriting */
        result = ((function *)code)();
    return result;
}
static int mask_of(const void *code) {
    run(code);
    return umask(0);
}

static void file_is_left_alone(void) {
    say("a file's own code");
    int file = memfd_create("code", 0);
    ftruncate(file, 2 * SIZE);
    pwrite(file, moved, sizeof moved, 64);
    unsigned char before[2 * SIZE], after[2 * SIZE];
    pread(file, before, sizeof before, 0);
#define CALLED(what, page)                                                                                   \
    do {                                                                                                     \
        unsigned char *place = (page);                                                                       \
        int mask = mask_of(place + 64);                                                                      \
        pread(file, after, sizeof after, 0);                                                                 \
        say("%s: mask %#x, file %s", what, mask, memcmp(before, after, sizeof after) ? "changed" : "same");  \
    } while (0)
    unsigned char *a = mmap(NULL, SIZE, WRITE, MAP_SHARED, file, 0);
    mprotect(a, SIZE, CODE);
    CALLED("mmap, mprotect", a);
    unsigned char *b = mmap(NULL, SIZE, CODE, MAP_SHARED, file, 0);
    CALLED("mmap", b);
    unsigned char *c = mmap(NULL, SIZE, WRITE, MAP_SHARED, file, 0);
    c = mremap(c, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
    mprotect(c, 2 * SIZE, CODE);
    CALLED("mmap, mremap, mprotect", c);
    unsigned char *place = mmap(NULL, 2 * SIZE, PROT_NONE, PRIVATE, -1, 0);
    c = mremap(c, 2 * SIZE, 2 * SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    mprotect(c, 2 * SIZE, WRITE);
    mprotect(c, 2 * SIZE, CODE);
    CALLED("mmap, mprotect, mremap, mprotect", c);
    unsigned char *d = mmap(NULL, SIZE, CODE, MAP_PRIVATE, file, 0);
    CALLED("private", d);
    unsigned char *two = mmap(NULL, 2 * SIZE, CODE, MAP_PRIVATE, file, 0);
    CALLED("private, two pages", two);
    two = mremap(two, 2 * SIZE, 4 * SIZE, MREMAP_MAYMOVE);
    CALLED("private, mremap", two);
    d = mmap(d, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
    mprotect(d, SIZE, CODE);
    CALLED("shared over it", d);
    unsigned char *e = mremap(a, 0, SIZE, MREMAP_MAYMOVE);
    mprotect(e, SIZE, WRITE);
    mprotect(e, SIZE, CODE);
    CALLED("a second of it", e);
    unsigned char *f = mmap(NULL, SIZE, WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memcpy(f, moved, sizeof moved);
    mprotect(f, SIZE, CODE);
    HEX(mask_of(f));
    IS(memcmp(f, moved, sizeof moved) == 0);
    int id = shmget(IPC_PRIVATE, SIZE, 0700);
    unsigned char *g = shmat(id, NULL, 0);
    memcpy(g, moved, sizeof moved);
    mprotect(g, SIZE, CODE);
    HEX(mask_of(g));
    IS(memcmp(g, moved, sizeof moved) == 0);
    shmctl(id, IPC_RMID, NULL);
    close(file);
}

static void other_code(const char *what, const unsigned char *code, size_t size, int mask) {
    unsigned char second[64];
    memcpy(second, code, size);
    second[mask] = 0x12;
    say("%s", what);
    unsigned char *page = mmap(NULL, SIZE, WRITE, PRIVATE, -1, 0);
    memcpy(page + 64, code, size);
    mprotect(page, SIZE, CODE);
    HEX(mask_of(page + 64));
    mprotect(page, SIZE, WRITE);
    IS(memcmp(page + 64, code, size) == 0);
    page[64 + mask] = 0x12;
    mprotect(page, SIZE, CODE);
    HEX(mask_of(page + 64));
    munmap(page, SIZE);
    page = mmap(page, SIZE, WRITE, PRIVATE | MAP_FIXED, -1, 0);
    memcpy(page + 64, code, size);
    mprotect(page, SIZE, CODE);
    HEX(mask_of(page + 64));
    page = mmap(page, SIZE, WRITE, PRIVATE | MAP_FIXED, -1, 0);
    memcpy(page + 64, second, size);
    mprotect(page, SIZE, CODE);
    HEX(mask_of(page + 64));
    /* Moved, and onto other code. */
    unsigned char *other = mmap(NULL, SIZE, WRITE, PRIVATE, -1, 0);
    memcpy(other + 64, code, size);
    mprotect(other, SIZE, CODE);
    HEX(mask_of(other + 64));
    unsigned char *there = mremap(page, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
    HEX(mask_of(there + 64));
    IS(memcmp(there + 64, second, size) == 0);
    munmap(there, SIZE);
}

/* More sites, one after another, than can be rewritten at once. */
static void many(int rounds) {
    int wrong = 0;
    for (int round = 0; round < rounds; round++) {
        unsigned char *page = mmap(NULL, SIZE, WRITE, PRIVATE, -1, 0);
        unsigned char *code = page + 64 + round % 1024;
        memcpy(code, moved, sizeof moved);
        code[MOVED_MASK] = (unsigned char)(round & 0x3f);
        mprotect(page, SIZE, CODE);
        wrong += mask_of(code) != (round & 0x3f);
        munmap(page, SIZE);
    }
    VALUE(wrong);
}

static unsigned char *both;
static volatile int over;
static void *caller(void *nothing) {
    /* getpid, by forty sites; a page that is being written still holds them. */
    long wrong = 0;
    while (!over)
        for (int i = 0; i < 40; i++)
            wrong += ((function *)(both + i * 64))() != getpid();
    (void)nothing;
    return (void *)wrong;
}
static void *sleeper(void *end) {
    char byte;
    read(*(int *)end, &byte, 1);
    return NULL;
}

int main(void) {
    file_is_left_alone();
    other_code("instructions between", moved, sizeof moved, MOVED_MASK);
    other_code("a comparison", compared, sizeof compared, COMPARED_MASK);

    say("more than can be rewritten at once");
    many(6000);

    say("written by one thread while another executes it");
    static const unsigned char code[] = {0xb8, 0x27, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
    both = mmap(NULL, SIZE, ALL, PRIVATE, -1, 0);
    for (int i = 0; i < 40; i++)
        memcpy(both + i * 64, code, sizeof code);
    pthread_t thread, asleep;
    int ends[2];
    pipe(ends);
    pthread_create(&thread, NULL, caller, NULL);
    for (int i = 0; i < 3000; i++) {
        mprotect(both, SIZE, CODE);
        if (i % 8 == 0)
            sched_yield();
        mprotect(both, SIZE, ALL);
        both[SIZE - 1]++;
    }
    over = 1;
    void *wrong;
    pthread_join(thread, &wrong);
    VALUE((long)wrong);
    say("the same many, while another thread sleeps");
    pthread_create(&asleep, NULL, sleeper, &ends[0]);
    many(6000);
    write(ends[1], "", 1);
    pthread_join(asleep, NULL);
    return 0;
}
