/*
 * core
 *
 * A system call changes rax, rcx and r11 and nothing else: not the other registers, the flags, the vector and
 * x87 state, nor the 128 bytes below the stack pointer.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

uint64_t filled[16], found[16]; /* rax rbx rcx rdx rsi rdi rbp r8..r15, then the stack pointer */
uint64_t flags_filled, flags_found;
unsigned char vector_filled[512], vector_found[512]; /* 16 registers of 32 bytes */
unsigned char x87_filled[512] __attribute__((aligned(64))), x87_found[512] __attribute__((aligned(64)));
uint64_t red_found[16];

void call(void);
/* Loads `filled`, `vector_filled` and the flags, makes the call and stores what it finds. Needs AVX only if
 * `wide`. */
__asm__(
    ".text\n.globl call\ncall:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "fxsave64 x87_filled(%rip)\n"
    ".set i, 0\n.rept 16\nmovabs $0x7070707070707070 + i, %rax\nmov %rax, -128 + 8 * i(%rsp)\n.set i, i + "
    "1\n.endr\n"
    "mov %rsp, filled+8*15(%rip)\n"
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovdqu vector_filled+32*\\r(%rip), %xmm\\r\n.endr\n"
    "fninit\nfldpi\nfldl2e\nldmxcsr mxcsr_filled(%rip)\nfldcw control_filled(%rip)\n"
    "fxsave64 x87_filled(%rip)\n"
    "mov filled+8(%rip), %rbx\nmov filled+24(%rip), %rdx\nmov filled+32(%rip), %rsi\nmov filled+40(%rip), "
    "%rdi\n"
    "mov filled+48(%rip), %rbp\n"
    ".irp r, 8,9,10,11,12,13,14\nmov filled+8*(\\r-1)(%rip), %r\\r\n.endr\n"
    "lea -256(%rsp), %rsp\npush flags_filled(%rip)\npopfq\nlea 256(%rsp), %rsp\n"
    "mov filled+8*14(%rip), %r15\nmov filled(%rip), %rax\n"
    "syscall\n"
    "mov %rax, found(%rip)\nmov %rsp, found+8*15(%rip)\n"
    "mov %rbx, found+8(%rip)\nmov %rdx, found+24(%rip)\nmov %rsi, found+32(%rip)\nmov %rdi, found+40(%rip)\n"
    "mov %rbp, found+48(%rip)\n"
    ".irp r, 8,9,10,12,13,14,15\nmov %r\\r, found+8*(\\r-1)(%rip)\n.endr\n"
    "lea -256(%rsp), %rsp\npushfq\npop flags_found(%rip)\nlea 256(%rsp), %rsp\ncld\n"
    ".set i, 0\n.rept 16\nmov -128 + 8 * i(%rsp), %rax\nmov %rax, red_found + 8 * i(%rip)\n.set i, i + "
    "1\n.endr\n"
    "fxsave64 x87_found(%rip)\n"
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovdqu %xmm\\r, vector_found+32*\\r(%rip)\n.endr\n"
    "fninit\nldmxcsr mxcsr_usual(%rip)\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
uint32_t mxcsr_filled = 0x1f80 | 0x6000 | 0x8000, mxcsr_usual = 0x1f80;
uint16_t control_filled = 0x0e7f;

static const char *const names[16] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8",
                                      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rsp"};

static int handled;
static void handler(int number) {
    handled += number == SIGUSR1;
    volatile double x = 1.5;
    x = x * x;
}

static long long made(const char *what, uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    for (int i = 0; i < 15; i++)
        filled[i] = 0x1234567800000000 + 0x0101010101 * (i + 1);
    filled[0] = number, filled[5] = a, filled[4] = b, filled[3] = c, filled[9] = d;
    for (int i = 0; i < 512; i++)
        vector_filled[i] = i * 7 + 3;
    flags_filled = 0x202 | 1 | 0x400 | 0x40 | 0x800; /* carry, direction, zero, overflow */
    call();
    char changed[200] = "";
    for (int i = 1; i < 16; i++)
        if (i != 2 && i != 10 && found[i] != filled[i])
            strcat(strcat(changed, " "), names[i]);
    if ((flags_found & 0xcd5) != (flags_filled & 0xcd5))
        sprintf(changed + strlen(changed), " flags(%#llx)", (unsigned long long)(flags_found & 0xcd5));
    for (int i = 0; i < 16; i++)
        if (memcmp(vector_found + 32 * i, vector_filled + 32 * i, 16) != 0)
            sprintf(changed + strlen(changed), " xmm%d", i);
    if (memcmp(x87_found, x87_filled, 8) != 0 || memcmp(x87_found + 32, x87_filled + 32, 128) != 0)
        strcat(changed, " x87");
    if (memcmp(x87_found + 24, x87_filled + 24, 4) != 0)
        strcat(changed, " mxcsr");
    for (int i = 0; i < 16; i++)
        if (red_found[i] != 0x7070707070707070u + i)
            sprintf(changed + strlen(changed), " red%d", i);
    say("%s changed:%s", what, changed[0] ? changed : " nothing");
    return found[0];
}

int main(void) {
    int ends[2];
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, 0, 4096);
    RESULT(pipe(ends));
    uint64_t at = (uintptr_t)page;
    IS((pid_t)made("getppid", SYS_getppid, 0, 0, 0, 0) == getppid());
    VALUE(made("write", SYS_write, ends[1], at, 5, 0));
    VALUE(made("read", SYS_read, ends[0], at, 5, 0));
    VALUE(made("read of a bad descriptor", SYS_read, 99, at, 5, 0));
    VALUE(made("clock_gettime", SYS_clock_gettime, CLOCK_MONOTONIC, at, 0, 0));
    struct timespec nap = {0, 1000000};
    VALUE(made("nanosleep", SYS_nanosleep, (uintptr_t)&nap, 0, 0, 0));
    VALUE(made("sched_yield", SYS_sched_yield, 0, 0, 0, 0));
    VALUE(made("munmap of nothing", SYS_munmap, 0x70000000, 4096, 0, 0));
    /* r8 and r9 hold no descriptor and an odd offset. */
    VALUE(made("mmap", SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS));
    struct iovec {
        void *base;
        unsigned long length;
    } out = {page, 3}, in = {page + 64, 3};
    VALUE(made("writev", SYS_writev, ends[1], (uintptr_t)&out, 1, 0));
    VALUE(made("readv", SYS_readv, ends[0], (uintptr_t)&in, 1, 0));
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    VALUE(made("kill of oneself", SYS_kill, getpid(), SIGUSR1, 0, 0));
    VALUE(handled);
    VALUE(made("ioctl", SYS_ioctl, ends[0], 0x541b, at, 0));
    VALUE(made("sigaltstack", SYS_sigaltstack, 0, at, 0, 0));
    VALUE(made("rt_sigprocmask", SYS_rt_sigprocmask, 0, 0, at, 8));
    VALUE(made("an unknown number", 0x40000000 + 1000, 1, 2, 3, 4));
    VALUE(made("another", 0x40000000 + 600, 1, 2, 3, 4));
    return 0;
}
