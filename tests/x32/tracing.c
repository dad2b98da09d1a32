/*
 * ptrace, row 521: a parent that traces a child of x32.
 */
#include "transcript.h"
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

static int cell = 1234567;

int main(void) {
    RESULT(ptrace(PTRACE_PEEKDATA, 1 << 30, NULL, NULL));
    pid_t child = fork();
    if (child == 0) {
        RESULT(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
        raise(SIGUSR1);
        say("the child's cell holds %d", cell);
        getppid();
        _exit(11);
    }
    int status;
    IS(waitpid(child, &status, 0) == child);
    say("stopped by %s", WIFSTOPPED(status) ? sigabbrev_np(WSTOPSIG(status)) : "nothing");
    errno = 0;
    VALUE((int)ptrace(PTRACE_PEEKDATA, child, &cell, NULL));
    RESULT(ptrace(PTRACE_POKEDATA, child, &cell, (void *)7654321));
    struct user_regs_struct registers = {0};
    VALUE(sizeof registers);
    RESULT(ptrace(PTRACE_GETREGS, child, NULL, &registers));
    HEX(registers.cs);
    IS(registers.rip != 0 && registers.rsp != 0);
    siginfo_t info = {0};
    RESULT(ptrace(PTRACE_GETSIGINFO, child, NULL, &info));
    say("signo %d code %d pid %d", info.si_signo, info.si_code, info.si_pid == child);
    RESULT(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD));
    int stops = 0;
    long long number = 0;
    while (stops < 2000) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child ||
            !WIFSTOPPED(status))
            break;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            continue;
        stops++;
        ptrace(PTRACE_GETREGS, child, NULL, &registers);
        if ((registers.orig_rax & 0x3fffffff) == 110)
            number = registers.orig_rax;
    }
    HEX(number);
    print_ended("child", status);
    RESULT(ptrace(PTRACE_ATTACH, getpid(), NULL, NULL));
    RESULT(ptrace(4711, getpid(), NULL, NULL));
    return 0;
}
