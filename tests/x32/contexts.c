/*
 * rt_sigreturn, row 513: the frame's layout, and handlers that change registers, the mask or where to go on.
 */
#include "transcript.h"
#include <setjmp.h>
#include <stddef.h>
#include <sys/ucontext.h>

static ucontext_t *seen;
static int step;

static void layout(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    seen = u;
    IS((uintptr_t)context > (uintptr_t)info || (uintptr_t)context < (uintptr_t)info);
    VALUE((intptr_t)info - (intptr_t)context);
    HEX(u->uc_flags & 0xffffffff);
    IS(u->uc_link == NULL);
    IS(u->uc_mcontext.gregs[REG_RIP] != 0);
    VALUE(u->uc_mcontext.gregs[REG_TRAPNO] | u->uc_mcontext.gregs[REG_ERR]);
    HEX(u->uc_mcontext.gregs[REG_CSGSFS] & 0xffff);
    IS((uintptr_t)u->uc_mcontext.fpregs > (uintptr_t)context);
    IS(u->uc_mcontext.fpregs->mxcsr == 0x1f80);
    IS(((uintptr_t)u->uc_mcontext.fpregs & 63) == 0);
    sigset_t *mask = &u->uc_sigmask;
    say("mask in the frame: USR1 %d USR2 %d HUP %d", sigismember(mask, SIGUSR1), sigismember(mask, SIGUSR2),
        sigismember(mask, SIGHUP));
    VALUE(u->uc_stack.ss_flags);
    VALUE((int)u->uc_stack.ss_size);
    int local;
    IS(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    IS((uintptr_t)&local < (uintptr_t)context);
    step = number;
}

static void change_registers(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *u = context;
    if (u->uc_mcontext.gregs[REG_RBX] == 0x1122334455667788)
        say("rbx was seen");
    u->uc_mcontext.gregs[REG_RBX] = 0x0102030405060708;
    u->uc_mcontext.gregs[REG_R12] = -2;
    u->uc_mcontext.gregs[REG_R15] = 0xfedcba9876543210;
    u->uc_mcontext.gregs[REG_RDX] = 99;
    u->uc_mcontext.gregs[REG_RIP] += 2; /* over ud2 */
    u->uc_mcontext.fpregs->_xmm[5].element[0] = 0xabcdef01;
    u->uc_mcontext.fpregs->mxcsr = 0x1fc0;
}

static void change_mask(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGHUP);
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGSYS);
    sigdelset(&((ucontext_t *)context)->uc_sigmask, SIGUSR2);
}

static void elsewhere(void) {
    say("went on elsewhere");
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    IS(sigismember(&now, SIGUSR1));
    exit(0);
}
static void change_place(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *u = context;
    u->uc_mcontext.gregs[REG_RIP] = (uintptr_t)elsewhere;
    u->uc_mcontext.gregs[REG_RSP] = (u->uc_mcontext.gregs[REG_RSP] & ~15) - 8;
}
static void change_answer(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *u = context;
    say("answer in the frame: %lld", (long long)u->uc_mcontext.gregs[REG_RAX]);
    u->uc_mcontext.gregs[REG_RAX] = 4321;
}

static void change_vector(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.fpregs->_xmm[15].element[0] = 0xabcdef01;
}
/* All vector registers are 0: the processor does not save them. */
static uint32_t vector_after_a_call(void) {
    uint32_t xmm15;
    __asm__ volatile(".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\npxor %%xmm\\r, %%xmm\\r\n.endr\n"
                     "mov %1, %%edi\n mov %2, %%esi\n mov %3, %%eax\n syscall\n movd %%xmm15, %0\n"
                     : "=m"(xmm15)
                     : "g"(getpid()), "i"(SIGUSR1), "i"(SYS_kill)
                     : "rax", "rcx", "rdi", "rsi", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                       "memory");
    return xmm15;
}

static void handle(int number, void (*with)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = with, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
}

int main(void) {
    VALUE(sizeof(ucontext_t) >= 952);
    VALUE(offsetof(ucontext_t, uc_stack));
    VALUE(offsetof(ucontext_t, uc_mcontext));
    VALUE(offsetof(ucontext_t, uc_sigmask));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    handle(SIGUSR1, layout);
    raise(SIGUSR1);
    VALUE(step == SIGUSR1);

    handle(SIGILL, change_registers);
    uint64_t rbx, r12, r15, rdx;
    uint32_t xmm5, mxcsr;
    __asm__ volatile(
        "movabs $0x1122334455667788, %%rbx\n mov $1, %%r12d\n mov $2, %%r15d\n mov $3, %%edx\n"
        "pxor %%xmm5, %%xmm5\n ud2\n"
        "mov %%rbx, %0\n mov %%r12, %1\n mov %%r15, %2\n mov %%rdx, %3\n movd %%xmm5, %4\n stmxcsr %5\n"
        : "=m"(rbx), "=m"(r12), "=m"(r15), "=m"(rdx), "=m"(xmm5), "=m"(mxcsr)
        :
        : "rbx", "r12", "r15", "rdx", "xmm5", "memory");
    HEX(rbx);
    HEX(r12);
    HEX(r15);
    HEX(rdx);
    HEX(xmm5);
    HEX(mxcsr);
    unsigned usual = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(usual));

    handle(SIGUSR1, change_mask);
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &set);
    say("mask: HUP %d SYS %d USR1 %d USR2 %d", sigismember(&set, SIGHUP), sigismember(&set, SIGSYS),
        sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);

    handle(SIGUSR1, change_vector);
    int changed = 0;
    for (int i = 0; i < 40; i++)
        changed += vector_after_a_call() == 0xabcdef01;
    VALUE(changed);

    handle(SIGUSR1, change_answer);
    VALUE(syscall(SYS_kill, getpid(), SIGUSR1));
    handle(SIGUSR1, change_place);
    raise(SIGUSR1);
    say("not reached");
    return 1;
}
