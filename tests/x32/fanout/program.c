/*
 * PACKET_FANOUT_DATA: a filter, whose structure has a pointer. In a namespace of the program's own, where it
 * may have packets.
 */
#include "transcript.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <sys/socket.h>

int main(void) {
    struct sock_filter first[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog program = {1, first}, none = {0, first}, nowhere = {1, (void *)8};
    int by_filter = 1 | PACKET_FANOUT_CBPF << 16, no_descriptor = -1;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        say("not here");
        return 0;
    }
    int file = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = 1};
    SUCCESS(file);
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program));
    RESULT(bind(file, (void *)&address, sizeof address));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT, &by_filter, sizeof by_filter));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &none, sizeof none));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &nowhere, sizeof nowhere));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program - 1));
    RESULT(setsockopt(file, SOL_PACKET, PACKET_FANOUT_DATA, &no_descriptor, sizeof no_descriptor));
    return 0;
}
