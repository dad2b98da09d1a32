/*
 * sendmmsg and recvmmsg, rows 538 and 537.
 */
#include "transcript.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

static void connect_tcp(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&address, sizeof address);
    getsockname(listener, (void *)&address, &length);
    listen(listener, 1);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    connect(ends[0], (void *)&address, sizeof address);
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
}

enum { HALF = 1 << 16 };
/* The second half of the first message cannot be read. */
static void send_a_part(const int ends[2]) {
    char *text = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(text + HALF, HALF, PROT_NONE);
    prepare(0);
    parts[0] = (struct iovec){text, 2 * HALF};
    RESULT(sendmmsg(ends[0], batch, MANY, MSG_DONTWAIT));
    int waiting = 0;
    ioctl(ends[1], FIONREAD, &waiting);
    IS(batch[0].msg_len > 0 && batch[0].msg_len <= HALF && waiting == (int)batch[0].msg_len);
    VALUE(batch[1].msg_len);
    munmap(text, 2 * HALF);
}

static unsigned segments_sent(int end) {
    unsigned info[64] = {0}; /* struct tcp_info of <linux/tcp.h>, which is longer than the C library's */
    socklen_t length = sizeof info;
    getsockopt(end, IPPROTO_TCP, TCP_INFO, info, &length);
    return info[156 / sizeof info[0]]; /* tcpi_data_segs_out */
}
/* Two messages in one segment, but where the first one's flags end it. */
static void send_corked(int flags) {
    int ends[2], on = 1, off = 0;
    connect_tcp(ends);
    setsockopt(ends[0], IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    prepare(0);
    batch[0].msg_hdr.msg_flags = flags;
    RESULT(sendmmsg(ends[0], batch, 2, 0));
    setsockopt(ends[0], IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    VALUE(segments_sent(ends[0]));
    close(ends[0]), close(ends[1]);
}

enum { LONG_BATCH = 1500 };
static struct mmsghdr long_batch[LONG_BATCH];
static void send_long_batch(const int ends[2]) {
    struct iovec part = {rooms[0], 1};
    for (int i = 0; i < LONG_BATCH; i++)
        long_batch[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    RESULT(sendmmsg(ends[0], long_batch, LONG_BATCH, 0));
    RESULT(sendmmsg(ends[0], long_batch, LONG_BATCH - 1024, 0));
    RESULT(recvmmsg(ends[1], long_batch, LONG_BATCH, 0, NULL));
}

static void receive_urgent(const int ends[2]) {
    RESULT(send(ends[0], "!", 1, MSG_OOB));
    RESULT(poll(&(struct pollfd){ends[1], POLLPRI, 0}, 1, 10000));
    prepare(1);
    parts[0].iov_len = 1;
    RESULT(recvmmsg(ends[1], batch, 2, MSG_OOB | MSG_PEEK, NULL));
    print_batch(2);
}

/* One end closes before it has read everything. */
static void receive_kept_error(void) {
    int ends[2];
    connect_tcp(ends);
    write(ends[0], "unread", 6);
    write(ends[1], "to read", 7);
    RESULT(poll(&(struct pollfd){ends[1], POLLIN, 0}, 1, 10000));
    RESULT(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, 10000));
    close(ends[1]);
    RESULT(poll(&(struct pollfd){ends[0], 0, 0}, 1, 10000));
    prepare(1);
    RESULT(recvmmsg(ends[0], (void *)8, 1, MSG_DONTWAIT, NULL));
    RESULT(recvmmsg(ends[0], batch, 1, MSG_DONTWAIT, NULL));
    print_batch(1);
    close(ends[0]);
}

static void receive_with_limits(const int ends[2]) {
    struct timespec *kept = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct timespec limit = {INT64_MAX, 999999999};
    RESULT(write(ends[0], "one", 3));
    RESULT(write(ends[0], "two", 3));
    prepare(1);
    RESULT(recvmmsg(ends[1], batch, 1, 0, &limit));
    IS(limit.tv_sec > INT64_MAX / 2);
    RESULT(recvmmsg(ends[1], batch, 1, 0, kept));
    RESULT(recvmmsg(ends[1], batch, 1, MSG_DONTWAIT, kept));
    limit = (struct timespec){5, 1};
    RESULT(recvmmsg(ends[1], batch, 1, MSG_DONTWAIT, &limit));
    IS(limit.tv_sec == 5 && limit.tv_nsec == 1);
    munmap(kept, 4096);
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

    say("a part of a message");
    int streams[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, streams);
    send_a_part(streams);
    connect_tcp(streams);
    send_a_part(streams);
    say("flags of one message");
    send_corked(0);
    send_corked(MSG_EOR);
    send_corked(MSG_OOB);
    say("more than 1024");
    connect_tcp(streams);
    send_long_batch(streams);
    say("out of band");
    receive_urgent(streams);
    say("an error that the socket has kept");
    receive_kept_error();
    say("limits of time");
    receive_with_limits(ends);
    return 0;
}
