/*
 * core
 *
 * The numbers themselves: unknown ones, x86-64's without bit 30, the special ones without it, and what is
 * refused.
 */
#include "transcript.h"

static long long made(uint64_t number, uint64_t a, uint64_t b, uint64_t c) {
    long long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "r8", "r9", "r10", "memory");
    return answer;
}
static void print_number(const char *what, uint64_t number) {
    long long answer = made(number, (uint64_t)-1, (uint64_t)-1, (uint64_t)-1);
    say("%s: %s", what, answer < 0 && answer > -4096 ? error_name(-answer) : "done");
}

int main(void) {
    const uint64_t bit = 0x40000000;
    IS((pid_t)made(bit + 39, 0, 0, 0) == getpid());
    IS((pid_t)made(39, 0, 0, 0) == getpid());
    IS((pid_t)made(bit + 110, 0, 0, 0) == getppid());
    /* Only the low 32 bits choose the call. */
    IS((pid_t)made((1ULL << 40) + bit + 39, 0, 0, 0) == getpid());
    IS((pid_t)made((1ULL << 40) + 39, 0, 0, 0) == getpid());
    IS((pid_t)made(0xffffffff00000000 + 39, 0, 0, 0) == getpid());
    struct {
        uint64_t base, length;
    } wide = {(uintptr_t) "x86-64's writev\n", 16};
    VALUE(made(20, 1, (uintptr_t)&wide, 1));
    struct {
        uint32_t base, length;
    } narrow = {(uintptr_t) "x32's writev\n", 13};
    VALUE(made(bit + 516, 1, (uintptr_t)&narrow, 1));
    uint64_t size[2] = {8, 8};
    VALUE(made(bit + 97, 7, (uintptr_t)size, 0));
    say("special numbers of x86-64, with bit 30");
    static const int special[] = {13,  15,  16,  19,  20,  45,  46,  47,  54,  55,  59,  101,
                                  127, 128, 129, 131, 206, 209, 222, 244, 246, 247, 273, 274,
                                  278, 279, 295, 296, 297, 299, 307, 310, 311, 322, 327, 328};
    for (unsigned i = 0; i < sizeof special / sizeof *special; i++) {
        char what[20];
        snprintf(what, sizeof what, "bit 30 + %d", special[i]);
        print_number(what, bit + special[i]);
    }
    say("special numbers of x32, without bit 30");
    for (int i = 512; i < 548; i++) {
        if (i == 513)
            continue;
        char what[20];
        snprintf(what, sizeof what, "%d", i);
        print_number(what, i);
    }
    say("unknown");
    static const uint64_t unknown[] = {335,        423,        548,       549,        600,
                                       999,        1000,       1024,      0x3fffffff, 0x40000000 - 1,
                                       0x80000000, 0xffffffff, 0x7fffffff};
    for (unsigned i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char what[40];
        snprintf(what, sizeof what, "bit 30 + %llu", (unsigned long long)unknown[i]);
        print_number(what, bit + unknown[i]);
        snprintf(what, sizeof what, "%llu", (unsigned long long)unknown[i]);
        if (unknown[i] >= 548 && unknown[i] < bit)
            print_number(what, unknown[i]);
    }
    say("calls that are gone or never were");
    static const int gone[] = {134, 156, 174, 177, 178, 180, 181, 182,
                               183, 184, 185, 205, 211, 214, 215, 236};
    for (unsigned i = 0; i < sizeof gone / sizeof *gone; i++) {
        char what[20];
        snprintf(what, sizeof what, "bit 30 + %d", gone[i]);
        print_number(what, bit + gone[i]);
    }
    return 0;
}
