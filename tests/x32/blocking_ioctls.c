/*
 * A blocking ioctl that no 64-bit program's number or structure stands for: a signal with a handler
 * interrupts it, and one without ends the process, after a handler too.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static volatile int *handled;
static void handler(int number) {
    (void)number;
    ++*handled;
}

static int receive(int socket) {
    int fd = -1;
    char room[CMSG_SPACE(sizeof fd)], byte;
    struct iovec one = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static int waits(pid_t child) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    int fd = open(path, O_RDONLY);
    read(fd, text, sizeof text - 1);
    close(fd);
    char *end = strrchr(text, ')');
    return end && end[2] == 'S';
}
static void until_it_waits(pid_t child) {
    for (int seen = 0; seen < 3; seen = waits(child) ? seen + 1 : 0)
        poll(NULL, 0, 10);
}

static pid_t waiting_for(int fd, int flags, int times) {
    pid_t child = fork();
    if (child != 0) {
        until_it_waits(child);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < times; i++) {
        struct seccomp_notif notification = {0};
        int result = ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &notification);
        if (!(flags & SA_RESTART))
            say("ioctl: %s", result < 0 ? error_name(errno) : "done");
    }
    _exit(*handled);
}

static void deliver(pid_t child, int number) {
    int before = *handled;
    kill(child, number);
    while (number == SIGUSR1 && *handled == before)
        poll(NULL, 0, 1);
}

int main(void) {
    int sockets[2], count_file = open("count", O_RDWR | O_CREAT | O_EXCL, 0600);
    ftruncate(count_file, 4096);
    handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, count_file, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    pid_t helper = fork();
    if (helper == 0) {
        char path[512], number[16];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(path, sizeof path, "%s/child-x86-64", getenv("PROGRAMS"));
        snprintf(number, sizeof number, "%d", sockets[1]);
        execl(path, "child", "notifications", number, NULL);
        _exit(126);
    }
    int fd = receive(sockets[0]);
    IS(fd >= 0);

    pid_t child = waiting_for(fd, 0, 3);
    for (int i = 0; i < 3; i++) {
        deliver(child, SIGUSR1);
        if (i < 2)
            until_it_waits(child);
    }
    ended("three signals", child);
    child = waiting_for(fd, 0, 1);
    kill(child, SIGTERM);
    ended("ended by default", child);
    child = waiting_for(fd, SA_RESTART, 1000);
    for (int i = 0; i < 3; i++) {
        deliver(child, SIGUSR1);
        until_it_waits(child);
    }
    kill(child, SIGTERM);
    ended("ended after a handler", child);
    kill(helper, SIGKILL);
    ended("helper", helper);
    return 0;
}
