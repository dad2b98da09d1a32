/* A program that others start, in x32 and in x86-64: tells what it was started with, or does what its first
 * word says. */
#include "transcript.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

extern char **environ;

static const char *mask(int (*fill)(sigset_t *)) {
    static char text[512];
    sigset_t set;
    sigemptyset(&set);
    fill(&set);
    text[0] = 0;
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&set, number) == 1 && sigabbrev_np(number))
            strcat(strcat(text, " "), sigabbrev_np(number));
    return text;
}

static int blocked(sigset_t *set) { return sigprocmask(SIG_BLOCK, NULL, set); }
static int pending(sigset_t *set) { return sigpending(set); }
static int ignored(sigset_t *set) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            sigaddset(set, number);
    }
    return 0;
}

/* Sends a descriptor on which ioctl(SECCOMP_IOCTL_NOTIF_RECV) waits for ever, and stays until killed. */
static int notifications(int socket) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {1, allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    char room[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    if (fd < 0 || sendmsg(socket, &message, 0) != 1)
        return 1;
    for (;;)
        pause();
}

int main(int count, char **words) {
    const char *verb = count > 1 ? words[1] : "";
    if (strcmp(verb, "exit") == 0)
        return atoi(words[2]);
    if (strcmp(verb, "kill") == 0)
        return raise(atoi(words[2]));
    if (strcmp(verb, "notifications") == 0)
        return notifications(atoi(words[2]));
    if (strcmp(verb, "sizes") == 0) {
        long cells = 0, length = 0;
        for (char **one = environ; *one; one++)
            cells++, length += strlen(*one) + 1;
        say("child: %d words, %ld variables of %ld bytes", count, cells, length);
        return 0;
    }
    if (strcmp(verb, "state") == 0) {
        say("child: blocked%s", mask(blocked));
        say("child: pending%s", mask(pending));
        say("child: ignored%s", mask(ignored));
        for (int fd = 0; fd < 32; fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                say("child: descriptor %d is open", fd);
        stack_t stack;
        sigaltstack(NULL, &stack);
        say("child: alternate stack %s", stack.ss_flags & SS_DISABLE ? "off" : "on");
        return 0;
    }
    say("child: pointers of %zu bytes", sizeof(void *));
    for (int i = 0; i < count; i++) {
        const char *base = strrchr(words[i], '/');
        say("child: word %d is \"%s\"", i, base ? base + 1 : words[i]);
    }
    for (char **one = environ; *one; one++)
        if (strncmp(*one, "PROGRAMS=", 9) != 0)
            say("child: variable \"%s\"", *one);
    return 7;
}
