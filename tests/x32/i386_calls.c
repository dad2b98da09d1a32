/*
 * built: static, dynamic
 *
 * `int $0x80`: the i386 call, with i386's numbers, registers and structures. It changes no register but eax.
 */
#include "transcript.h"
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>

enum {
    EXIT = 1,
    FORK = 2,
    READ = 3,
    WRITE = 4,
    OPEN = 5,
    CLOSE = 6,
    EXECVE = 11,
    GETPID = 20,
    KILL = 37,
    BRK = 45,
    OLD_MMAP = 90,
    MUNMAP = 91,
    MPROTECT = 125,
    WRITEV = 146,
    NANOSLEEP = 162,
    SIGPROCMASK = 175,
    MMAP2 = 192,
    EXIT_GROUP = 252,
    OPENAT = 295,
};

struct registers {
    uint64_t number, b, c, d, source, destination, base, r8, r9, r10, r11, r12, flags;
};

/* All registers before, and all after. */
static void make(struct registers *all) {
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp; push %%rbp; push %%rbx; push %%rax\n"
        "mov 8(%%rax), %%rbx; mov 16(%%rax), %%rcx; mov 24(%%rax), %%rdx; mov 32(%%rax), %%rsi\n"
        "mov 40(%%rax), %%rdi; mov 48(%%rax), %%rbp; mov 56(%%rax), %%r8; mov 64(%%rax), %%r9\n"
        "mov 72(%%rax), %%r10; mov 80(%%rax), %%r11; mov 88(%%rax), %%r12\n"
        "push 96(%%rax); mov 0(%%rax), %%rax; popf\n"
        "int $0x80\n"
        "pushf; xchg %%rax, 8(%%rsp)\n"
        "mov %%rbx, 8(%%rax); mov %%rcx, 16(%%rax); mov %%rdx, 24(%%rax); mov %%rsi, 32(%%rax)\n"
        "mov %%rdi, 40(%%rax); mov %%rbp, 48(%%rax); mov %%r8, 56(%%rax); mov %%r9, 64(%%rax)\n"
        "mov %%r10, 72(%%rax); mov %%r11, 80(%%rax); mov %%r12, 88(%%rax)\n"
        "pop 96(%%rax); pop %%rcx; mov %%rcx, 0(%%rax); pop %%rbx; pop %%rbp; cld; lea 128(%%rsp), %%rsp\n"
        : "+a"(all)
        :
        : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
}

static long long called(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
                        uint32_t f) {
    struct registers all = {number, a, b, c, d, e, f, 0, 0, 0, 0, 0, 0x202};
    make(&all);
    return all.number;
}

static uint32_t at(const void *what) { return (uintptr_t)what; }

static void print_called(const char *what, long long answer) {
    if (answer < 0 && answer > -4096)
        say("%s: %s", what, error_name(-answer));
    else
        say("%s: %lld", what, answer);
}
#define CALLED(number, ...) print_called(#number, called(number, __VA_ARGS__))

static void registers(void) {
    struct registers before = {GETPID, ~0ULL, 1ULL << 63 | 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xed7},
                     after = before;
    after.number |= 7ULL << 32;
    make(&after);
    IS((pid_t)after.number == getpid());
    IS(memcmp(&after.b, &before.b, sizeof after - offsetof(struct registers, b)) == 0);
}

static void files(void) {
    struct {
        uint32_t base, size;
    } parts[2] = {{at("two "), 4}, {at("parts\n"), 6}};
    char text[8] = "";
    CALLED(WRITE, 1, at("one part\n"), 9, 0, 0, 0);
    CALLED(WRITEV, 1, at(parts), 2, 0, 0, 0);
    CALLED(WRITE, 1, 0xfffff000, 9, 0, 0, 0);
    CALLED(OPEN, at("nowhere"), 0, 0, 0, 0, 0);
    long long file = called(OPENAT, -100, at("/proc/self/comm"), 0, 0, 0, 0);
    IS(called(READ, file, at(text), 4, 0, 0, 0) == 4);
    TEXT(text);
    CALLED(CLOSE, file, 0, 0, 0, 0, 0);
    int own = called(OPEN, at("/proc/self/exe"), 0, 0, 0, 0, 0);
    char head[5] = "";
    pread(own, head, 5, 0);
    IS(head[4] == 1); /* ELFCLASS32: the program, and not what runs it */
    close(own);
}

