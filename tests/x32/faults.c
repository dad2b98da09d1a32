/*
 * flags: -lm -Wno-clobbered
 *
 * Signals of faults: codes, addresses, and going on after them.
 */
#include "transcript.h"
#include <fcntl.h>
#include <fenv.h>
#include <setjmp.h>
#include <sys/mman.h>

static sigjmp_buf back;
static siginfo_t info;
static greg_t trap, error, rip;
static uint64_t cr2;
static void handler(int number, siginfo_t *given, void *context) {
    (void)number;
    ucontext_t *u = context;
    info = *given;
    trap = u->uc_mcontext.gregs[REG_TRAPNO];
    error = u->uc_mcontext.gregs[REG_ERR];
    cr2 = u->uc_mcontext.gregs[REG_CR2];
    rip = u->uc_mcontext.gregs[REG_RIP];
    siglongjmp(back, 1);
}
#define FAULTS(what, statement)                                                                              \
    if (sigsetjmp(back, 1) == 0) {                                                                           \
        statement;                                                                                           \
        say(what ": nothing happened");                                                                      \
    } else                                                                                                   \
        say(what ": %s code %d, trap %lld, error %#llx", sigabbrev_np(info.si_signo), info.si_code,          \
            (long long)trap, (long long)error)

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    for (int i = 0; i < 6; i++)
        sigaction(numbers[i], &action, NULL);
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *at = page + 123;
    FAULTS("read-only", *at = 1);
    IS(info.si_addr == at);
    IS(cr2 == (uintptr_t)at);
    munmap(page, 8192);
    FAULTS("unmapped", *at = 1);
    IS(info.si_addr == at);
    FAULTS("null", *(volatile char *)NULL = 1);
    IS(info.si_addr == NULL);
    FAULTS("null read", (void)*(volatile char *)4);
    VALUE((int)(uintptr_t)info.si_addr);
    volatile char *above = (volatile char *)0xfffff123u;
    FAULTS("below 4 GiB", *above = 1);
    IS(info.si_addr == above);
    /* 64-bit addresses can be used by hand-written code. */
    FAULTS("canonical", __asm__ volatile("movabs $0x123456789abc, %%rax\n movb $1, (%%rax)"
                                         :
                                         :
                                         : "rax", "memory"));
    HEX(cr2);
    HEX((uintptr_t)info.si_addr & 0xffffffffu);
    FAULTS("not canonical", __asm__ volatile("movabs $0x8000000000000000, %%rax\n movb $1, (%%rax)"
                                             :
                                             :
                                             : "rax", "memory"));
    IS(info.si_addr == NULL);
    FAULTS("execution of data", ((void (*)(void))back)());
    FAULTS("execution of nothing", ((void (*)(void))0x10)());
    VALUE((int)rip);
    FAULTS("hlt", __asm__ volatile("hlt"));
    FAULTS("ud2", __asm__ volatile("ud2"));
    IS((greg_t)(uintptr_t)info.si_addr == rip);
    FAULTS("int3", __asm__ volatile("int3"));
    volatile int zero = 0, one = 1;
    FAULTS("division", one = one / zero);
    IS((greg_t)(uintptr_t)info.si_addr == rip);
    volatile int lowest = -2147483647 - 1, minus = -1;
    FAULTS("overflow", one = lowest / minus);
    /* Of SSE's exceptions the emulated machine raises none. */
    feenableexcept(FE_INVALID);
    volatile long double long_zero = 0;
    FAULTS("x87 invalid", long_zero = long_zero / long_zero; __asm__ volatile("fwait"));
    __asm__ volatile("fninit");
    fedisableexcept(FE_ALL_EXCEPT);
    feclearexcept(FE_ALL_EXCEPT);
    int file = open("short", O_RDWR | O_CREAT, 0600);
    write(file, "x", 1);
    page = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 0);
    at = page + 5000;
    FAULTS("past the end of a file", (void)*at);
    IS(info.si_addr == at);
    FAULTS("alignment", __asm__ volatile("movaps %%xmm0, (%0)" : : "r"(page + 1) : "memory"));
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    IS(sigismember(&now, SIGSEGV));

    say("without a handler, blocked or ignored");
    for (int kind = 0; kind < 3; kind++) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, kind == 1 ? SIG_IGN : SIG_DFL);
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGSEGV);
            if (kind == 2)
                sigprocmask(SIG_BLOCK, &set, NULL);
            *(volatile char *)NULL = 1;
            _exit(0);
        }
        ended("child", child);
    }
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_IGN);
        abort();
    }
    ended("abort", child);
    return 0;
}
