/*
 * What sockets answer where registers hold more than 32 bits of an address, as musl's do that extends a
 * pointer's sign, and where both the descriptor and the rest are wrong: which error it is.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* `syscall()` would cut them off. */
static long long made(int number, int fd, unsigned long long b, unsigned long long c, unsigned long long d,
                      unsigned long long e) {
    unsigned long long result;
    register unsigned long long fourth __asm__("r10") = d;
    register unsigned long long fifth __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"((long long)fd), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    if (result > -4096ULL) {
        errno = (int)-result;
        return -1;
    }
    return (long long)result;
}

#define WIDE(pointer) (0xffffffff00000000ULL | (uintptr_t)(pointer))
#define NARROW(pointer) ((uintptr_t)(pointer))

int main(void) {
    int pair[2], udp = socket(AF_INET, SOCK_DGRAM, 0), file = open("/dev/null", O_RDWR);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    char text[16] = "text";
    struct iovec piece = {text, 4};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct msghdr many = {.msg_iov = &piece, .msg_iovlen = 2000};
    char control[16] = {3};
    struct msghdr short_control = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 16};
    struct mmsghdr batch = {.msg_hdr = message};
    RESULT(made(SYS_sendmsg, pair[0], NARROW(&message), 0, 0, 0));
    for (int i = 0; i < 3; i++) {
        int fd = i == 0 ? pair[0] : i == 1 ? file : -1;
        say(i == 0 ? "a socket" : i == 1 ? "no socket" : "no descriptor");
        RESULT(made(SYS_sendmsg, fd, WIDE(&message), 0, 0, 0));
        RESULT(made(SYS_sendmsg, fd, 8, 0, 0, 0));
        RESULT(made(SYS_sendmsg, fd, NARROW(&many), 0, 0, 0));
        RESULT(made(SYS_sendmsg, fd, NARROW(&short_control), 0, 0, 0));
        RESULT(made(SYS_sendmmsg, fd, WIDE(&batch), 1, 0, 0));
        RESULT(made(SYS_recvmsg, fd, WIDE(&message), MSG_DONTWAIT, 0, 0));
        RESULT(made(SYS_recvmsg, fd, 8, MSG_DONTWAIT, 0, 0));
        RESULT(made(SYS_recvmsg, fd, NARROW(&many), MSG_DONTWAIT, 0, 0));
        RESULT(made(SYS_recvmmsg, fd, WIDE(&batch), 1, MSG_DONTWAIT, 0));
        RESULT(made(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, 8, 8));
        RESULT(made(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, WIDE(text), 8));
        RESULT(made(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, NARROW(text), 4));
    }
    say("groups");
    struct group_req group = {.gr_interface = 1, .gr_group = {.ss_family = AF_INET}};
    ((struct sockaddr_in *)&group.gr_group)->sin_addr.s_addr = htonl(0xe0000101);
    RESULT(made(SYS_setsockopt, udp, IPPROTO_IP, MCAST_JOIN_GROUP, WIDE(&group), sizeof group));
    RESULT(made(SYS_setsockopt, udp, IPPROTO_IP, MCAST_JOIN_GROUP, NARROW(&group), sizeof group));
    return 0;
}
