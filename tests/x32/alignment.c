/*
 * built: static, dynamic
 *
 * The alignment check (AC), set by the program: its calls, whose structures need not be aligned, signals and
 * processes.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/uio.h>

#define AC 0x40000
#define TIMES 40

/* AC is set for the call alone: compilers and C libraries access memory without alignment. */
static long long checked(uint64_t number, uint64_t a, uint64_t b, uint64_t c) {
    long long answer;
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushf; orl $0x40000, (%%rsp); popf\n"
                     "syscall\n"
                     "pushf; andl $~0x40000, (%%rsp); popf; lea 128(%%rsp), %%rsp\n"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
    return answer;
}
#define CHECKED(call, a, b, c) checked(SYS_##call, (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c))

static uint32_t take_flags(void) {
    unsigned long long flags;
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushf; mov (%%rsp), %0; andl $~0x40000, (%%rsp); popf\n"
                     "lea 128(%%rsp), %%rsp"
                     : "=r"(flags)
                     :
                     : "memory", "cc");
    return flags;
}

static volatile int handled, with_flag;
static void on_signal(int number) {
    with_flag += (take_flags() & AC) != 0;
    (void)number;
    handled++;
}

static void files(int output) {
    struct {
        char odd;
        struct iovec parts[2];
    } __attribute__((packed)) narrow = {0, {{"one", 3}, {" two\n", 5}}};
    int right = 0;
    for (int i = 0; i < TIMES; i++) {
        right += CHECKED(getppid, 0, 0, 0) == getppid();
        right += CHECKED(writev, output, &narrow.parts, 2) == 8;
        int file = CHECKED(open, "/proc/self/exe", O_RDONLY, 0);
        right += file > 2 && CHECKED(close, file, 0, 0) == 0;
        right += CHECKED(ioctl, output, 0x5401, 8) == -ENOTTY;
    }
    VALUE(right);
}

static void signals(void) {
    int right = 0;
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < TIMES; i++)
        right += CHECKED(kill, getpid(), SIGUSR1, 0) == 0;
    VALUE(right);
    VALUE(handled);
    VALUE(with_flag);
}

static void flag_is_kept(void) {
    uint32_t flags;
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp; pushf; orl $0x40000, (%%rsp); popf\n"
        "mov $0x4000006e, %%eax; syscall; mov $0x40000234, %%eax; syscall\n" /* getppid, and none */
        "lea 128(%%rsp), %%rsp"
        :
        :
        : "rax", "rcx", "r11", "memory", "cc");
    flags = take_flags();
    IS((flags & AC) != 0);
}

static void processes(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
    char *words[] = {"child", "exit", "9", NULL};
    pid_t child = CHECKED(fork, 0, 0, 0);
    if (child == 0) {
        CHECKED(execve, path, words, environ);
        _exit(1);
    }
    ended("child", child);
}

int main(void) {
    int output = open("output", O_RDWR | O_CREAT, 0600);
    files(output);
    signals();
    flag_is_kept();
    processes();
    return 0;
}
