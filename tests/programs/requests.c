/*
 * ioctl requests whose structures or numbers differ between the ABIs, and some that do not: what it prints is
 * the same in all of them. Argument 1 is a file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/fs.h>
#include <linux/if_tun.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

static const char *outcome(int result) { return result < 0 ? strerrorname_np(errno) : "done"; }

/* A structure that ends where its memory ends. */
static void *at_the_end(size_t size) {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    return pages + 4096 - size;
}

static void stamps(void) {
    int two = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct timeval stamp[2];
    struct timespec fine[2];
    char byte;
    memset(stamp, 0x55, sizeof stamp), memset(fine, 0x55, sizeof fine);
    /* The first request switches the stamps on. */
    printf("SIOCGSTAMP before: %s\n", outcome(ioctl(two, SIOCGSTAMP, stamp)));
    if (bind(two, (void *)&address, sizeof address) || getsockname(two, (void *)&address, &size) ||
        sendto(two, "x", 1, 0, (void *)&address, size) != 1 || recv(two, &byte, 1, 0) != 1)
        perror("datagram");
    printf("SIOCGSTAMP: %s", outcome(ioctl(two, SIOCGSTAMP, stamp)));
    printf(", after 2020 %d, microseconds %d, beyond it %#x\n", stamp[0].tv_sec > 1577836800,
           stamp[0].tv_usec >= 0 && stamp[0].tv_usec < 1000000, *(unsigned *)&stamp[1]);
    printf("SIOCGSTAMPNS: %s", outcome(ioctl(two, SIOCGSTAMPNS, fine)));
    printf(", after 2020 %d, nanoseconds %d, beyond it %#x\n", fine[0].tv_sec > 1577836800,
           fine[0].tv_nsec >= 0 && fine[0].tv_nsec < 1000000000, *(unsigned *)&fine[1]);
    close(two);
}

static void interfaces(void) {
    int network = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq *request = at_the_end(sizeof *request), *cut = at_the_end(sizeof *cut - 4);
    memset(request, 0, sizeof *request);
    strcpy(request->ifr_name, "lo");
    printf("SIOCGIFFLAGS: %s", outcome(ioctl(network, SIOCGIFFLAGS, request)));
    printf(", loopback %d\n", !!(request->ifr_flags & IFF_LOOPBACK));
    printf("SIOCGIFFLAGS, cut off: %s\n", outcome(ioctl(network, SIOCGIFFLAGS, cut)));
    struct ethtool_value value = {.cmd = ETHTOOL_GLINK};
    request->ifr_data = (void *)&value;
    printf("SIOCETHTOOL: %s", outcome(ioctl(network, SIOCETHTOOL, request)));
    printf(", link %d\n", value.data);
    struct ethtool_rxnfc rules = {.cmd = ETHTOOL_GRXRINGS};
    request->ifr_data = (void *)&rules;
    printf("ETHTOOL_GRXRINGS: %s\n", outcome(ioctl(network, SIOCETHTOOL, request)));
    for (int room = 0; room <= 40; room += room == 2 ? 38 : 1) {
        struct ifreq *all = at_the_end(room * sizeof *all);
        struct ifconf list = {.ifc_len = room * (int)sizeof *all, .ifc_req = all};
        printf("SIOCGIFCONF with room for %d: %s", room, outcome(ioctl(network, SIOCGIFCONF, &list)));
        printf(", %d of them, the first %s\n", list.ifc_len / (int)sizeof *all,
               list.ifc_len ? all->ifr_name : "-");
    }
    struct ifconf list = {.ifc_len = -1, .ifc_req = request};
    printf("SIOCGIFCONF, less than nothing: %s\n", outcome(ioctl(network, SIOCGIFCONF, &list)));
    close(network);
}

int main(int count, char **words) {
    int file = count > 1 ? open(words[1], O_RDWR | O_CREAT, 0600) : -1, number = -1;
    if (file < 0)
        return 2;
    stamps();
    interfaces();
    unsigned flags[2] = {0x55, 0x55};
    printf("FS_IOC_GETFLAGS: %s", outcome(ioctl(file, FS_IOC_GETFLAGS, flags)));
    printf(" %#x, beyond it %#x\n", flags[0], flags[1]);
    printf("FS_IOC_SETFLAGS: %s\n", outcome(ioctl(file, FS_IOC_SETFLAGS, flags)));
    flags[1] = 0x55;
    printf("FS_IOC_GETVERSION: %s", outcome(ioctl(file, FS_IOC_GETVERSION, flags)));
    printf(", beyond it %#x\n", flags[1]);
    unsigned long long sectors = 0;
    printf("BLKGETSIZE64 of a file: %s\n", outcome(ioctl(file, BLKGETSIZE64, &sectors)));
    int random = open("/dev/urandom", O_RDONLY);
    printf("RNDGETENTCNT: %s", outcome(ioctl(random, RNDGETENTCNT, &number)));
    printf(", some %d\n", number > 0);
    struct perf_event_attr counter = {.type = PERF_TYPE_SOFTWARE, .size = sizeof counter, .disabled = 1};
    int counted = syscall(SYS_perf_event_open, &counter, 0, -1, -1, 0);
    unsigned long long identity = 0;
    printf("PERF_EVENT_IOC_ID: %s", outcome(ioctl(counted, PERF_EVENT_IOC_ID, &identity)));
    printf(", some %d\n", identity > 0);
    printf("PERF_EVENT_IOC_ENABLE: %s\n", outcome(ioctl(counted, PERF_EVENT_IOC_ENABLE, 0)));
    int tunnel = open("/dev/net/tun", O_RDWR);
    printf("TUNGETFEATURES: %s\n", outcome(ioctl(tunnel, TUNGETFEATURES, &number)));
    struct ifreq own = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    printf("TUNSETIFF: %s", outcome(ioctl(tunnel, TUNSETIFF, &own)));
    printf(", named %d\n", strncmp(own.ifr_name, "tun", 3) == 0);
    printf("TUNGETIFF: %s", outcome(ioctl(tunnel, TUNGETIFF, &own)));
    printf(", flags %#x\n", own.ifr_flags & (IFF_TUN | IFF_TAP));
    printf("an unknown request: %s\n", outcome(ioctl(file, 0x12345678, &number)));
    return 0;
}
