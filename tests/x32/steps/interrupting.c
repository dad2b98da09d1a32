/*
 * Runs interrupted.c. Between two breakpoints of its, it steps through the call once, and notes the
 * instructions of the runtime; then it stops at each of them in turn, once for each set of signals, sends
 * these, and lets the call go on. Built for x86-64.
 *
 * interrupting PROGRAM ARGUMENT...: a line for each kind of call, with the number of instructions.
 */
#include "sent.h"
#include "traced.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define RUNTIME 0x100400000UL
#define RUNTIME_END 0x100500000UL
#define MOST 16384

#define PTRACE_GETSIGMASK_ 0x420a
#define PTRACE_SETSIGMASK_ 0x420b

static const int sets[] = {SEGV, QUEUE | WINCH, SYS | QUEUE | TSTP, SEGV | SYS | QUEUE};
enum { SETS = sizeof sets / sizeof *sets };

static unsigned long places[MOST];
static unsigned place_count;
static int stopped; /* STOPPED, where a signal has stopped the program since it was cleared */

/* A trap of a tracer's takes SIGTRAP out of the mask, where it was blocked as all others were. */
static void block_again(void) {
    unsigned long mask;
    ptrace(PTRACE_GETSIGMASK_, child, 8, &mask);
    if (mask & 1UL << (SIGHUP - 1)) {
        mask |= 1UL << (SIGTRAP - 1);
        ptrace(PTRACE_SETSIGMASK_, child, 8, &mask);
    }
}

/* Goes on until the program stops: by which signal. */
static int resume(int how, int signal) {
    int stopped_by = go_on(how, signal);
    siginfo_t info;
    if (stopped_by == SIGTRAP)
        block_again();
    else if (stopped_by == SIGTSTP && ptrace(PTRACE_GETSIGINFO, child, 0, &info) != 0)
        stopped = STOPPED;
    return stopped_by;
}

static void answer(int value) {
    struct user_regs_struct now = registers();
    now.rax = (unsigned)value;
    ptrace(PTRACE_SETREGS, child, 0, &now);
}

static void run_to_breakpoint(void) {
    int signal = 0;
    do
        signal = resume(PTRACE_CONT, signal == SIGTRAP ? 0 : signal);
    while (signal != SIGTRAP || !is_breakpoint());
}

static void note(unsigned long place) {
    if (place < RUNTIME || place >= RUNTIME_END)
        return;
    for (unsigned i = 0; i < place_count; i++)
        if (places[i] == place)
            return;
    if (place_count == MOST)
        exit(3);
    places[place_count++] = place;
}

static void step_to_breakpoint(void) {
    int signal = 0;
    place_count = 0;
    do {
        signal = resume(PTRACE_SINGLESTEP, signal == SIGTRAP ? 0 : signal);
        note(registers().rip);
    } while (signal != SIGTRAP || !is_breakpoint());
}

/* RLIMIT_SIGPENDING counts what is queued for all processes of the user: where others leave no room, it
 * waits. */
static void queue(int value) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = value;
    while (syscall(SYS_rt_tgsigqueueinfo, child, child, SIGRTMIN, &info) != 0) {
        if (errno != EAGAIN) {
            perror("rt_tgsigqueueinfo");
            exit(3);
        }
        usleep(1000);
    }
}

static void send(int set) {
    for (int i = 0; i < QUEUED && set & QUEUE; i++)
        queue(i);
    if (set & WINCH)
        syscall(SYS_tgkill, child, child, SIGWINCH); /* before what is queued */
    if (set & TSTP)
        syscall(SYS_tgkill, child, child, SIGTSTP);
    if (set & SYS)
        kill(child, SIGSYS);
    if (set & SEGV)
        kill(child, SIGSEGV);
}

/* Runs to the place, and sends there. Whether it came there before the program's next breakpoint, to which it
 * runs in either case. */
static int send_at(unsigned long place, int set) {
    unsigned long before = (unsigned long)ptrace(PTRACE_PEEKTEXT, child, place, 0);
    ptrace(PTRACE_POKETEXT, child, place, (before & ~0xffUL) | 0xcc);
    run_to_breakpoint();
    ptrace(PTRACE_POKETEXT, child, place, before);
    struct user_regs_struct now = registers();
    if (now.rip != place + 1)
        return 0;
    now.rip = place;
    ptrace(PTRACE_SETREGS, child, 0, &now);
    stopped = 0;
    send(set);
    run_to_breakpoint();
    return 1;
}

int main(int count, char **words) {
    (void)count;
    start_traced(words + 1, 0);
    run_to_breakpoint();
    for (;;) {
        unsigned reached = 0;
        step_to_breakpoint();
        answer(0);
        for (unsigned at = 0; at < place_count * SETS; at++) {
            run_to_breakpoint();
            int sent = send_at(places[at / SETS], sets[at % SETS]);
            reached += sent;
            answer(sent ? sets[at % SETS] | stopped : 0);
        }
        printf("%u instructions, reached %u of %u times\n", place_count, reached, place_count * SETS);
        run_to_breakpoint();
        run_to_breakpoint();
        answer(-1);
        run_to_breakpoint();
    }
}
