/*
 * Ends in one of several ways, each by a signal. `dying` tells what a core dump would show. Built for x32 and
 * for x86-64.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __ILP32__
#define SIGRETURN 0x40000201
#else
#define SIGRETURN 15
#endif

static void handler(int number) { (void)number; }
static volatile int *nowhere;

static void mask(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(how, &set, NULL);
}

int main(int count, char **words) {
    int way = count > 1 ? atoi(words[1]) : 0;
    switch (way) {
    case 0: /* a handler's return without its frame */
    case 1:
        if (way == 1)
            signal(SIGSEGV, SIG_IGN);
        __asm__ volatile("mov $0x10000, %%esp\n syscall" : : "a"(SIGRETURN) : "rcx", "r11", "memory");
        break;
    case 2: /* the same with SIGSEGV blocked, and a handler for it */
        signal(SIGSEGV, handler);
        mask(SIG_BLOCK);
        __asm__ volatile("mov $0x10000, %%esp\n syscall" : : "a"(SIGRETURN) : "rcx", "r11", "memory");
        break;
    case 3: /* no stack for a handler */
        sigaltstack(&(stack_t){.ss_sp = (void *)0x10000, .ss_size = 0x10000}, NULL);
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
        raise(SIGUSR1);
        break;
    case 4: /* faults */
        return *nowhere;
    case 5:
        signal(SIGSEGV, SIG_IGN);
        return *nowhere;
    case 6:
        mask(SIG_BLOCK);
        return *nowhere;
    case 7:
        __asm__ volatile("ud2");
        break;
    case 8: /* sent */
        kill(getpid(), SIGSEGV);
        break;
    case 9:
        mask(SIG_BLOCK);
        kill(getpid(), SIGSEGV);
        mask(SIG_UNBLOCK);
        break;
    }
    return 0;
}
