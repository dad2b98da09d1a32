/*
 * Runs rewritten.c and stops its first thread while that rewrites a place, or puts it back: at the first time
 * that it synchronises the cores, then, with another place, at the second, and so on. Then the second thread
 * is asked to call there, and the first one goes on when that has answered, sleeps in the runtime, or has
 * executed instructions for longer than anything else takes. With `late`, the second thread is stopped where
 * its call has trapped, before the runtime knows of it, until the first one has written all. Built for
 * x86-64.
 *
 * rewriting [late] PROGRAM ARGUMENT...: a line for each kind of place and direction, with what the second
 * thread did.
 */
#include "two_threads.h"

#include <string.h>
#include <sys/syscall.h>

#define RUNTIME 0x100000000UL
#define SYNC_CORE 32 /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
#define SPINNING_NS 50000000UL

/* A stop that is none of a signal's: a call's, or another event's. */
static int is_of_call(int signal) { return signal == (SIGTRAP | 0x80); }

/* To the next breakpoint, or, before that, to the `barriers`-th time that cores are synchronised: whether it
 * came to that. */
static int run(unsigned barriers) {
    int signal = 0, is_entry = 1;
    for (;;) {
        int passed_on = signal == SIGTRAP || is_of_call(signal) ? 0 : signal;
        signal = resume(barriers > 0 ? PTRACE_SYSCALL : PTRACE_CONT, passed_on);
        if (signal == SIGTRAP && is_breakpoint())
            return 0;
        if (!is_of_call(signal))
            continue;
        const struct user_regs_struct now = registers();
        if (is_entry && now.orig_rax == SYS_membarrier && now.rdi == SYNC_CORE && --barriers == 0)
            return 1;
        is_entry = !is_entry;
    }
}

static void read_of_second(const char *file, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", child, second, file);
    FILE *from = fopen(path, "r");
    text[0] = 0;
    if (from) {
        text[fread(text, 1, size - 1, from)] = 0;
        fclose(from);
    }
}

/* Nanoseconds for which it has run. */
static unsigned long time_of_second(void) {
    char text[64];
    read_of_second("schedstat", text, sizeof text);
    return strtoul(text, NULL, 10);
}

/* Whether it waits for the lock of the sites. */
static int sleeps_in_runtime(void) {
    char text[256];
    read_of_second("syscall", text, sizeof text);
    const char *last = strrchr(text, ' ');
    return strtol(text, NULL, 10) == SYS_futex && last && strtoul(last, NULL, 16) >= RUNTIME;
}

enum outcome { ANSWERED, ASLEEP, SPINNING, TRAPPED, OUTCOMES };

static enum outcome ask(const struct user_regs_struct *request) {
    poke(request->rdi, word(request->rdi) + 1);
    unsigned long began = time_of_second();
    for (;;) {
        tend_second();
        if (word(request->rsi) == word(request->rdi))
            return ANSWERED;
        if (has_trap)
            return TRAPPED;
        if (sleeps_in_runtime())
            return ASLEEP;
        if (time_of_second() - began > SPINNING_NS)
            return SPINNING;
    }
}

/* Until the second thread has answered; the first one goes on meanwhile. */
static void wait_for_answer(const struct user_regs_struct *request) {
    while (word(request->rsi) != word(request->rdi))
        tend_second();
}

int main(int count, char **words) {
    static const char *const kinds[] = {"moved",   "moved, back",   "long move", "long move, back",
                                        "between", "between, back", "compared",  "compared, back"};
    unsigned outcomes[OUTCOMES] = {0};
    int late = count > 1 && strcmp(words[1], "late") == 0;
    start_traced(words + 1 + late, PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD);
    for (;;) {
        run(0);
        const struct user_regs_struct request = registers();
        int is_written = run((unsigned)request.rbx);
        if (is_written) {
            keeps_trap = late;
            outcomes[ask(&request)]++;
            run(0);
            release_second();
            wait_for_answer(&request);
        } else {
            printf("%s: %llu steps, answered %u, asleep %u, trapped %u, spinning %u\n", kinds[request.rax],
                   request.rbx - 1, outcomes[ANSWERED], outcomes[ASLEEP], outcomes[TRAPPED],
                   outcomes[SPINNING]);
            memset(outcomes, 0, sizeof outcomes);
        }
        struct user_regs_struct now = registers();
        now.rax = is_written;
        ptrace(PTRACE_SETREGS, child, 0, &now);
    }
}
