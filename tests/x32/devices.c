/*
 * More ioctls, row 514: structures with longs or pointers behind them, devices, and what has no handler for
 * x32.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <termios.h>

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

int main(void) {
    say("interfaces, with pointers and longs");
    int network = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    struct ethtool_value value = {.cmd = ETHTOOL_GLINK, .data = 77};
    request.ifr_data = (void *)&value;
    RESULT(ioctl(network, SIOCETHTOOL, &request));
    VALUE(value.data);
    request.ifr_data = (void *)8;
    RESULT(ioctl(network, SIOCETHTOOL, &request));
    memset(&request.ifr_map, 0xee, sizeof request.ifr_map);
    RESULT(ioctl(network, SIOCGIFMAP, &request));
    say("map: %lx %lx %x %x %x %x", (long)request.ifr_map.mem_start, (long)request.ifr_map.mem_end,
        request.ifr_map.base_addr, request.ifr_map.irq, request.ifr_map.dma, request.ifr_map.port);
    RESULT(ioctl(network, SIOCSIFMAP, &request));
    RESULT(ioctl(network, SIOCGIFTXQLEN, &request));
    IS(request.ifr_qlen >= 0);
    RESULT(ioctl(network, SIOCGIFNETMASK, &request));
    RESULT(ioctl(network, SIOCGIFBRDADDR, &request));
    RESULT(ioctl(network, SIOCGIFMETRIC, &request));
    RESULT(ioctl(network, SIOCSIFMTU, &request));
    RESULT(ioctl(network, SIOCADDRT, (void *)8));
    RESULT(ioctl(network, SIOCGIFCOUNT, &request));
    RESULT(ioctl(network, SIOCGIFSLAVE, &request));
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    write(pair[0], "12345", 5);
    int waiting = -1;
    RESULT(ioctl(pair[1], SIOCINQ, &waiting));
    VALUE(waiting);
    RESULT(ioctl(pair[1], SIOCGIFINDEX, &request));
    pid_t owner = getpid();
    RESULT(ioctl(pair[1], FIOSETOWN, &owner));
    owner = 0;
    RESULT(ioctl(pair[1], SIOCGPGRP, &owner));
    IS(owner == getpid());
    RESULT(ioctl(pair[1], SIOCATMARK, &waiting));

    say("terminals");
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    int unlock = 0;
    ioctl(master, TIOCSPTLCK, &unlock);
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    print_ok("TIOCGPTPEER", slave);
    /* TCGETS2 and TCSETS2, whose structure glibc does not have. */
    unsigned char modern[64];
    memset(modern, 0, sizeof modern);
    RESULT(ioctl(slave, 0x802c542a, modern));
    bytes("modern settings", modern, 44);
    RESULT(ioctl(slave, 0x402c542b, modern));
    int value_of = -1;
    RESULT(ioctl(slave, TIOCOUTQ, &value_of));
    VALUE(value_of);
    RESULT(ioctl(slave, TIOCGETD, &value_of));
    VALUE(value_of);
    value_of = 1;
    RESULT(ioctl(master, TIOCPKT, &value_of));
    RESULT(ioctl(slave, TIOCGEXCL, &value_of));
    VALUE(value_of);
    RESULT(ioctl(slave, TIOCMGET, &value_of));
    RESULT(ioctl(slave, TIOCGSERIAL, modern));
    RESULT(ioctl(slave, TIOCGICOUNT, modern));
    RESULT(ioctl(slave, TIOCLINUX, modern));
    RESULT(ioctl(slave, TCSBRK, 1));
    RESULT(ioctl(slave, TCXONC, 9));
    RESULT(ioctl(slave, TIOCSBRK));

    say("files");
    int file = open("file", O_RDWR | O_CREAT, 0600), other = open("other", O_RDWR | O_CREAT, 0600);
    write(file, "0123456789", 10);
    struct file_clone_range range = {.src_fd = other, .src_length = 10};
    RESULT(ioctl(file, FICLONERANGE, &range));
    RESULT(ioctl(file, FICLONERANGE, (void *)8));
    struct file_dedupe_range *same = calloc(1, sizeof *same + sizeof same->info[0]);
    same->src_length = 4096, same->dest_count = 1, same->info[0].dest_fd = other;
    RESULT(ioctl(file, FIDEDUPERANGE, same));
    struct fiemap *map = calloc(1, sizeof *map + sizeof map->fm_extents[0]);
    map->fm_length = ~0ULL;
    RESULT(ioctl(file, FS_IOC_FIEMAP, map));
    int number = 0;
    RESULT(ioctl(file, FIBMAP, &number));
    RESULT(ioctl(file, FIGETBSZ, &number));
    RESULT(ioctl(file, FIOQSIZE, modern));
    RESULT(ioctl(file, FIFREEZE, &number));
    RESULT(ioctl(file, FIONBIO, &number));
    struct {
        int16_t type, whence;
        int64_t start, length;
        int32_t system, pid, pad[4];
    } space = {0, SEEK_SET, 0, 4096, 0, 0, {0}};
    RESULT(ioctl(file, 0x40305828, &space)); /* FS_IOC_RESVSP of 64 bits */
    RESULT(ioctl(file, 0x402c5828, &space)); /* and of i386 */

    say("anonymous files");
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t ticks = 5;
    RESULT(ioctl(timer, TFD_IOC_SET_TICKS, &ticks));
    /* It has no handler for 32-bit callers, and x32 counts as one. */
    RESULT(ioctl(eventfd(0, 0), FIONREAD, &number));
    int watcher = inotify_init1(IN_NONBLOCK);
    RESULT(ioctl(watcher, FIONREAD, &number));
    VALUE(number);
    RESULT(ioctl(open("/dev/null", O_RDWR), FIONREAD, &number));
    RESULT(ioctl(open("/dev/zero", O_RDWR), TCGETS, modern));
    int random = open("/dev/urandom", O_RDONLY);
    RESULT(ioctl(random, 0x80045200, &number)); /* RNDGETENTCNT */
    IS(number > 0);
    RESULT(ioctl(random, 0x40085203, modern)); /* RNDADDENTROPY */
    RESULT(ioctl(random, 0x5299, modern));
    return 0;
}
