/*
 * setsockopt and getsockopt, rows 541 and 542.
 */
#include "transcript.h"
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

static void print_option(int fd, const char *what, int level, int name, int size) {
    unsigned char value[64];
    memset(value, 0xee, sizeof value);
    socklen_t length = size;
    int result = getsockopt(fd, level, name, value, &length);
    say("%s with %d bytes: %s, %d bytes", what, size, result ? error_name(errno) : "0", (int)length);
    if (result == 0)
        bytes("  value", value, length < 24 ? length + 2 : 24);
}
#define OPTION(fd, level, name, size) print_option(fd, #name, level, name, size)

int main(void) {
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0), ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    int yes = 1;
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
    OPTION(tcp, SOL_SOCKET, SO_REUSEADDR, 4);
    OPTION(tcp, SOL_SOCKET, SO_TYPE, 4);
    OPTION(tcp, SOL_SOCKET, SO_TYPE, 2);
    OPTION(tcp, SOL_SOCKET, SO_ERROR, 8);
    OPTION(tcp, SOL_SOCKET, SO_DOMAIN, 4);
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &yes, 2));
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, (void *)8, 4));
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &yes, -1));

    say("times");
    VALUE(sizeof(struct timeval));
    struct timeval time = {3, 500000};
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &time, 8));
    OPTION(tcp, SOL_SOCKET, SO_RCVTIMEO, 16);
    OPTION(tcp, SOL_SOCKET, SO_RCVTIMEO, 8);
    OPTION(tcp, SOL_SOCKET, SO_SNDTIMEO, 16);
    time = (struct timeval){0, 1000000};
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    time = (struct timeval){0, 20000};
    RESULT(setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    char room[8];
    RESULT(recv(udp, room, sizeof room, 0));

    say("structures");
    struct linger linger = {1, 7};
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    OPTION(tcp, SOL_SOCKET, SO_LINGER, 8);
    RESULT(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, 4));
    struct ucred who;
    socklen_t length = sizeof who;
    RESULT(getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &who, &length));
    IS(who.pid == getpid() && who.uid == getuid() && who.gid == getgid());

    say("filters");
    struct sock_filter accept_short[] = {
        {BPF_LD | BPF_W | BPF_LEN, 0, 0, 0},
        {BPF_JMP | BPF_JGT | BPF_K, 1, 0, 4},
        {BPF_RET | BPF_K, 0, 0, 0xffff},
        {BPF_RET | BPF_K, 0, 0, 0},
    };
    struct sock_fprog program = {4, accept_short};
    VALUE(sizeof program);
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    RESULT(send(ends[0], "123", 3, 0));
    RESULT(send(ends[0], "123456", 6, 0));
    RESULT(send(ends[0], "1234", 4, 0));
    RESULT(recv(ends[1], room, sizeof room, MSG_DONTWAIT));
    RESULT(recv(ends[1], room, sizeof room, MSG_DONTWAIT));
    RESULT(recv(ends[1], room, sizeof room, MSG_DONTWAIT));
    struct sock_filter back[8];
    length = 8;
    RESULT(getsockopt(ends[1], SOL_SOCKET, SO_GET_FILTER, back, &length));
    VALUE(length);
    IS(memcmp(back, accept_short, sizeof accept_short) == 0);
    length = 0;
    RESULT(getsockopt(ends[1], SOL_SOCKET, SO_GET_FILTER, back, &length));
    VALUE(length);
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_DETACH_FILTER, &yes, sizeof yes));
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_DETACH_FILTER, &yes, sizeof yes));
    program.len = 0;
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    program = (struct sock_fprog){4, (void *)8};
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    program = (struct sock_fprog){1, accept_short};
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    program = (struct sock_fprog){4, accept_short};
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, 4));
    RESULT(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, 16));

    say("protocols");
    OPTION(udp, IPPROTO_IP, IP_TTL, 4);
    OPTION(udp, IPPROTO_IP, IP_TTL, 1);
    int tos = 16;
    RESULT(setsockopt(udp, IPPROTO_IP, IP_TOS, &tos, sizeof tos));
    OPTION(udp, IPPROTO_IP, IP_TOS, 4);
    struct ip_mreqn group = {.imr_multiaddr.s_addr = htonl(0xe0000105), .imr_ifindex = 1};
    RESULT(setsockopt(udp, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    RESULT(setsockopt(udp, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    RESULT(setsockopt(udp, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group));
    struct group_req request = {.gr_interface = 1};
    struct sockaddr_in *to = (void *)&request.gr_group;
    to->sin_family = AF_INET, to->sin_addr.s_addr = htonl(0xe0000106);
    RESULT(setsockopt(udp, IPPROTO_IP, MCAST_JOIN_GROUP, &request, sizeof request));
    RESULT(setsockopt(udp, IPPROTO_IP, MCAST_JOIN_GROUP, &request, sizeof request));
    RESULT(setsockopt(udp, IPPROTO_IP, MCAST_LEAVE_GROUP, &request, sizeof request));
    RESULT(setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
    OPTION(tcp, IPPROTO_TCP, TCP_NODELAY, 4);
    say("control messages as a value");
    OPTION(tcp, IPPROTO_IP, IP_PKTOPTIONS, 64);
    RESULT(setsockopt(tcp, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes));
    RESULT(setsockopt(tcp, IPPROTO_IP, IP_RECVTTL, &yes, sizeof yes));
    RESULT(setsockopt(tcp, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes));
    const int sizes[] = {0, 11, 12, 22, 24, 35, 36, 39, 40, 53, 56, 63};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        OPTION(tcp, IPPROTO_IP, IP_PKTOPTIONS, sizes[i]);
    OPTION(tcp, IPPROTO_IP, IP_PKTOPTIONS, -1);
    OPTION(udp, IPPROTO_IP, IP_PKTOPTIONS, 64);
    RESULT(getsockopt(tcp, IPPROTO_IP, IP_PKTOPTIONS, room, (void *)8));
    RESULT(getsockopt(-1, IPPROTO_IP, IP_PKTOPTIONS, room, (void *)8));
    struct tcp_info info;
    length = sizeof info;
    RESULT(getsockopt(tcp, IPPROTO_TCP, TCP_INFO, &info, &length));
    VALUE(info.tcpi_state);
    RESULT(setsockopt(udp, 4711, 1, &yes, sizeof yes));
    RESULT(setsockopt(udp, SOL_SOCKET, 4711, &yes, sizeof yes));
    RESULT(setsockopt(-1, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
    return 0;
}
