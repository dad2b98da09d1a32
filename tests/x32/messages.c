/*
 * sendmsg, recvmsg and their control messages (rows 518, 519), recvfrom (517).
 */
#include "transcript.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

static void print_control(struct msghdr *message) {
    say("control: %d bytes, flags %#x", (int)message->msg_controllen, message->msg_flags);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        say("  level %d type %d length %d", one->cmsg_level, one->cmsg_type, (int)one->cmsg_len);
        if (one->cmsg_level != SOL_SOCKET)
            continue;
        if (one->cmsg_type == SCM_RIGHTS)
            for (unsigned i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                int fd;
                char text[8] = "";
                memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
                say("  descriptor: %s, close on exec %d, pread %d, \"%s\"", fd > 2 ? "new" : "odd",
                    fcntl(fd, F_GETFD), (int)pread(fd, text, 7, 0), text);
                close(fd);
            }
        if (one->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(one), sizeof who);
            say("  pid %s, uid %s", who.pid == getpid() ? "ours" : "other",
                who.uid == getuid() ? "ours" : "other");
        }
        if (one->cmsg_type == SCM_TIMESTAMP) {
            long long cells[2] = {0};
            memcpy(cells, CMSG_DATA(one), one->cmsg_len - CMSG_LEN(0) < 16 ? 0 : 16);
            say("  timestamp after 2020: %d", cells[0] > 1577836800);
        }
    }
}

static union {
    struct cmsghdr align;
    char room[512];
} control;
static char text[64], more[64];
static struct iovec parts[2] = {{text, 3}, {more, 60}};

static int received(int from, size_t room, int flags) {
    memset(&control, 0, sizeof control);
    memset(text, 0, sizeof text), memset(more, 0, sizeof more);
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = control.room, .msg_controllen = room};
    int result = recvmsg(from, &message, flags);
    print_result("recvmsg", result);
    if (result >= 0) {
        say("\"%s\" \"%s\"", text, more);
        print_control(&message);
    }
    return result;
}

int main(void) {
    VALUE(sizeof(struct msghdr));
    VALUE(sizeof(struct cmsghdr));
    VALUE(CMSG_LEN(4));
    VALUE(CMSG_SPACE(4));
    int ends[2];
    RESULT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    int file = open("file", O_RDWR | O_CREAT, 0600);
    write(file, "content", 7);
    struct iovec out[2] = {{"hello ", 6}, {"world", 5}};
    struct msghdr message = {.msg_iov = out, .msg_iovlen = 2};
    RESULT(sendmsg(ends[0], &message, 0));
    received(ends[1], sizeof control, 0);

    say("descriptors");
    message.msg_control = control.room;
    for (int count = 1; count <= 3; count++) {
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
        for (int i = 0; i < count; i++)
            memcpy(CMSG_DATA(head) + i * sizeof file, &file, sizeof file);
        for (int room = 0; room < 3; room++) {
            control.align = (struct cmsghdr){
                .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
            for (int i = 0; i < count; i++)
                memcpy(CMSG_DATA(head) + i * sizeof file, &file, sizeof file);
            RESULT(sendmsg(ends[0], &message, 0));
            size_t rooms[] = {sizeof control, CMSG_SPACE(sizeof(int)), sizeof(struct cmsghdr) - 1};
            received(ends[1], rooms[room], MSG_CMSG_CLOEXEC);
        }
    }
    say("wrong control messages");
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    *head = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    int bad = 250;
    memcpy(CMSG_DATA(head), &bad, sizeof bad);
    RESULT(sendmsg(ends[0], &message, 0));
    head->cmsg_len = 4;
    RESULT(sendmsg(ends[0], &message, 0));
    head->cmsg_len = 4000;
    RESULT(sendmsg(ends[0], &message, 0));
    head->cmsg_len = CMSG_LEN(sizeof(int));
    head->cmsg_type = 99;
    RESULT(sendmsg(ends[0], &message, 0));
    message.msg_control = (void *)8;
    RESULT(sendmsg(ends[0], &message, 0));
    message.msg_control = NULL, message.msg_controllen = 0;

    say("credentials and timestamps");
    int yes = 1;
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes));
    RESULT(sendmsg(ends[0], &message, 0));
    received(ends[1], sizeof control, 0);
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_TIMESTAMP, &yes, sizeof yes));
    RESULT(sendmsg(ends[0], &message, 0));
    received(ends[1], sizeof control, 0);
    RESULT(sendmsg(ends[0], &message, 0));
    received(ends[1], CMSG_SPACE(sizeof(struct ucred)), 0);

    say("errors");
    RESULT(sendmsg(ends[0], (struct msghdr *)8, 0));
    RESULT(recvmsg(ends[0], (struct msghdr *)8, MSG_DONTWAIT));
    RESULT(recvmsg(ends[0], &message, MSG_DONTWAIT));
    message.msg_iovlen = 1025;
    RESULT(sendmsg(ends[0], &message, 0));
    message.msg_iovlen = 1, message.msg_iov = (void *)8;
    RESULT(sendmsg(ends[0], &message, 0));
    message.msg_iov = out;
    RESULT(sendmsg(file, &message, 0));
    RESULT(sendmsg(-1, &message, 0));
    message.msg_name = (void *)8, message.msg_namelen = 16;
    RESULT(sendmsg(ends[0], &message, 0));

    say("names");
    int one = socket(AF_INET, SOCK_DGRAM, 0), two = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
    RESULT(bind(two, (void *)&address, sizeof address));
    socklen_t length = sizeof address;
    RESULT(getsockname(two, (void *)&address, &length));
    message =
        (struct msghdr){.msg_iov = out, .msg_iovlen = 2, .msg_name = &address, .msg_namelen = sizeof address};
    RESULT(sendmsg(one, &message, 0));
    message =
        (struct msghdr){.msg_iov = parts, .msg_iovlen = 2, .msg_name = &from, .msg_namelen = sizeof from};
    parts[1].iov_len = 2;
    RESULT(recvmsg(two, &message, MSG_TRUNC));
    say("name of %d bytes, family %d, loopback %d, flags %#x", (int)message.msg_namelen, from.sin_family,
        from.sin_addr.s_addr == htonl(INADDR_LOOPBACK), message.msg_flags);
    RESULT(sendto(one, "datagram", 8, 0, (void *)&address, sizeof address));
    memset(&from, 0, sizeof from);
    length = 8;
    RESULT(recvfrom(two, text, sizeof text, 0, (void *)&from, &length));
    say("length %d, family %d", (int)length, from.sin_family);
    RESULT(recvfrom(two, text, sizeof text, MSG_DONTWAIT, NULL, NULL));
    RESULT(recvfrom(two, (void *)8, 4, MSG_DONTWAIT, NULL, NULL));
    return 0;
}