static void memory(void) {
    FILE *file = tmpfile();
    fprintf(file, "%4096s%s", "", "second page");
    fflush(file);
    uint32_t wanted[6] = {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
    long long old = called(OLD_MMAP, at(wanted), 0, 0, 0, 0, 0);
    long long page = called(MMAP2, 0, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 1);
    IS(old > 0 && old < 1LL << 32 && page > 0 && page < 1LL << 32);
    TEXT((char *)(uintptr_t)page);
    strcpy((char *)(uintptr_t)old, "written");
    TEXT((char *)(uintptr_t)old);
    CALLED(MPROTECT, old, 4096, PROT_READ, 0, 0, 0);
    CALLED(MUNMAP, old, 4096, 0, 0, 0, 0);
    CALLED(MUNMAP, page, 4096, 0, 0, 0, 0);
    IS(mmap((void *)(uintptr_t)old, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
       (void *)(uintptr_t)old);
    IS(called(BRK, 0, 0, 0, 0, 0, 0) == at(sbrk(0)));
    fclose(file);
}

static volatile int handled;
static void on_signal(int number) {
    (void)number;
    handled++;
}

static void signals(void) {
    int pipes[2];
    char byte = 0;
    uint64_t mask = 1 << (SIGUSR1 - 1), now = 0;
    signal(SIGUSR1, on_signal);
    CALLED(KILL, getpid(), SIGUSR1, 0, 0, 0, 0);
    VALUE(handled);
    CALLED(SIGPROCMASK, SIG_BLOCK, at(&mask), at(&now), 8, 0, 0);
    CALLED(KILL, getpid(), SIGUSR1, 0, 0, 0, 0);
    VALUE(handled);
    CALLED(SIGPROCMASK, SIG_UNBLOCK, at(&mask), at(&now), 8, 0, 0);
    VALUE(handled);
    HEX(now);
    /* A call that a handler interrupts, and one that is made again. */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value.tv_usec = 50000};
    pipe(pipes);
    setitimer(ITIMER_REAL, &soon, NULL);
    CALLED(READ, pipes[0], at(&byte), 1, 0, 0, 0);
    uint32_t minute[2] = {60, 0};
    setitimer(ITIMER_REAL, &soon, NULL);
    CALLED(NANOSLEEP, at(minute), 0, 0, 0, 0, 0);
    VALUE(handled);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    if (fork() == 0) {
        usleep(200000);
        write(pipes[1], "x", 1);
        _exit(0);
    }
    CALLED(READ, pipes[0], at(&byte), 1, 0, 0, 0);
    wait(NULL);
    VALUE(handled);
}

static void processes(void) {
    for (int way = 0; way < 4; way++) {
        pid_t child = called(FORK, 0, 0, 0, 0, 0, 0);
        if (child == 0) {
            char path[4200];
            snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
            uint32_t words[] = {at("child"), at("exit"), at("9"), 0}, variables[] = {0};
            if (way == 0)
                called(EXIT, 7, 0, 0, 0, 0, 0);
            else if (way == 1)
                called(EXIT_GROUP, 8, 0, 0, 0, 0, 0);
            else if (way == 2)
                print_called("execve", called(EXECVE, at("nowhere"), at(words), at(variables), 0, 0, 0));
            else
                called(EXECVE, at(path), at(words), at(variables), 0, 0, 0);
            _exit(100 + (getppid() == getpid()));
        }
        ended("child", child);
    }
}

int main(void) {
    registers();
    files();
    memory();
    signals();
    processes();
    CALLED(600, 1, 2, 3, 4, 5, 6);
    CALLED(0x40000004, 1, at("x\n"), 2, 0, 0, 0);
    return 0;
}
