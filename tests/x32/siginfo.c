/*
 * core
 *
 * rt_sigpending, rt_sigtimedwait, rt_sigqueueinfo, rt_tgsigqueueinfo (rows 522, 523, 524, 536) and what a
 * siginfo holds for each kind of signal.
 */
#include "transcript.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

static siginfo_t last;
static volatile int count;
static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    last = *info;
    count++;
}
static void print_info(const char *what, const siginfo_t *info) {
    say("%s: %s code %d errno %d, pid %s, uid %s, int %d, pointer %#x", what, sigabbrev_np(info->si_signo),
        info->si_code, info->si_errno,
        info->si_pid == getpid() ? "ours"
        : info->si_pid           ? "other"
                                 : "0",
        info->si_uid == getuid() ? "ours"
        : info->si_uid           ? "other"
                                 : "0",
        info->si_value.sival_int, (unsigned)(uintptr_t)info->si_value.sival_ptr);
}
static void handle(int number) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
}
static sigset_t only(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

int main(void) {
    VALUE(sizeof(siginfo_t));
    handle(SIGUSR1);
    handle(SIGRTMIN);
    RESULT(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = -12345}));
    print_info("sigqueue", &last);
    RESULT(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_ptr = (void *)0xdeadbeef}));
    print_info("sigqueue", &last);
    RESULT(sigqueue(getpid(), 0, (union sigval){0}));
    RESULT(sigqueue(getpid(), 65, (union sigval){0}));
    RESULT(sigqueue(0x3fffffff, SIGUSR1, (union sigval){0}));

    say("raw queueing");
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_MESGQ;
    info.si_errno = 17;
    info.si_pid = 4242;
    info.si_uid = 77;
    info.si_value.sival_int = 5;
    RESULT(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &info));
    say("got: code %d errno %d pid %d uid %d int %d", last.si_code, last.si_errno, last.si_pid,
        (int)last.si_uid, last.si_value.sival_int);
    info.si_code = SI_TKILL;
    RESULT(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &info));
    RESULT(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info));
    info.si_code = SI_QUEUE;
    RESULT(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGRTMIN, &info));
    say("got: code %d pid %d int %d", last.si_code, last.si_pid, last.si_value.sival_int);
    info.si_code = 3;
    RESULT(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGUSR1, &info));
    say("got: code %d pid %d int %d", last.si_code, last.si_pid, last.si_value.sival_int);
    RESULT(syscall(SYS_rt_tgsigqueueinfo, getpid(), -1, SIGUSR1, &info));
    RESULT(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, (void *)8));

    say("pending and waiting");
    sigset_t set = only(SIGUSR1), pending;
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    count = 0;
    for (int i = 0; i < 3; i++) {
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
        kill(getpid(), SIGUSR1);
    }
    RESULT(sigpending(&pending));
    say("pending: USR1 %d RTMIN %d USR2 %d", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGRTMIN),
        sigismember(&pending, SIGUSR2));
    unsigned char raw[16];
    memset(raw, 0xee, sizeof raw);
    RESULT(syscall(SYS_rt_sigpending, raw, 4));
    bytes("four bytes", raw, 8);
    RESULT(syscall(SYS_rt_sigpending, raw, 8));
    bytes("eight bytes", raw, 12);
    RESULT(syscall(SYS_rt_sigpending, raw, 16));
    RESULT(syscall(SYS_rt_sigpending, (void *)8, 8));
    struct timespec none = {0}, soon = {0, 20000000}, bad = {0, 1000000000};
    memset(&info, 0xee, sizeof info);
    set = only(SIGRTMIN);
    for (int i = 0; i < 3; i++) {
        IS(sigtimedwait(&set, &info, &none) == SIGRTMIN);
        print_info("waited", &info);
    }
    RESULT(sigtimedwait(&set, &info, &none));
    RESULT(sigtimedwait(&set, &info, &soon));
    RESULT(sigtimedwait(&set, &info, &bad));
    set = only(SIGUSR1);
    RESULT(sigwaitinfo(&set, &info));
    print_info("waited", &info);
    RESULT(sigtimedwait(&set, NULL, &none));
    VALUE(count);
    RESULT(syscall(SYS_rt_sigtimedwait, &set, &info, &none, 4));
    RESULT(syscall(SYS_rt_sigtimedwait, (void *)8, &info, &none, 8));
    RESULT(syscall(SYS_rt_sigtimedwait, &set, &info, (void *)8, 8));
    kill(getpid(), SIGUSR1);
    RESULT(syscall(SYS_rt_sigtimedwait, &set, (void *)8, &none, 8));
    /* Interrupted by a signal that has a handler and is not waited for. */
    handle(SIGALRM);
    struct timespec long_time = {5, 0};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, 20000000}}, NULL);
    RESULT(sigtimedwait(&set, &info, &long_time));
    say("got: %s code %d", sigabbrev_np(last.si_signo), last.si_code);

    say("of a child");
    set = only(SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(33);
    RESULT(sigwaitinfo(&set, &info));
    say("child: code %d status %d pid %s uid %s", info.si_code, info.si_status,
        info.si_pid == child ? "its" : "other", info.si_uid == getuid() ? "ours" : "other");
    IS(info.si_utime >= 0 && info.si_utime < 100);
    IS(info.si_stime >= 0 && info.si_stime < 100);
    ended("child", child);
    child = fork();
    if (child == 0)
        raise(SIGTERM);
    sigwaitinfo(&set, &info);
    say("child: code %d status %d", info.si_code, info.si_status);
    ended("child", child);

    say("of a descriptor");
    int ends[2];
    pipe(ends);
    handle(SIGRTMIN + 2);
    fcntl(ends[0], F_SETOWN, getpid());
    fcntl(ends[0], F_SETSIG, SIGRTMIN + 2);
    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    write(ends[1], "x", 1);
    say("descriptor: code %d band %#lx fd %s", last.si_code, (unsigned long)last.si_band,
        last.si_fd == ends[0] ? "its" : "other");
    IS(last.si_signo == SIGRTMIN + 2);
    return 0;
}
