/* Known numbers of instructions of each class: ROUNDS times those of the loop below, on x86. */
#include <stdio.h>
#include <stdlib.h>

#ifdef __x86_64__
#define REGISTER "r"
#define CLOBBERED "eax", "xmm0", "xmm1", "memory"
#else
/* The compiler uses no SSE here. */
#define REGISTER "e"
#define CLOBBERED "eax", "memory"
#endif

int main(void) {
    long rounds = atol(getenv("ROUNDS"));
#if defined(__x86_64__) || defined(__i386__)
    static float floats[8] __attribute__((aligned(32)));
    for (long i = 0; i < rounds; i++) {
        __asm__ volatile("push %%" REGISTER "ax\n\tpop %%" REGISTER "ax\n\t" /* stack: 2 */
                         "nop\n\tnop\n\tnop\n\t"                             /* nop: 3 */
                         "fldz\n\tfldz\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"  /* x87: 4 */
                         ".rept 5\n\taddss %%xmm1, %%xmm0\n\t.endr\n\t"
                         ".rept 6\n\taddps %%xmm1, %%xmm0\n\t.endr\n\t"
                         ".rept 7\n\taddsd %%xmm1, %%xmm0\n\t.endr\n\t"
                         ".rept 8\n\taddpd %%xmm1, %%xmm0\n\t.endr\n\t"
                         ".rept 9\n\tpaddd %%xmm1, %%xmm0\n\t.endr\n\t"
                         ".rept 10\n\tvaddps %%ymm1, %%ymm1, %%ymm0\n\t.endr\n\t"
                         ".rept 11\n\tmovl %0, %%eax\n\t.endr\n\t" /* load_store */
                         ".rept 12\n\taddl $1, %%eax\n\t.endr\n\t" /* integer */
                         ".rept 13\n\tjmp 1f\n1:\n\t.endr\n\t"     /* branch */
                         :
                         : "m"(floats)
                         : CLOBBERED);
    }
#endif
    printf("done %d\n", rounds > 0);
    return 0;
}
