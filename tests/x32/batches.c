/*
 * sendmmsg and recvmmsg, rows 538 and 537.
 */
#include "transcript.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

enum { MANY = 4 };
static struct mmsghdr batch[MANY];
static struct iovec parts[MANY];
static char rooms[MANY][16];

static void prepare(int receiving) {
    memset(batch, 0, sizeof batch);
    for (int i = 0; i < MANY; i++) {
        if (receiving)
            memset(rooms[i], 0, sizeof rooms[i]);
        else
            snprintf(rooms[i], sizeof rooms[i], "message %d", i);
        parts[i] = (struct iovec){rooms[i], receiving ? 15 : 9};
        batch[i].msg_hdr.msg_iov = &parts[i];
        batch[i].msg_hdr.msg_iovlen = 1;
        batch[i].msg_len = 77;
    }
}
static void print_batch(int count) {
    for (int i = 0; i < count; i++)
        say("  %u bytes, flags %#x: \"%s\"", batch[i].msg_len, batch[i].msg_hdr.msg_flags, rooms[i]);
}

int main(void) {
    VALUE(sizeof(struct mmsghdr));
    int ends[2];
    RESULT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    prepare(0);
    RESULT(sendmmsg(ends[0], batch, MANY, 0));
    print_batch(MANY);
    prepare(1);
    RESULT(recvmmsg(ends[1], batch, 2, 0, NULL));
    print_batch(3);
    prepare(1);
    struct timespec limit = {1, 500000000};
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_WAITFORONE, &limit));
    print_batch(MANY);
    IS(limit.tv_sec <= 1);
    limit = (struct timespec){0, 0};
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_DONTWAIT, &limit));
    limit = (struct timespec){0, -1};
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_DONTWAIT, &limit));
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_DONTWAIT, (void *)8));
    RESULT(recvmmsg(ends[1], (void *)8, MANY, MSG_DONTWAIT, NULL));
    RESULT(sendmmsg(ends[0], (void *)8, MANY, 0));
    RESULT(sendmmsg(ends[0], batch, 0, 0));
    RESULT(sendmmsg(-1, batch, 1, 0));

    say("a wrong one in the middle");
    prepare(0);
    parts[2].iov_base = (void *)8;
    RESULT(sendmmsg(ends[0], batch, MANY, 0));
    print_batch(MANY);
    prepare(1);
    parts[1].iov_base = (void *)8;
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_DONTWAIT, NULL));
    print_batch(1);
    RESULT(recvmmsg(ends[1], batch, MANY, MSG_DONTWAIT, NULL));

    say("with names");
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       senders[MANY];
    bind(to, (void *)&address, sizeof address);
    socklen_t length = sizeof address;
    getsockname(to, (void *)&address, &length);
    prepare(0);
    for (int i = 0; i < MANY; i++) {
        batch[i].msg_hdr.msg_name = &address;
        batch[i].msg_hdr.msg_namelen = sizeof address;
    }
    RESULT(sendmmsg(from, batch, MANY, 0));
    prepare(1);
    for (int i = 0; i < MANY; i++) {
        batch[i].msg_hdr.msg_name = &senders[i];
        batch[i].msg_hdr.msg_namelen = sizeof senders[i];
    }
    RESULT(recvmmsg(to, batch, MANY, 0, NULL));
    print_batch(MANY);
    IS(senders[0].sin_port == senders[3].sin_port && senders[0].sin_family == AF_INET);
    VALUE(batch[3].msg_hdr.msg_namelen);
    return 0;
}
