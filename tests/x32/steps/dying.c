/*
 * Runs a program until it ends, and tells of the last signal it got: what, by which code, and whether in the
 * program's own text, which lies below 4 GiB. Built for x86-64.
 *
 * dying PROGRAM ARGUMENT...
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(words[1], words + 1);
        _exit(127);
    }
    int status;
    siginfo_t info = {0};
    struct user_regs_struct at = {0};
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL);
    ptrace(PTRACE_CONT, child, 0, 0);
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        ptrace(PTRACE_GETSIGINFO, child, 0, &info);
        ptrace(PTRACE_GETREGS, child, 0, &at);
        ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status));
    }
    printf("%s: ended by %d; last signal %d, code %d, in the %s\n", words[count - 1],
           WIFSIGNALED(status) ? WTERMSIG(status) : -1, info.si_signo, info.si_code,
           at.rip >> 32 == 0 ? "program" : "runtime");
    return 0;
}
