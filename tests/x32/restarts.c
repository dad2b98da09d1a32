/*
 * Calls that a signal interrupts: gone on with after SA_RESTART, EINTR without; those that never go on;
 * remainders.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

static volatile int count;
static int ends[2];
static void handler(int number) {
    (void)number;
    if (++count >= 3)
        write(ends[1], "x", 1);
}
/* Three alarms, the third of which lets a call that was gone on with return. */
static void start(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
    count = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 30000}, {0, 30000}}, NULL);
}
static void stop(void) {
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    int flags = fcntl(ends[0], F_GETFL);
    char room[64];
    fcntl(ends[0], F_SETFL, flags | O_NONBLOCK);
    while (read(ends[0], room, sizeof room) > 0)
        ;
    fcntl(ends[0], F_SETFL, flags);
}
#define BOTH_WAYS(call)                                                                                      \
    do {                                                                                                     \
        start(0);                                                                                            \
        long long plain_ = (call);                                                                           \
        int error_ = errno;                                                                                  \
        stop();                                                                                              \
        start(SA_RESTART);                                                                                   \
        long long restarted_ = (call);                                                                       \
        int restarted_error_ = errno, restarted_count_ = count;                                              \
        stop();                                                                                              \
        say("%s: %s; with SA_RESTART %s%s", #call, plain_ == -1 ? error_name(error_) : "done",               \
            restarted_ == -1 ? error_name(restarted_error_) : "done",                                        \
            restarted_ == -1 || restarted_count_ < 3 ? "" : " after three signals");                         \
    } while (0)

int main(void) {
    char byte[8];
    struct pollfd one = {.events = POLLIN};
    struct timespec second = {1, 0}, long_time = {5, 0};
    struct timeval long_timeval = {5, 0};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    one.fd = ends[0];
    fd_set set;
    struct msghdr message = {.msg_iov = &(struct iovec){byte, 1}, .msg_iovlen = 1};
    struct mmsghdr batch = {.msg_hdr = message};
    struct epoll_event event = {.events = EPOLLIN};
    int polled = epoll_create1(0);
    epoll_ctl(polled, EPOLL_CTL_ADD, ends[0], &event);
    sigset_t none;
    sigemptyset(&none);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);

    BOTH_WAYS(read(ends[0], byte, 1));
    BOTH_WAYS(readv(ends[0], message.msg_iov, 1));
    BOTH_WAYS(recv(ends[0], byte, 1, 0));
    BOTH_WAYS(recvmsg(ends[0], &message, 0));
    BOTH_WAYS(recvmmsg(ends[0], &batch, 1, 0, NULL));
    BOTH_WAYS(poll(&one, 1, 5000));
    BOTH_WAYS(ppoll(&one, 1, &long_time, &none));
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    BOTH_WAYS(select(ends[0] + 1, &set, NULL, NULL, &long_timeval));
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    BOTH_WAYS(pselect(ends[0] + 1, &set, NULL, NULL, &long_time, &none));
    BOTH_WAYS(epoll_wait(polled, &event, 1, 5000));
    BOTH_WAYS(epoll_pwait(polled, &event, 1, 5000, &none));
    BOTH_WAYS(sigsuspend(&none));
    BOTH_WAYS(pause());
    int cell = 0;
    BOTH_WAYS(syscall(SYS_futex, &cell, FUTEX_WAIT, 0, &(struct timespec){0, 200000000}, NULL, 0));
    BOTH_WAYS(syscall(SYS_futex, &cell, FUTEX_WAIT_BITSET, 0, &(struct timespec){1, 0}, NULL, -1));

    say("children and locks");
    pid_t child;
    child = fork();
    if (child == 0) {
        poll(NULL, 0, 400);
        _exit(3);
    }
    int status;
    start(0);
    RESULT(waitpid(child, &status, 0));
    start(SA_RESTART);
    IS(waitpid(child, &status, 0) == child);
    IS(count >= 3);
    stop();
    int file = open("lock", O_RDWR | O_CREAT, 0600), hold[2];
    pipe(hold);
    flock(file, LOCK_EX);
    child = fork();
    if (child == 0) {
        int own = open("lock", O_RDWR);
        start(0);
        RESULT(flock(own, LOCK_EX));
        setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
        write(hold[1], "x", 1);
        start(SA_RESTART);
        RESULT(flock(own, LOCK_EX));
        IS(count > 0);
        _exit(0);
    }
    read(hold[0], byte, 1);
    poll(NULL, 0, 600);
    flock(file, LOCK_UN);
    ended("locking", child);

    say("remainders");
    struct timespec left = {-1, -1};
    start(0);
    RESULT(nanosleep(&second, &left));
    IS(left.tv_sec == 0 && left.tv_nsec > 100000000 && left.tv_nsec < 1000000000);
    stop();
    start(SA_RESTART);
    RESULT(nanosleep(&second, NULL));
    stop();
    start(0);
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, 0, &second, &left));
    IS(left.tv_sec == 0 && left.tv_nsec > 100000000);
    stop();
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    start(SA_RESTART);
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
    stop();
    start(0);
    left = (struct timespec){-7, -7};
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, &left));
    stop();
    IS(left.tv_sec == -7);
    long_timeval = (struct timeval){2, 0};
    start(0);
    RESULT(select(0, NULL, NULL, NULL, &long_timeval));
    stop();
    IS(long_timeval.tv_sec == 1 && long_timeval.tv_usec > 0);
    /* Stopped and continued: restart_syscall goes on with what was left. */
    signal(SIGALRM, SIG_IGN);
    child = fork();
    if (child == 0) {
        struct timespec half = {0, 600000000}, begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        RESULT(nanosleep(&half, NULL));
        clock_gettime(CLOCK_MONOTONIC, &end);
        double took = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
        IS(took >= 0.6 && took < 5);
        one.fd = hold[0];
        clock_gettime(CLOCK_MONOTONIC, &begin);
        RESULT(poll(&one, 1, 600));
        clock_gettime(CLOCK_MONOTONIC, &end);
        took = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
        IS(took >= 0.59 && took < 5);
        _exit(0);
    }
    for (int i = 0; i < 10; i++) {
        poll(NULL, 0, 80);
        kill(child, SIGSTOP);
        poll(NULL, 0, 10);
        kill(child, SIGCONT);
    }
    ended("stopped and continued", child);
    return 0;
}
