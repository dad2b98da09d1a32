/*
 * Control messages of protocols, several in one message, and times in them.
 */
#include "transcript.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

static union {
    struct cmsghdr align;
    char room[512];
} control;

static void received(int from, size_t room, int flags) {
    char text[32] = "";
    struct iovec part = {text, 31};
    struct sockaddr_in name;
    memset(&control, 0xee, sizeof control);
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof name,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = room};
    poll(&(struct pollfd){from, POLLIN, 0}, 1, 5000);
    long result = recvmsg(from, &message, flags);
    say("recvmsg: %ld %s, flags %#x, control %d", result, result < 0 ? error_name(errno) : text,
        message.msg_flags, (int)message.msg_controllen);
    if (result < 0)
        return;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        say("  level %d type %d length %d", one->cmsg_level, one->cmsg_type, (int)one->cmsg_len);
        if (one->cmsg_level == IPPROTO_IP)
            bytes("  data", CMSG_DATA(one), one->cmsg_len - CMSG_LEN(0));
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec when;
            memcpy(&when, CMSG_DATA(one), sizeof when);
            IS(one->cmsg_len == CMSG_LEN(sizeof when));
            IS(when.tv_sec > 1577836800 && when.tv_nsec >= 0 && when.tv_nsec < 1000000000);
        }
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
            for (unsigned i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / 4; i++)
                close(((int *)CMSG_DATA(one))[i]);
    }
}

int main(void) {
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bind(to, (void *)&address, sizeof address);
    socklen_t length = sizeof address;
    getsockname(to, (void *)&address, &length);
    RESULT(connect(from, (void *)&address, sizeof address));
    RESULT(setsockopt(to, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes));
    RESULT(setsockopt(to, IPPROTO_IP, IP_RECVTTL, &yes, sizeof yes));
    RESULT(setsockopt(to, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes));
    RESULT(setsockopt(to, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes));
    RESULT(send(from, "one", 3, 0));
    received(to, sizeof control, 0);
    RESULT(send(from, "two", 3, 0));
    received(to, CMSG_SPACE(sizeof(struct timespec)) + 20, MSG_PEEK);
    received(to, CMSG_SPACE(sizeof(struct timespec)), MSG_PEEK);
    received(to, 0, 0);

    say("sent with control messages");
    memset(&control, 0, sizeof control);
    struct iovec part = {"three", 5};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = CMSG_SPACE(4) * 2};
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    *one = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_TTL, .cmsg_len = CMSG_LEN(4)};
    *(int *)CMSG_DATA(one) = 33;
    one = CMSG_NXTHDR(&message, one);
    *one = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_TOS, .cmsg_len = CMSG_LEN(4)};
    *(int *)CMSG_DATA(one) = 8;
    RESULT(sendmsg(from, &message, 0));
    received(to, sizeof control, 0);
    message.msg_controllen = sizeof control;
    one->cmsg_type = 99;
    RESULT(sendmsg(from, &message, 0));

    say("descriptors and credentials in one message");
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
    memset(&control, 0, sizeof control);
    message.msg_controllen = CMSG_SPACE(12) + CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4);
    one = CMSG_FIRSTHDR(&message);
    *one = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(12)};
    memcpy(CMSG_DATA(one), (int[]){0, 1, 2}, 12);
    one = CMSG_NXTHDR(&message, one);
    *one = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS, .cmsg_len = CMSG_LEN(sizeof(struct ucred))};
    struct ucred who = {getpid(), getuid(), getgid()};
    memcpy(CMSG_DATA(one), &who, sizeof who);
    one = CMSG_NXTHDR(&message, one);
    *one = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(4)};
    memcpy(CMSG_DATA(one), &yes, 4);
    RESULT(sendmsg(ends[0], &message, 0));
    received(ends[1], sizeof control, 0);
    who.pid = 1;
    memcpy((char *)control.room + CMSG_SPACE(12), "", 0);
    one = (struct cmsghdr *)control.room;
    *one = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS, .cmsg_len = CMSG_LEN(sizeof who)};
    memcpy(CMSG_DATA(one), &who, sizeof who);
    message.msg_controllen = CMSG_SPACE(sizeof who);
    RESULT(sendmsg(ends[0], &message, 0));
    /* An odd number of descriptors leaves no padding in x32, where control messages are aligned to 4. */
    for (int count = 1; count < 5; count++) {
        memset(&control, 0, sizeof control);
        message.msg_controllen = CMSG_SPACE(count * 4);
        one = CMSG_FIRSTHDR(&message);
        *one = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * 4)};
        memcpy(CMSG_DATA(one), (int[]){0, 1, 2, 0}, count * 4);
        RESULT(sendmsg(ends[0], &message, 0));
        received(ends[1], sizeof control, 0);
    }

    say("errors queued");
    close(to);
    RESULT(setsockopt(from, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes));
    RESULT(send(from, "to nobody", 9, 0));
    poll(&(struct pollfd){from, POLLERR, 0}, 1, 5000);
    memset(&control, 0, sizeof control);
    char text[16] = "";
    part = (struct iovec){text, 15};
    message = (struct msghdr){
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control};
    RESULT(recvmsg(from, &message, MSG_ERRQUEUE));
    TEXT(text);
    one = CMSG_FIRSTHDR(&message);
    IS(one != NULL);
    if (one)
        say("level %d type %d length %d errno %s", one->cmsg_level, one->cmsg_type, (int)one->cmsg_len,
            error_name(*(int *)CMSG_DATA(one)));
    return 0;
}
