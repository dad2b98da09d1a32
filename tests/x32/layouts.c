/*
 * Which members of a siginfo the kernel carries for which signal and code, byte by byte: queued to oneself
 * with a pattern in all 128 bytes, then waited for, and handled.
 */
#include "transcript.h"

static unsigned char seen[128];
static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    memcpy(seen, info, sizeof seen);
}
static void queue(int number, int code, int handled) {
    unsigned char pattern[128];
    for (int i = 0; i < 128; i++)
        pattern[i] = 0x80 + i;
    memcpy(pattern, &number, 4);
    memcpy(pattern + 8, &code, 4);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    memset(seen, 0, sizeof seen);
    long result = syscall(SYS_rt_sigqueueinfo, getpid(), number, pattern);
    if (result != 0) {
        say("%s %d: %s", sigabbrev_np(number), code, error_name(errno));
    } else if (handled) {
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    } else {
        syscall(SYS_rt_sigtimedwait, &set, seen, NULL, 8);
    }
    char what[64];
    const char *name = sigabbrev_np(number);
    snprintf(what, sizeof what, "%s %#x, %s", name ? name : "real time", code,
             handled ? "handled" : "waited for");
    /* Past the union of every layout there is nothing but zeros. */
    int rest = 0;
    for (int i = 48; i < 128; i++)
        rest += seen[i] != 0;
    bytes(what, seen, 48);
    if (rest)
        say("  and %d bytes more", rest);
}

int main(void) {
    static const struct {
        int number, code;
    } kinds[] = {
        {SIGUSR1, SI_USER},
        {SIGUSR1, SI_QUEUE},
        {SIGUSR1, SI_TIMER},
        {SIGUSR1, SI_MESGQ},
        {SIGUSR1, SI_ASYNCIO},
        {SIGUSR1, SI_SIGIO},
        {SIGUSR1, SI_TKILL},
        {SIGUSR1, SI_KERNEL},
        {SIGUSR1, 1},
        {SIGUSR1, 77},
        {SIGUSR1, -60},
        {SIGUSR1, -77},
        {SIGCHLD, CLD_EXITED},
        {SIGCHLD, CLD_KILLED},
        {SIGCHLD, CLD_CONTINUED},
        {SIGCHLD, 7},
        {SIGCHLD, SI_QUEUE},
        {SIGIO, POLL_IN},
        {SIGIO, POLL_HUP},
        {SIGIO, 7},
        {SIGSEGV, SEGV_MAPERR},
        {SIGSEGV, SEGV_ACCERR},
        {SIGSEGV, 3},
        {SIGSEGV, 4},
        {SIGSEGV, SI_QUEUE},
        {SIGBUS, BUS_ADRALN},
        {SIGBUS, BUS_MCEERR_AR},
        {SIGFPE, FPE_INTDIV},
        {SIGFPE, FPE_FLTSUB},
        {SIGILL, ILL_ILLOPN},
        {SIGTRAP, TRAP_BRKPT},
        {SIGTRAP, TRAP_TRACE},
        {SIGSYS, 1},
        {SIGSYS, SI_QUEUE},
        {34, SI_QUEUE},
        {50, SI_TIMER},
        {64, SI_USER},
        {36, SI_SIGIO},
    };
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    for (int number = 1; number < 65; number++)
        sigaction(number, &action, NULL);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        queue(kinds[i].number, kinds[i].code, 0);
        queue(kinds[i].number, kinds[i].code, 1);
    }
    return 0;
}
