/*
 * seconds: 120
 *
 * A signal's handler may use every register: vectors, x87, mxcsr, flags and the red zone are as before when
 * it is over.
 */
#include "transcript.h"
#include <sys/time.h>

static volatile unsigned handled;
static int wide;
__attribute__((target("avx"))) static void clobber_wide(void) { __asm__ volatile("vzeroall" : : : "memory"); }
static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    handled++;
    if (wide)
        clobber_wide();
    unsigned strange = 0x1f80 | 0x6000;
    __asm__ volatile(
        "fninit\n fldz\n fldz\n fldz\n ldmxcsr %0\n std\n pxor %%xmm3, %%xmm3\n pxor %%xmm14, %%xmm14\n cld\n"
        "mov $-128, %%rax\n 1: movq $0x5a, (%%rsp,%%rax)\n add $8, %%rax\n jnz 1b\n"
        :
        : "m"(strange)
        : "rax", "memory", "xmm3", "xmm14");
}

uint64_t red[16], out[64], general[8];
/* Fills the red zone, ymm0..15, x87 and mxcsr, waits until a handler has run, and stores them. */
unsigned long wait_and_store(volatile unsigned *count, unsigned until, void *pattern, int wide);
__asm__(
    ".text\n.globl wait_and_store\nwait_and_store:\n"
    "push %rbx\npush %r12\npush %r13\npush %r14\npush %r15\npush %rbp\n"
    "mov %rdx, %r8\nmov %ecx, %r9d\n"
    "movabs $0x1010101010101010, %rbx\nmovabs $0x2020202020202020, %r12\nmovabs $0x3030303030303030, %r13\n"
    "movabs $0x4040404040404040, %r14\nmovabs $0x5050505050505050, %r15\nmovabs $0x6060606060606060, %rbp\n"
    ".set i, 0\n.rept 16\nmovq $0x1234560 + i, -128 + 8 * i(%rsp)\n.set i, i + 1\n.endr\n"
    "test %r9d, %r9d\njz 1f\n"
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovdqu (%r8), %ymm\\r\n.endr\njmp 2f\n"
    "1:\n.irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovdqu (%r8), %xmm\\r\n.endr\n"
    "2: fninit\nfldpi\nldmxcsr strange(%rip)\nstc\n"
    "3: mov (%rdi), %eax\nsub %esi, %eax\njs 3b\n"
    ".set i, 0\n.rept 16\nmov -128 + 8 * i(%rsp), %rax\nmov %rax, red + 8 * i(%rip)\n.set i, i + 1\n.endr\n"
    "test %r9d, %r9d\njz 4f\n"
    "vmovdqu %ymm0, out(%rip)\nvmovdqu %ymm3, out+32(%rip)\nvmovdqu %ymm14, out+64(%rip)\nvzeroupper\njmp "
    "5f\n"
    "4: movdqu %xmm0, out(%rip)\nmovdqu %xmm3, out+32(%rip)\nmovdqu %xmm14, out+64(%rip)\n"
    "5: fstpt out+96(%rip)\nstmxcsr out+112(%rip)\nfnstsw %ax\nmov %ax, out+116(%rip)\nldmxcsr "
    "usual(%rip)\nfninit\n"
    "mov %rbx, general(%rip)\nmov %r12, general+8(%rip)\nmov %r13, general+16(%rip)\nmov %r14, "
    "general+24(%rip)\n"
    "mov %r15, general+32(%rip)\nmov %rbp, general+40(%rip)\n"
    "pop %rbp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\nret\n");
unsigned strange = 0x1f80 | 0x8000, usual = 0x1f80;

int main(void) {
    /* Half as wide where there is no AVX: the transcript is the same. */
    wide = __builtin_cpu_supports("avx") != 0;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 2000}, {0, 2000}}, NULL);
    int vectors = 0, x87 = 0, mxcsr = 0, zone = 0, registers = 0;
    uint64_t first_pi[2] = {0};
    for (unsigned round = 0; round < 100; round++) {
        uint64_t pattern[4] = {0x1111111111111111 * (round % 15), ~0ULL, round, 0xabcdef};
        wait_and_store(&handled, handled + 2, pattern, wide);
        for (int i = 0; i < 3; i++)
            vectors += memcmp(out + 4 * i, pattern, wide ? 32 : 16) != 0;
        if (round == 0)
            memcpy(first_pi, out + 12, 10);
        x87 += memcmp(first_pi, out + 12, 10) != 0;
        mxcsr += (uint32_t)out[14] != strange;
        for (int i = 0; i < 16; i++)
            zone += red[i] != 0x1234560u + i;
        for (int i = 0; i < 6; i++)
            registers += general[i] != 0x1010101010101010u * (i + 1);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    HEX(first_pi[0]);
    VALUE(vectors);
    VALUE(x87);
    VALUE(mxcsr);
    VALUE(zone);
    VALUE(registers);
    return 0;
}
