/*
 * ioctl, row 514: families whose payload is the same, those with pointers or longs in it, and unknown ones.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

int main(void) {
    say("terminals");
    int master = SUCCESS(posix_openpt(O_RDWR | O_NOCTTY));
    int unlocked = 0, number = -1;
    RESULT(ioctl(master, TIOCSPTLCK, &unlocked));
    RESULT(ioctl(master, TIOCGPTN, &number));
    IS(number >= 0);
    char name[64];
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int slave = SUCCESS(open(name, O_RDWR | O_NOCTTY));
    struct winsize size = {24, 80, 640, 480};
    RESULT(ioctl(master, TIOCSWINSZ, &size));
    memset(&size, 0, sizeof size);
    RESULT(ioctl(slave, TIOCGWINSZ, &size));
    say("%d rows, %d columns, %d, %d", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    struct termios settings;
    memset(&settings, 0, sizeof settings);
    RESULT(tcgetattr(slave, &settings));
    say("flags %#x %#x %#x %#x, %#x", settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag,
        settings.c_cc[VINTR]);
    cfmakeraw(&settings);
    RESULT(tcsetattr(slave, TCSANOW, &settings));
    RESULT(write(master, "typed", 5));
    int waiting = -1;
    poll(&(struct pollfd){.fd = slave, .events = POLLIN}, 1, 5000);
    RESULT(ioctl(slave, FIONREAD, &waiting));
    VALUE(waiting);
    RESULT(ioctl(slave, TCFLSH, TCIFLUSH));
    RESULT(ioctl(slave, FIONREAD, &waiting));
    VALUE(waiting);
    pid_t group = 0;
    RESULT(ioctl(slave, TIOCGPGRP, &group));
    RESULT(ioctl(slave, TIOCSCTTY, 0));
    RESULT(ioctl(slave, TIOCGPGRP, &group));
    IS(group == getpid());
    RESULT(ioctl(slave, TIOCGSID, &group));
    RESULT(isatty(slave));
    signal(SIGHUP, SIG_IGN);
    RESULT(ioctl(slave, TIOCNOTTY));

    say("pipes and files");
    int ends[2];
    pipe(ends);
    write(ends[1], "1234567", 7);
    RESULT(ioctl(ends[0], FIONREAD, &waiting));
    VALUE(waiting);
    int yes = 1;
    RESULT(ioctl(ends[0], FIONBIO, &yes));
    IS((fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
    RESULT(ioctl(ends[0], FIOCLEX));
    IS(fcntl(ends[0], F_GETFD) == FD_CLOEXEC);
    RESULT(ioctl(ends[0], FIONCLEX));
    RESULT(ioctl(ends[0], TCGETS, &settings));
    RESULT(ioctl(ends[0], FIONREAD, (void *)8));
    RESULT(ioctl(-1, FIONREAD, &waiting));
    int file = open("file", O_RDWR | O_CREAT, 0600);
    write(file, "0123456789", 10);
    lseek(file, 4, SEEK_SET);
    RESULT(ioctl(file, FIONREAD, &waiting));
    VALUE(waiting);
    unsigned long long sectors = 7;
    RESULT(ioctl(file, BLKGETSIZE64, &sectors));
    RESULT(ioctl(file, BLKGETSIZE, &sectors));
    RESULT(ioctl(file, BLKROGET, &sectors));
    RESULT(ioctl(file, TIOCGWINSZ, &size));
    RESULT(ioctl(file, 0x12345678, &size));
    RESULT(ioctl(ends[0], 0x12345678, &size));
    RESULT(ioctl(slave, 0x12345678, &size));
    RESULT(ioctl(file, FICLONE, ends[0]));
    int version;
    int proc = open("/proc/self/stat", O_RDONLY);
    RESULT(ioctl(proc, FS_IOC_GETFLAGS, &version));
    RESULT(ioctl(proc, FS_IOC_GETVERSION, &version));
    RESULT(ioctl(proc, FIGETBSZ, &version));
    RESULT(ioctl(open("/", O_PATH), FIONREAD, &version));

    say("interfaces");
    int network = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request;
    VALUE(sizeof request);
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    RESULT(ioctl(network, SIOCGIFFLAGS, &request));
    say("lo: up %d, loopback %d", !!(request.ifr_flags & IFF_UP), !!(request.ifr_flags & IFF_LOOPBACK));
    RESULT(ioctl(network, SIOCGIFINDEX, &request));
    VALUE(request.ifr_ifindex);
    RESULT(ioctl(network, SIOCGIFMTU, &request));
    VALUE(request.ifr_mtu);
    RESULT(ioctl(network, SIOCGIFADDR, &request));
    HEX(((struct sockaddr_in *)&request.ifr_addr)->sin_addr.s_addr);
    RESULT(ioctl(network, SIOCGIFHWADDR, &request));
    VALUE(request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
    strcpy(request.ifr_name, "nothing0");
    RESULT(ioctl(network, SIOCGIFFLAGS, &request));
    RESULT(ioctl(network, SIOCSIFFLAGS, &request));
    request.ifr_ifindex = 1;
    RESULT(ioctl(network, SIOCGIFNAME, &request));
    TEXT(request.ifr_name);
    struct ifreq all[40];
    struct ifconf list = {.ifc_len = sizeof all, .ifc_req = all};
    VALUE(sizeof list);
    RESULT(ioctl(network, SIOCGIFCONF, &list));
    int count = list.ifc_len / (int)sizeof(struct ifreq), seen = 0;
    IS(count >= 1 && list.ifc_len % (int)sizeof(struct ifreq) == 0);
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].ifr_name, "lo") == 0)
            seen++, HEX(((struct sockaddr_in *)&all[i].ifr_addr)->sin_addr.s_addr);
    IS(seen > 0);
    list = (struct ifconf){.ifc_len = 0, .ifc_req = NULL};
    RESULT(ioctl(network, SIOCGIFCONF, &list));
    IS(list.ifc_len == count * (int)sizeof(struct ifreq));
    list = (struct ifconf){.ifc_len = sizeof all, .ifc_req = (void *)8};
    RESULT(ioctl(network, SIOCGIFCONF, &list));
    RESULT(ioctl(network, SIOCOUTQ, &waiting));
    RESULT(ioctl(network, SIOCGSTAMP, &request));
    RESULT(ioctl(network, SIOCDEVPRIVATE, &request));
    RESULT(ioctl(network, 0x89ff, &request));
    RESULT(ioctl(file, SIOCGIFFLAGS, &request));
    return 0;
}
