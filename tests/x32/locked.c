/*
 * Text of several 64 KiB, with a call in each page, whose memory is locked, unlocked, written and taken away
 * in pieces that are none of the runtime's: the calls are right, and so are the bytes that the program reads.
 */
#include "transcript.h"

#include <fcntl.h>
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 64
#define PLACE 100 /* of the call in its page */
#define OFTEN 16

/* getppid() and getpid() */
static const unsigned char parents[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
static const unsigned char own[] = {0xb8, 0x27, 0, 0, 0x40, 0x0f, 0x05, 0xc3};

static unsigned char wanted[PAGES * PAGE];
static unsigned char *text;
static int file;

/* Of the pages in [first, end): calls with the result that their code has. */
static int right(int first, int end) {
    int count = 0;
    for (int page = first; page < end; page++)
        for (int i = 0; i < OFTEN; i++) {
            unsigned char *at = text + page * PAGE + PLACE;
            int is_own = wanted[page * PAGE + PLACE + 1] == own[1];
            count += ((int (*)(void))at)() == (is_own ? getpid() : getppid());
        }
    return count;
}

static long locked_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

static void report(const char *what) {
    int count = right(0, PAGES);
    say("%s: %d of %d are right, %ld KiB locked", what, count, PAGES * OFTEN, locked_kib());
}

static void map_text(void) {
    static unsigned char *place;
    if (!place) {
        place = mmap(NULL, 2 * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        place = (unsigned char *)(((unsigned long)place + 0xffff) & ~0xffffUL);
    }
    text = mmap(place, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    memset(wanted, 0xcc, sizeof wanted);
    for (int page = 0; page < PAGES; page++)
        memcpy(wanted + page * PAGE + PLACE, parents, sizeof parents);
}

/* The pages become writable: their bytes, and from now on the other call. */
static void write_pages(int first, int end) {
    unsigned char *at = text + first * PAGE;
    size_t size = (size_t)(end - first) * PAGE;
    int result = mprotect(at, size, PROT_READ | PROT_WRITE);
    int same = memcmp(at, wanted + first * PAGE, size) == 0;
    for (int page = first; page < end; page++) {
        memcpy(wanted + page * PAGE + PLACE, own, sizeof own);
        memcpy(text + page * PAGE + PLACE, own, sizeof own);
    }
    result |= mprotect(at, size, PROT_READ | PROT_EXEC);
    say("pages %d to %d written: %d, own bytes %d", first, end, result, same);
}

static void in_child(const char *what) {
    pid_t child = fork();
    if (child == 0) {
        report(what);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    print_ended(what, status);
}

int main(void) {
    file = memfd_create("text", 0);
    map_text(); /* beyond the end of the file, as yet */
    if (file < 0 || write(file, wanted, sizeof wanted) != sizeof wanted)
        return 1;

    report("not locked");
    write_pages(10, 22);
    report("written");
    RESULT(mlock(text + 10 * PAGE, 12 * PAGE));
    report("12 pages locked");
    write_pages(15, 35);
    report("written across");
    RESULT(munlock(text + 12 * PAGE, 4 * PAGE));
    report("4 of them unlocked");
    in_child("a child");
    RESULT(munlock(text, PAGES * PAGE));
    report("unlocked");

    map_text();
    report("mapped again");
    RESULT(mlock2(text + 28 * PAGE, 12 * PAGE, MLOCK_ONFAULT));
    report("12 pages locked when touched");
    write_pages(30, 34);
    in_child("a child of locked text");
    RESULT(munmap(text + 36 * PAGE, 8 * PAGE));
    say("around what is gone: %d of %d are right", right(0, 36) + right(44, PAGES), (PAGES - 8) * OFTEN);
    RESULT(munlock(text, 36 * PAGE));

    map_text();
    mmap(text + 26 * PAGE, 12 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_LOCKED, file,
         26 * PAGE);
    report("12 pages mapped and locked");
    write_pages(0, PAGES);
    report("all written");
    RESULT(munlock(text, PAGES * PAGE));
    report("all unlocked");
    static unsigned char now[sizeof wanted];
    map_text();
    say("the file is as it was: %d",
        pread(file, now, sizeof now, 0) == sizeof now && memcmp(now, wanted, sizeof now) == 0);
    return 0;
}
