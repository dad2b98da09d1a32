/*
 * built: static, dynamic
 *
 * mmap, munmap, mprotect, mremap: where x32 addresses may lie, and every edge of them.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { PAGE = 4096, BOTH = PROT_READ | PROT_WRITE, PLAIN = MAP_PRIVATE | MAP_ANONYMOUS };

/* The call itself, with all 64 bits of the address and of the answer. */
static int64_t raw(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    register uint64_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    int64_t answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
static int64_t map(uint64_t address, uint64_t length, int flags) {
    return raw(SYS_mmap, address, length, BOTH, PLAIN | flags, (uint64_t)-1, 0);
}
static int64_t print_map(const char *what, int64_t answer) {
    if (answer < 0 && answer > -4096)
        say("%s: %s", what, error_name(-answer));
    else
        say("%s: %s, aligned %s", what, (uint64_t)answer < 1ULL << 32 ? "below 4 GiB" : "above 4 GiB",
            answer % PAGE ? "no" : "yes");
    return answer;
}

/* The kernel keeps a MiB free below it: a mapping that needs that MiB is placed elsewhere. */
static void grow_down(void) {
    enum { ROOM = 64 << 20, OWN = 16 * PAGE, GROWTH = 20 * PAGE, GAP = 256 * PAGE };
    char *room = mmap(NULL, ROOM, PROT_NONE, PLAIN | MAP_NORESERVE, -1, 0);
    munmap(room, ROOM);
    char *grows = mmap(room + ROOM - OWN, OWN, BOTH, PLAIN | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    char *next = mmap(NULL, ROOM - OWN, PROT_NONE, PLAIN | MAP_NORESERVE, -1, 0);
    IS(next > grows || grows - (next + ROOM - OWN) >= GAP);
    munmap(next, ROOM - OWN);
    char *near = mmap(grows - 100 * PAGE, PAGE, BOTH, PLAIN, -1, 0);
    IS(near > grows || grows - (near + PAGE) >= GAP);
    munmap(near, PAGE);
    for (int i = PAGE; i <= GROWTH; i += PAGE)
        grows[-i] = 1;
    next = mmap(NULL, ROOM - OWN - GAP, PROT_NONE, PLAIN | MAP_NORESERVE, -1, 0);
    IS(next > grows || grows - GROWTH - (next + ROOM - OWN - GAP) >= GAP);
    munmap(next, ROOM - OWN - GAP);
    near = mmap(grows - 100 * PAGE, PAGE, BOTH, PLAIN | MAP_FIXED_NOREPLACE, -1, 0);
    IS(near == grows - 100 * PAGE);
    munmap(near, PAGE);
    munmap(grows - GROWTH, OWN + GROWTH);
    IS(mmap(near, PAGE, BOTH, PLAIN, -1, 0) == near);
    munmap(near, PAGE);
}

int main(void) {
    int64_t at = print_map("anywhere", map(0, PAGE, 0)), other;
    IS(at != 0);
    print_map("MAP_32BIT", at = map(0, PAGE, MAP_32BIT));
    IS((uint64_t)at >= 1u << 30 && (uint64_t)at < 1ull << 31);
    print_map("length 0", map(0, 0, 0));
    print_map("length of 8 GiB", map(0, 8ULL << 30, 0));
    print_map("length of 4 GiB", map(0, 1ULL << 32, 0));
    print_map("length of 3.9 GiB", map(0, 0xf9999000, 0));
    print_map("length that wraps", map(0, (uint64_t)-4096, 0));
    print_map("length past every page", map(0, (uint64_t)-1, 0));
    other = print_map("fixed", map(at, PAGE, MAP_FIXED));
    IS(other == at);
    print_map("fixed, not aligned", map(at + 1, PAGE, MAP_FIXED));
    print_map("fixed above 4 GiB", map(1ULL << 32, PAGE, MAP_FIXED));
    print_map("fixed far above", map(1ULL << 40, PAGE, MAP_FIXED));
    print_map("fixed across 4 GiB", map((1ULL << 32) - PAGE, 2 * PAGE, MAP_FIXED));
    print_map("fixed at the last page", map((1ULL << 32) - PAGE, PAGE, MAP_FIXED));
    print_map("fixed at 0", map(0, PAGE, MAP_FIXED));
    print_map("fixed, no replacing", map(at, PAGE, MAP_FIXED_NOREPLACE));
    munmap((void *)(uintptr_t)at, PAGE);
    other = print_map("fixed, nothing to replace", map(at, PAGE, MAP_FIXED_NOREPLACE));
    IS(other == at);
    print_map("no replacing above 4 GiB", map(1ULL << 33, PAGE, MAP_FIXED_NOREPLACE));
    munmap((void *)(uintptr_t)at, PAGE);
    other = print_map("a hint that is free", map(at, PAGE, 0));
    IS(other == at);
    other = print_map("a hint that is taken", map(at, PAGE, 0));
    IS(other != at);
    print_map("a hint above 4 GiB", map(1ULL << 36, PAGE, 0));
    print_map("a hint not aligned", other = map(at + 5 * PAGE + 17, PAGE, 0));
    print_map("neither private nor shared", raw(SYS_mmap, 0, PAGE, BOTH, MAP_ANONYMOUS, (uint64_t)-1, 0));
    print_map("no descriptor", raw(SYS_mmap, 0, PAGE, BOTH, MAP_PRIVATE, (uint64_t)-1, 0));
    print_map("odd offset", raw(SYS_mmap, 0, PAGE, BOTH, MAP_PRIVATE, 0, 17));
    print_map("growing down", map(0, PAGE, MAP_GROWSDOWN));
    grow_down();
    print_map("MAP_NORESERVE", map(0, 1 << 28, MAP_NORESERVE));

    say("files");
    int file = open("file", O_RDWR | O_CREAT, 0600);
    ftruncate(file, (5LL << 32) + 3 * PAGE);
    pwrite(file, "far away", 8, 5LL << 32);
    print_map("unknown flag, validated",
              raw(SYS_mmap, 0, PAGE, BOTH, MAP_SHARED_VALIDATE | 0x40000000, file, 0));
    char *far = mmap(NULL, PAGE, BOTH, MAP_SHARED, file, 5LL << 32);
    TEXT(far);
    strcpy(far, "changed!");
    RESULT(msync(far, PAGE, MS_SYNC));
    RESULT(msync(far, PAGE, MS_SYNC | MS_ASYNC));
    RESULT(msync(far + 1, PAGE, MS_SYNC));
    char text[16] = "";
    pread(file, text, 8, 5LL << 32);
    TEXT(text);
    int reads = open("file", O_RDONLY);
    print_map("shared and writable, opened to read", raw(SYS_mmap, 0, PAGE, BOTH, MAP_SHARED, reads, 0));
    print_map("private and writable, opened to read", raw(SYS_mmap, 0, PAGE, BOTH, MAP_PRIVATE, reads, 0));
    print_map("offset that overflows",
              raw(SYS_mmap, 0, 2 * PAGE, PROT_READ, MAP_SHARED, reads, 0x7ffffffffffff000));

    say("protection");
    char *three = mmap(NULL, 3 * PAGE, BOTH, PLAIN, -1, 0);
    RESULT(mprotect(three + PAGE, PAGE, PROT_NONE));
    RESULT(mprotect(three + 1, PAGE, BOTH));
    RESULT(mprotect(three, PAGE, 0x40));
    RESULT(mprotect(three, 0, BOTH));
    RESULT(munmap(three + PAGE, PAGE));
    RESULT(mprotect(three, 3 * PAGE, BOTH));
    RESULT(munmap(three, 3 * PAGE));
    RESULT(munmap(three, 3 * PAGE));
    RESULT(munmap(three + 1, PAGE));
    RESULT(munmap(three, 0));
    RESULT(raw(SYS_munmap, 1ULL << 40, PAGE, 0, 0, 0, 0));
    RESULT(raw(SYS_mprotect, 1ULL << 40, PAGE, PROT_READ, 0, 0, 0));
    unsigned char *code = mmap(NULL, PAGE, BOTH, PLAIN, -1, 0);
    memcpy(code, "\xb8\x2a\0\0\0\xc3", 6);
    RESULT(mprotect(code, PAGE, PROT_READ | PROT_EXEC));
    VALUE(((int (*)(void))code)());
    RESULT(mprotect(code, PAGE, BOTH));
    /* Code made at run time that makes a system call: getppid, by its x32 number. */
    memcpy(code, "\xb8\x6e\0\0\x40\x0f\x05\xc3", 8);
    RESULT(mprotect(code, PAGE, PROT_READ | PROT_EXEC));
    IS(((int (*)(void))code)() == getppid());
    unsigned char *all = mmap(NULL, PAGE, BOTH | PROT_EXEC, PLAIN, -1, 0);
    memcpy(all, "\xb8\x6e\0\0\x40\x0f\x05\xc3", 8);
    IS(((int (*)(void))all)() == getppid());
    memcpy(all, "\xb8\x27\0\0\x40\x0f\x05\xc3", 8);
    IS(((int (*)(void))all)() == getpid());

    /* Where nothing is: below the program. */
    RESULT(munmap((void *)0x10000, 0x3f0000));
    IS(getppid() > 0 && access("/", F_OK) == 0);
    RESULT(mprotect((void *)0x10000, 0x3f0000, PROT_NONE));
    IS(getppid() > 0 && access("/", F_OK) == 0);

    say("mremap");
    char *old = mmap(NULL, 8 * PAGE, BOTH, PLAIN, -1, 0);
    strcpy(old, "kept");
    RESULT(munmap(old + 4 * PAGE, 4 * PAGE));
    IS(mremap(old, 4 * PAGE, 6 * PAGE, 0) == old);
    IS(mremap(old, 6 * PAGE, 2 * PAGE, 0) == old);
    char *blocker = mmap(old + 2 * PAGE, PAGE, PROT_NONE, PLAIN | MAP_FIXED, -1, 0);
    IS(blocker == old + 2 * PAGE);
    SUCCESS((int)(intptr_t)mremap(old, 2 * PAGE, 16 * PAGE, 0));
    char *moved = mremap(old, 2 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    IS(moved != old && moved != MAP_FAILED && strcmp(moved, "kept") == 0);
    char *target = mmap(NULL, 32 * PAGE, PROT_NONE, PLAIN, -1, 0);
    IS(mremap(moved, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    TEXT(target);
    SUCCESS((int)(intptr_t)mremap(target, 16 * PAGE, 16 * PAGE, MREMAP_FIXED, target + 16 * PAGE));
    SUCCESS((int)(intptr_t)mremap(target, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                                  target + 8 * PAGE));
    print_map("fixed above 4 GiB", raw(SYS_mremap, (uintptr_t)target, 16 * PAGE, 16 * PAGE,
                                       MREMAP_MAYMOVE | MREMAP_FIXED, 1ULL << 33, 0));
    print_map("8 GiB", raw(SYS_mremap, (uintptr_t)target, 16 * PAGE, 8ULL << 30, MREMAP_MAYMOVE, 0, 0));
    char *left = mremap(target, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | 4);
    IS(left != target && left != MAP_FAILED && strcmp(left, "kept") == 0 && *target == 0);
    /* With MREMAP_DONTUNMAP (4) the new address is a hint. */
    int64_t room = map(0, 64 * PAGE, 0), hint = room + 32 * PAGE, from = (uintptr_t)left;
    munmap((void *)(uintptr_t)room, 64 * PAGE);
    print_map("hint not aligned", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, hint + 1, 0));
    print_map("hint in itself", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, from + 8 * PAGE, 0));
    print_map("hint above 4 GiB", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, 1ULL << 33, 0));
    print_map("8 GiB, kept", raw(SYS_mremap, from, 16 * PAGE, 8ULL << 30, 5, hint, 0));
    print_map("another size", raw(SYS_mremap, from, 16 * PAGE, 17 * PAGE, 5, hint, 0));
    print_map("must not move", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 4, hint, 0));
    IS(raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, hint, 0) == hint);
    IS(*left == 0 && strcmp((char *)(uintptr_t)hint, "kept") == 0);
    int64_t beside = raw(SYS_mremap, hint, 16 * PAGE, 16 * PAGE, 5, from, 0);
    IS(beside != hint && beside != from && strcmp((char *)(uintptr_t)beside, "kept") == 0);
    /* What is not one mapping moves with an address that is no hint, or not at all. */
    mprotect(left + 4 * PAGE, PAGE, PROT_READ);
    print_map("several, kept", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, 0, 0));
    print_map("several, kept, hint", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, room, 0));
    munmap(left + 4 * PAGE, PAGE);
    print_map("a hole, kept", raw(SYS_mremap, from, 16 * PAGE, 16 * PAGE, 5, 0, 0));
    SUCCESS((int)(intptr_t)mremap(left, 0, PAGE, MREMAP_MAYMOVE));
    SUCCESS((int)(intptr_t)mremap(left, PAGE, 0, MREMAP_MAYMOVE));
    SUCCESS((int)(intptr_t)mremap(left + 1, PAGE, PAGE, MREMAP_MAYMOVE));
    SUCCESS((int)(intptr_t)mremap((void *)0x10000, PAGE, PAGE * 2, MREMAP_MAYMOVE));
    char *twice = mremap(far, 0, PAGE, MREMAP_MAYMOVE);
    IS(twice != far && strcmp(twice, "changed!") == 0);
    return 0;
}
