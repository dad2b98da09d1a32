/*
 * Waiting: poll, ppoll, select, pselect6 with masks, epoll's packed event, eventfd, timerfd, signalfd,
 * inotify.
 */
#include "transcript.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>

static volatile int handled;
static void handler(int number) { handled += number; }

int main(void) {
    int ends[2];
    pipe(ends);
    struct pollfd polled[] = {
        {ends[0], POLLIN, 99}, {ends[1], POLLOUT, 99}, {200, POLLIN, 99}, {-1, POLLIN, 99}};
    RESULT(poll(polled, 4, 0));
    say("events %d %d %d %d", polled[0].revents, polled[1].revents, polled[2].revents, polled[3].revents);
    write(ends[1], "x", 1);
    RESULT(poll(polled, 1, -1));
    RESULT(poll(NULL, 0, 20));
    RESULT(poll((void *)8, 1, 0));
    RESULT(poll(polled, 5000, 0));
    struct timespec soon = {0, 20000000}, bad = {0, 1000000000};
    polled[0].fd = -1;
    RESULT(ppoll(polled, 1, &soon, NULL));
    RESULT(ppoll(polled, 1, &bad, NULL));

    say("masks");
    signal(SIGUSR1, handler);
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    struct timespec five = {5, 0};
    raise(SIGUSR1);
    RESULT(ppoll(NULL, 0, &five, &none));
    VALUE(handled);
    raise(SIGUSR1);
    RESULT(pselect(0, NULL, NULL, NULL, &five, &none));
    VALUE(handled);
    int waiter = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1122334455667788}, got[4];
    raise(SIGUSR1);
    RESULT(epoll_pwait(waiter, got, 4, 5000, &none));
    VALUE(handled);
    raise(SIGUSR1);
    RESULT(ppoll(NULL, 0, &soon, &blocked));
    VALUE(handled);
    sigprocmask(SIG_BLOCK, NULL, &none);
    IS(sigismember(&none, SIGUSR1));
    uint64_t packed[2] = {(uintptr_t)&blocked, 8};
    RESULT(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &soon, packed));
    packed[1] = 4;
    RESULT(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &soon, packed));
    RESULT(syscall(SYS_ppoll, NULL, 0, &soon, &blocked, 4));
    RESULT(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &soon, (void *)8));
    soon.tv_nsec = 20000000, soon.tv_sec = 0;
    RESULT(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &soon, NULL));
    say("left: %lld %ld", (long long)soon.tv_sec, (long)soon.tv_nsec);
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    VALUE(handled);

    say("select");
    fd_set in, out;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    RESULT(select(ends[1] + 1, &in, &out, NULL, &(struct timeval){1, 0}));
    say("in %d out %d", FD_ISSET(ends[0], &in), FD_ISSET(ends[1], &out));
    FD_ZERO(&in);
    FD_SET(60, &in);
    RESULT(select(61, &in, NULL, NULL, NULL));
    RESULT(select(-1, NULL, NULL, NULL, NULL));
    RESULT(select(0, NULL, NULL, NULL, &(struct timeval){0, -5}));

    say("epoll");
    VALUE(sizeof event);
    RESULT(epoll_ctl(waiter, EPOLL_CTL_ADD, ends[0], &event));
    RESULT(epoll_ctl(waiter, EPOLL_CTL_ADD, ends[0], &event));
    event.data.u64 = 0xfedcba9876543210, event.events = EPOLLOUT | EPOLLET;
    RESULT(epoll_ctl(waiter, EPOLL_CTL_ADD, ends[1], &event));
    memset(got, 0, sizeof got);
    int count = epoll_wait(waiter, got, 4, 1000);
    VALUE(count);
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += got[i].data.u64, say("event %#x", got[i].events);
    HEX(sum);
    RESULT(epoll_ctl(waiter, EPOLL_CTL_DEL, ends[1], NULL));
    RESULT(epoll_ctl(waiter, EPOLL_CTL_MOD, ends[1], &event));
    RESULT(epoll_ctl(waiter, EPOLL_CTL_ADD, waiter, &event));
    RESULT(epoll_ctl(waiter, EPOLL_CTL_ADD, open("plain", O_RDWR | O_CREAT, 0600), &event));
    RESULT(epoll_wait(waiter, got, 0, 0));
    RESULT(epoll_wait(waiter, (void *)8, 4, 0));
    struct timespec tiny = {0, 1};
    RESULT(syscall(SYS_epoll_pwait2, waiter, got, 4, &tiny, NULL, 8));
    RESULT(epoll_create(0));

    say("eventfd and timerfd");
    int counter = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
    uint64_t value = 0x100000000;
    RESULT(write(counter, &value, 8));
    RESULT(read(counter, &value, 8));
    VALUE(value);
    RESULT(read(counter, &value, 4));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec when = {{5000000000LL, 1}, {4000000000LL, 2}}, now;
    RESULT(timerfd_settime(timer, 0, &when, NULL));
    RESULT(timerfd_gettime(timer, &now));
    IS(now.it_value.tv_sec > 3999999000LL && now.it_interval.tv_sec == 5000000000LL);
    RESULT(read(timer, &value, 8));
    when = (struct itimerspec){{0, 0}, {0, 1000000}};
    RESULT(timerfd_settime(timer, 0, &when, &now));
    IS(now.it_interval.tv_sec == 5000000000LL);
    RESULT(poll(&(struct pollfd){timer, POLLIN, 0}, 1, 5000));
    RESULT(read(timer, &value, 8));
    VALUE(value);
    RESULT(timerfd_settime(counter, 0, &when, NULL));

    say("signalfd");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_NONBLOCK);
    struct signalfd_siginfo info;
    VALUE(sizeof info);
    RESULT(read(signals, &info, sizeof info));
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_ptr = (void *)0xfedcba98});
    RESULT(read(signals, &info, sizeof info));
    say("signo %s code %d int %d pid %d", info.ssi_signo == (unsigned)SIGRTMIN ? "RTMIN" : "other",
        info.ssi_code, info.ssi_int, info.ssi_pid == (unsigned)getpid());
    HEX(info.ssi_ptr & 0xffffffff);
    pid_t child = fork();
    if (child == 0)
        _exit(19);
    RESULT(poll(&(struct pollfd){signals, POLLIN, 0}, 1, 5000));
    RESULT(read(signals, &info, sizeof info));
    say("signo %d code %d status %d pid %d", info.ssi_signo, info.ssi_code, info.ssi_status,
        info.ssi_pid == (unsigned)child);
    RESULT(read(signals, &info, 10));
    RESULT(syscall(SYS_signalfd4, -1, &set, 4, 0));
    RESULT(signalfd(ends[0], &set, 0));
    ended("child", child);

    say("inotify");
    int watcher = inotify_init1(IN_NONBLOCK);
    mkdir("watched", 0700);
    RESULT(inotify_add_watch(watcher, "watched", IN_CREATE | IN_DELETE | IN_MOVE));
    RESULT(inotify_add_watch(watcher, "missing", IN_CREATE));
    close(open("watched/one", O_CREAT | O_RDWR, 0600));
    rename("watched/one", "watched/two");
    unlink("watched/two");
    char room[1024] __attribute__((aligned(8)));
    int length = read(watcher, room, sizeof room);
    for (int at = 0; at < length;) {
        struct inotify_event *one = (void *)(room + at);
        say("  %#x \"%s\", cookie %d", one->mask, one->len ? one->name : "", one->cookie != 0);
        at += sizeof *one + one->len;
    }
    RESULT(read(watcher, room, sizeof room));
    RESULT(inotify_rm_watch(watcher, 1));
    RESULT(inotify_rm_watch(watcher, 1));
    return 0;
}
