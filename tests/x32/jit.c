/*
 * seconds: 120
 *
 * A compiler makes all of its text writable while another thread calls there for the first and second time:
 * nothing takes away what it has just asked for. And text that may be executed but not read stays so.
 */
#include "transcript.h"
#include <pthread.h>
#include <sys/mman.h>

enum { PAGES = 48, APART = 64, SIZE = PAGES * 4096, PLACES = SIZE / APART, ROUNDS = 4 };
enum { CODE = PROT_READ | PROT_EXEC, ALL = PROT_READ | PROT_WRITE | PROT_EXEC };

static unsigned char *text;
static volatile int at, over;
static volatile unsigned long lost;

/* getppid(), everywhere. */
static void write_code(void) {
    static const unsigned char code[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
    for (int i = 0; i < PLACES; i++)
        memcpy(text + i * APART, code, sizeof code);
}

static void *caller(void *nothing) {
    long wrong = 0;
    int parent = getppid();
    for (int round = 0; round < ROUNDS; round++)
        for (at = 0; at < PLACES; at++)
            for (int i = 0; i < 4; i++)
                wrong += ((int (*)(void))(text + at * APART))() != parent;
    over = 1;
    (void)nothing;
    return (void *)wrong;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    lost++;
    mprotect((void *)((uintptr_t)info->si_addr & ~4095UL), 4096, ALL);
}

/* The permissions that /proc/self/maps shows of an address. */
static void permissions(const char *what, const void *address) {
    char line[400], shown[8] = "none";
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file)) {
        unsigned long low, high;
        char found[8];
        if (sscanf(line, "%lx-%lx %7s", &low, &high, found) == 3 && (uintptr_t)address >= low &&
            (uintptr_t)address < high)
            strcpy(shown, found);
    }
    fclose(file);
    say("%s: %s", what, shown);
}

static void executed_only(void) {
    int parent = getppid(), wrong = 0;
    text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_code();
    unsigned char *page = text;
    mprotect(page, SIZE, PROT_EXEC);
    for (int i = 0; i < 24; i++)
        wrong += ((int (*)(void))page)() != parent;
    permissions("executed only", page);
    mprotect(page, SIZE, CODE);
    for (int i = 0; i < 24; i++)
        wrong += ((int (*)(void))page)() != parent;
    permissions("read and executed", page);
    mprotect(page, SIZE, PROT_EXEC);
    for (int i = 0; i < 24; i++)
        wrong += ((int (*)(void))page)() != parent || ((int (*)(void))(page + APART))() != parent;
    permissions("executed only again", page);
    VALUE(wrong);
}

int main(void) {
    pthread_t thread;
    void *wrong;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_code();
    mprotect(text, SIZE, CODE);
    sigaction(SIGSEGV, &action, NULL);
    pthread_create(&thread, NULL, caller, NULL);
    while (!over) {
        /* The page in which the other one is calling. */
        unsigned char *page = text + at / (4096 / APART) * 4096;
        mprotect(page, 4096, ALL);
        for (int i = 0; i < 100; i++)
            __atomic_add_fetch(page + 4095, 1, __ATOMIC_RELAXED);
        mprotect(page, 4096, CODE);
    }
    pthread_join(thread, &wrong);
    VALUE((long)wrong);
    VALUE(lost);
    signal(SIGSEGV, SIG_DFL);
    executed_only();
    return 0;
}
