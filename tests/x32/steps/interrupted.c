/*
 * Calls, each between two breakpoints, and handlers that count. `interrupting.c` sends signals at each
 * instruction of the runtime that such a call executes. Built for x32.
 */
#include "sent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* getppid(); and the same before a comparison, with the number loaded earlier. */
static const unsigned char site[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
static const unsigned char compared[] = {0xb8, 0x6e, 0,    0,    0x40, 0xeb, 0,    0x0f, 0x05, 0x48,
                                         0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0xf4};
enum { COMPARISON = 9 };
enum { SIGNALS = 64, TRAPS = 20 };

static volatile int caught[SIGNALS + 1], values[2 * QUEUED], count_of_values, wrong_masks;
static unsigned char *page;
static pid_t parent, self;

static void count(int signal, siginfo_t *info, void *context) {
    /* The runtime blocks all for a moment, which is no mask of the program's. */
    wrong_masks += sigismember(&((ucontext_t *)context)->uc_sigmask, SIGHUP) == 1;
    caught[signal]++;
    if (signal == SIGRTMIN && count_of_values < 2 * QUEUED)
        values[count_of_values++] = info->si_value.sival_int;
}

/* Each in a page of its own, so that it traps. */
static int trap(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, site, sizeof site);
    return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
static int call_page(void) { return ((int (*)(void))page)() != parent; }
static int untrap(void) { return munmap(page, 4096); }

static int call_translated(void) { return sigaltstack(NULL, NULL); }
static int call_mask(void) { return sigprocmask(SIG_BLOCK, &(sigset_t){0}, NULL); }
static int call_raise(void) { return raise(SIGUSR1); }

/* The runtime makes it, and the signal finds it there. */
static int call_queue(void) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    return syscall(SYS_rt_sigqueueinfo, self, SIGUSR1, &info);
}

static int call_wait(void) {
    int result = ppoll(NULL, 0, &(struct timespec){0}, &(sigset_t){0});
    return result != 0 && errno != EINTR;
}

/* A program that blocks SIGSYS alone has it kept out of its calls. */
static int block_sys(void) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGSYS);
    return sigprocmask(SIG_BLOCK, &mask, NULL);
}
static int let_sys_in(void) {
    sigset_t mask;
    sigemptyset(&mask);
    return sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* A jump to the comparison, which the jump of the rewritten call covers. */
static unsigned char *covered;
static int cover(void) {
    if (covered)
        return 0;
    covered = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(covered, compared, sizeof compared);
    mprotect(covered, 4096, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 2 * TRAPS; i++)
        ((int (*)(void))covered)();
    return 0;
}
static int call_covered(void) {
    int result;
    __asm__ volatile("call *%1"
                     : "=a"(result)
                     : "r"((unsigned long long)(size_t)(covered + COMPARISON)), "a"(7)
                     : "rcx", "r11", "memory", "cc");
    return result != 7;
}

/* By default WINCH does nothing, and TSTP stops; also where they come before the handler is gone. */
static int catch_both(void) {
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART};
    return sigaction(SIGWINCH, &action, NULL) || sigaction(SIGTSTP, &action, NULL);
}
static int ignore_both(void) {
    return signal(SIGWINCH, SIG_IGN) == SIG_ERR || signal(SIGTSTP, SIG_DFL) == SIG_ERR;
}
static int default_winch(void) { return signal(SIGWINCH, SIG_DFL) == SIG_ERR; }
static int default_tstp(void) { return signal(SIGTSTP, SIG_DFL) == SIG_ERR; }

static int nothing(void) { return 0; }

static const struct kind {
    const char *name;
    int (*before)(void), (*call)(void), (*after)(void);
    int own_signals;
    int (*ready)(void); /* after the call: what was blocked is let in */
} kinds[] = {
    {"trapped", trap, call_page, untrap, 0, nothing},
    {"covered", cover, call_covered, nothing, 0, nothing},
    {"translated", nothing, call_translated, nothing, 0, nothing},
    {"mask", nothing, call_mask, nothing, 0, nothing},
    {"raised", nothing, call_raise, nothing, 1, nothing},
    {"queued", nothing, call_queue, nothing, 1, nothing},
    {"waited", nothing, call_wait, nothing, 0, nothing},
    {"ignored", catch_both, default_winch, ignore_both, 0, nothing},
    {"stopped", catch_both, default_tstp, ignore_both, 0, nothing},
    {"guarded", block_sys, call_queue, nothing, 1, let_sys_in},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What the tracer answers: the signals it has sent, or -1 when it has been everywhere. */
static int breakpoint(void) {
    int answer;
    __asm__ volatile("int3" : "=a"(answer) : "a"(0) : "memory");
    return answer;
}

static int is_right(int sent, int own_signals) {
    sigset_t mask;
    int queued = sent & QUEUE ? QUEUED : 0, right = count_of_values == queued;
    for (int i = 0; i < count_of_values; i++)
        right &= values[i] == i;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int signal = 1; signal <= SIGNALS; signal++)
        right &= sigismember(&mask, signal) != 1;
    right &= caught[SIGTSTP] + !!(sent & STOPPED) == !!(sent & TSTP);
    return right && wrong_masks == 0 && caught[SIGSEGV] == !!(sent & SEGV) &&
           caught[SIGSYS] == !!(sent & SYS) && caught[SIGRTMIN] == queued && caught[SIGUSR1] == own_signals;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART};
    static const int wanted[] = {SIGSEGV, SIGSYS, SIGUSR1};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaction(wanted[i], &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    setpgid(0, 0); /* not orphaned: what stops by default does */
    parent = getppid();
    self = getpid();
    int wrong = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const struct kind *now = &kinds[kind];
        for (int i = 0; i < TRAPS; i++)
            now->before(), now->call(), now->ready(), now->after();
        for (int sent = 0; sent >= 0;) {
            now->before();
            memset((void *)caught, 0, sizeof caught);
            count_of_values = wrong_masks = 0;
            breakpoint();
            int failed = now->call();
            sent = breakpoint();
            now->ready();
            if (sent >= 0 && (failed || !is_right(sent, now->own_signals))) {
                printf("%s, sent %d: failed %d, SEGV %d, TSTP %d, SYS %d, USR1 %d, queued %d (%d %d %d), "
                       "masks %d\n",
                       now->name, sent, failed, caught[SIGSEGV], caught[SIGTSTP], caught[SIGSYS],
                       caught[SIGUSR1], caught[SIGRTMIN], values[0], values[1], values[2], wrong_masks);
                wrong++;
            }
            now->after();
        }
    }
    printf("wrong: %d\n", wrong);
    return wrong != 0;
}
