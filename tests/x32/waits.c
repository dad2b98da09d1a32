/*
 * waitid with its rusage (row 529), wait4, and what each says of children that exit, die, stop and go on.
 */
#include "transcript.h"
#include <sys/resource.h>

static void print_info(const char *what, const siginfo_t *info, pid_t child) {
    say("%s: signo %d code %d errno %d status %d, pid %s, uid %s", what, info->si_signo, info->si_code,
        info->si_errno, info->si_status,
        info->si_pid == child ? "its"
        : info->si_pid        ? "other"
                              : "0",
        info->si_uid == getuid() ? "ours"
        : info->si_uid           ? "other"
                                 : "0");
}
enum { ROOM = 16 << 20 };
static pid_t child_that(int exits, int killed) {
    pid_t child = fork();
    if (child == 0) {
        /* The resident size of a process of a few pages may be counted as nothing. */
        memset(malloc(ROOM), 1, ROOM);
        if (killed)
            raise(killed);
        _exit(exits);
    }
    return child;
}

int main(void) {
    VALUE(sizeof(struct rusage));
    siginfo_t info;
    pid_t child = child_that(300, 0);
    memset(&info, 0xee, sizeof info);
    RESULT(waitid(P_PID, child, &info, WEXITED));
    print_info("exit", &info, child);
    child = child_that(0, SIGKILL);
    RESULT(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
    print_info("killed", &info, child);
    RESULT(waitid(P_PGID, getpgrp(), &info, WEXITED));
    print_info("again", &info, child);
    RESULT(waitid(P_ALL, 0, &info, WEXITED));
    RESULT(waitid(P_PID, child, &info, WEXITED));
    RESULT(waitid(P_ALL, 0, &info, 0));
    RESULT(waitid(99, 0, &info, WEXITED));
    child = child_that(3, 0);
    RESULT(syscall(SYS_waitid, P_PID, child, NULL, WEXITED, NULL));
    child = child_that(3, 0);
    struct rusage use;
    memset(&use, 0xee, sizeof use);
    RESULT(syscall(SYS_waitid, P_PID, child, &info, WEXITED, &use));
    print_info("with use", &info, child);
    IS(use.ru_utime.tv_sec == 0 && use.ru_stime.tv_sec == 0 && use.ru_utime.tv_usec >= 0);
    IS(use.ru_maxrss > ROOM >> 11 && use.ru_maxrss < 1 << 20);
    IS(use.ru_minflt > 0 && use.ru_nswap == 0 && use.ru_nsignals == 0);
    child = child_that(3, 0);
    RESULT(syscall(SYS_waitid, P_PID, child, (void *)8, WEXITED, NULL));
    RESULT(syscall(SYS_waitid, P_PID, child, &info, WEXITED, NULL));

    say("stopping");
    /* A child that has ended is no longer one that continued: it stays until that was asked. */
    int stays[2];
    if (pipe(stays))
        return 1;
    child = fork();
    if (child == 0) {
        char end;
        close(stays[1]);
        raise(SIGSTOP);
        _exit(read(stays[0], &end, 1) == 0 ? 8 : 9);
    }
    memset(&info, 0, sizeof info);
    RESULT(waitid(P_PID, child, &info, WSTOPPED));
    print_info("stopped", &info, child);
    memset(&info, 0xee, sizeof info);
    RESULT(waitid(P_PID, child, &info, WEXITED | WNOHANG));
    print_info("nothing yet", &info, child);
    kill(child, SIGCONT);
    RESULT(waitid(P_PID, child, &info, WCONTINUED));
    close(stays[1]);
    close(stays[0]);
    print_info("continued", &info, child);
    RESULT(waitid(P_PID, child, &info, WEXITED));
    print_info("ended", &info, child);

    say("wait4");
    child = child_that(17, 0);
    int status = 0;
    memset(&use, 0xee, sizeof use);
    IS(wait4(child, &status, 0, &use) == child);
    print_ended("wait4", status);
    IS(use.ru_maxrss > ROOM >> 11 && use.ru_maxrss < 1 << 20);
    RESULT(wait4(-1, &status, 0, NULL));
    RESULT(wait4(-1, &status, 0x10, NULL));
    child = child_that(0, SIGSEGV);
    IS(wait4(-1, &status, 0, NULL) == child);
    print_ended("wait4", status);
    child = child_that(1, 0);
    RESULT(wait4(child, (void *)8, 0, NULL));
    RESULT(getrusage(RUSAGE_CHILDREN, &use));
    IS(use.ru_maxrss > ROOM >> 11 && use.ru_minflt > 0);
    RESULT(getrusage(RUSAGE_SELF, &use));
    IS(use.ru_maxrss < 1 << 20 && use.ru_minflt > 0 && use.ru_utime.tv_usec < 1000000);
    RESULT(getrusage(RUSAGE_THREAD, &use));
    RESULT(getrusage(7, &use));
    RESULT(getrusage(RUSAGE_SELF, (void *)8));
    signal(SIGCHLD, SIG_IGN);
    child = child_that(1, 0);
    RESULT(waitpid(child, &status, 0));
    return 0;
}
