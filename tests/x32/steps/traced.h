/* What tracers do: start a program, and know its breakpoints. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

/* Starts the program, which stops at its exec, with more options than PTRACE_O_EXITKILL. */
static void start_traced(char **words, int options) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(words[0], words);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL | options);
}

static int is_breakpoint(void) {
    siginfo_t info;
    return ptrace(PTRACE_GETSIGINFO, child, 0, &info) == 0 && info.si_signo == SIGTRAP &&
           info.si_code == SI_KERNEL;
}

/* The signal that has stopped the program. Where it has ended, the tracer ends with it. */
static inline int stopping_signal(int status) {
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (!WIFSTOPPED(status)) {
        printf("ended by signal %d\n", WTERMSIG(status));
        exit(4);
    }
    return WSTOPSIG(status);
}

/* Goes on until the program stops: by which signal. */
static inline int go_on(int how, int signal) {
    int status;
    if (ptrace(how, child, 0, signal) != 0 || waitpid(child, &status, 0) != child)
        exit(3);
    return stopping_signal(status);
}

static inline struct user_regs_struct registers(void) {
    struct user_regs_struct now;
    ptrace(PTRACE_GETREGS, child, 0, &now);
    return now;
}
