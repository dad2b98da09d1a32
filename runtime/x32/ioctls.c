#include "calls.h"
#include "signals.h"
#include "user_memory.h"

/*
 * ioctl. A request whose argument is the same in both widths is made as it is; what differs only in its
 * number is made with the 64-bit one; a structure with pointers or longs is made anew where it is known. All
 * else goes through the i386 entry, which ends in the compat handlers, where an x32 kernel's own ioctl ends.
 * It is slow, and in some drivers another call than x32's: docs/x32.md has the table.
 */
enum way { ENTRY, SAME, INTERFACE, INTERFACE_DATA, INTERFACES, LONG, BULK };

/* Requests whose argument is a number, or a structure without pointers and longs, to x32 and x86-64 alike. */
static int is_same(u32 request) {
    switch (request) {
    case 0x0001 ... 0x0002: /* FIBMAP, FIGETBSZ */
    case 0x060f:            /* LPSETTIMEOUT_OLD: a timeval, which has 64 bits in x32 */
    case 0x125d ... 0x125f: /* BLKROSET, BLKROGET, BLKRRPART */
    case 0x1261 ... 0x1262: /* BLKFLSBUF, BLKRASET */
    case 0x1264:            /* BLKFRASET */
    case 0x1267 ... 0x1268: /* BLKSECTGET, BLKSSZGET */
    case 0x1277 ... 0x127f: /* BLKDISCARD to BLKZEROOUT */
    case 0x2400 ... 0x2403: /* PERF_EVENT_IOC_ENABLE to _RESET */
    case 0x40082404:        /* PERF_EVENT_IOC_PERIOD */
    case 0x2405:            /* PERF_EVENT_IOC_SET_OUTPUT */
    case 0x4c00 ... 0x4c01: /* LOOP_SET_FD, LOOP_CLR_FD */
    case 0x4c04 ... 0x4c0a: /* LOOP_SET_STATUS64 to LOOP_CONFIGURE */
    case 0x4c80 ... 0x4c82: /* LOOP_CTL_ADD, _REMOVE, _GET_FREE */
    case 0x80045200:        /* RNDGETENTCNT */
    case 0x40045201:        /* RNDADDTOENTCNT */
    case 0x40085203:        /* RNDADDENTROPY */
    case 0x5204:            /* RNDZAPENTCNT */
    case 0x5206 ... 0x5207: /* RNDCLEARPOOL, RNDRESEEDCRNG */
    case 0x5401 ... 0x541b: /* TCGETS to FIONREAD */
    case 0x5420 ... 0x542f: /* TIOCPKT, FIONBIO, TIOCNOTTY, TIOCSETD, TCSBRKP, TCGETS2, TIOCSBRK … */
    case 0x402c542b ... 0x402c542d: /* TCSETS2, TCSETSW2, TCSETSF2 */
    case 0x802c542a:                /* TCGETS2 */
    case 0x5441:                    /* TIOCGPTPEER */
    case 0x5450 ... 0x5452:         /* FIONCLEX, FIOCLEX, FIOASYNC */
    case 0x5460:                    /* FIOQSIZE */
    case 0x40045431:                /* TIOCSPTLCK */
    case 0x80045430:                /* TIOCGPTN */
    case 0x80045438 ... 0x80045440: /* TIOCGPKT, TIOCGPTLCK, TIOCGEXCL */
    case 0x400454c8 ... 0x400454c9: /* TUNSETNOCSUM, TUNSETDEBUG */
    case 0x400454cb ... 0x400454ce: /* TUNSETPERSIST, _OWNER, _LINK, _GROUP */
    case 0x800454cf:                /* TUNGETFEATURES */
    case 0x400454d0 ... 0x400454d1: /* TUNSETOFFLOAD, TUNSETTXFILTER */
    case 0x800454d3:                /* TUNGETSNDBUF */
    case 0x400454d4:                /* TUNSETSNDBUF */
    case 0x800454d7:                /* TUNGETVNETHDRSZ */
    case 0x400454d8:                /* TUNSETVNETHDRSZ */
    case 0x400454da:                /* TUNSETIFINDEX */
    case 0x40305828 ... 0x4030582b: /* FS_IOC_RESVSP and its kind */
    case 0x40305839:                /* FS_IOC_ZERO_RANGE */
    case 0x801c581f:                /* FS_IOC_FSGETXATTR */
    case 0x401c5820:                /* FS_IOC_FSSETXATTR */
    case 0xc0045877 ... 0xc0045878: /* FIFREEZE, FITHAW */
    case 0xc0185879:                /* FITRIM */
    case 0xc020660b:                /* FS_IOC_FIEMAP */
    case 0x40049409:                /* FICLONE */
    case 0x4020940d:                /* FICLONERANGE */
    case 0xc0189436:                /* FIDEDUPERANGE */
    case 0x80044501:                /* EVIOCGVERSION */
    case 0x80084502 ... 0x80084503: /* EVIOCGID, EVIOCGREP */
    case 0x40084503:                /* EVIOCSREP */
    case 0x40044581:                /* EVIOCRMFF */
    case 0x80044584:                /* EVIOCGEFFECTS */
    case 0x40044590 ... 0x40044591: /* EVIOCGRAB, EVIOCREVOKE */
    case 0x400445a0:                /* EVIOCSCLOCKID */
    case 0x80184540 ... 0x8018457f: /* EVIOCGABS */
    case 0x401845c0 ... 0x401845ff: /* EVIOCSABS */
    case 0x8901 ... 0x8907:         /* FIOSETOWN to SIOCATMARK; SIOCGSTAMP, whose time has 64 bits in x32 */
    case 0x80108906 ... 0x80108907: /* SIOCGSTAMP_NEW, SIOCGSTAMPNS_NEW */
    case 0x8953 ... 0x8955:         /* SIOCDARP, SIOCGARP, SIOCSARP */
        return 1;
    default:
        /* userfaultfd's structures are of 64-bit words in every width. EVIOCGNAME, EVIOCGPHYS and EVIOCGUNIQ
         * take text of any length. */
        return ((request >> 8) & 0xff) == 0xaa ||
               ((request & 0xc000ffff) >= 0x80004506 && (request & 0xc000ffff) <= 0x80004508);
    }
}

/* Requests named after a long, whose argument is none: the size in their number is all that differs. */
static u32 native_of(u32 request) {
    switch (request) {
    case 0x80041270: /* BLKBSZGET */
    case 0x40041271: /* BLKBSZSET */
    case 0x80041272: /* BLKGETSIZE64 */
    case 0x40042406: /* PERF_EVENT_IOC_SET_FILTER */
    case 0x80042407: /* PERF_EVENT_IOC_ID */
    case 0x80046601: /* FS_IOC_GETFLAGS */
    case 0x40046602: /* FS_IOC_SETFLAGS */
    case 0x80047601: /* FS_IOC_GETVERSION */
    case 0x40047602: /* FS_IOC_SETVERSION */
        return request + (4U << 16);
    default:
        return 0;
    }
}

static enum way way_of(u32 request) {
    switch (request) {
    case 0x8910:            /* SIOCGIFNAME */
    case 0x8913 ... 0x8915: /* SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCGIFADDR */
    case 0x8917:            /* SIOCGIFDSTADDR */
    case 0x8919 ... 0x891e: /* SIOCGIFBRDADDR to SIOCSIFMETRIC */
    case 0x8921 ... 0x8922: /* SIOCGIFMTU, SIOCSIFMTU */
    case 0x8927:            /* SIOCGIFHWADDR */
    case 0x8933 ... 0x8935: /* SIOCGIFINDEX, SIOCSIFPFLAGS, SIOCGIFPFLAGS */
    case 0x8942 ... 0x8943: /* SIOCGIFTXQLEN, SIOCSIFTXQLEN */
    case 0x8947 ... 0x8949: /* SIOCGMIIPHY, SIOCGMIIREG, SIOCSMIIREG */
    case 0x400454ca:        /* TUNSETIFF */
    case 0x400454d9:        /* TUNSETQUEUE */
    case 0x800454d2:        /* TUNGETIFF */
        return INTERFACE;
    case 0x8946:            /* SIOCETHTOOL */
    case 0x89b0 ... 0x89b1: /* SIOCSHWTSTAMP, SIOCGHWTSTAMP */
        return INTERFACE_DATA;
    case 0x8912: /* SIOCGIFCONF */
        return INTERFACES;
    case 0x1260: /* BLKGETSIZE */
    case 0x1263: /* BLKRAGET */
    case 0x1265: /* BLKFRAGET */
        return LONG;
    case 0xc0105865 ... 0xc0105867: /* XFS_IOC_FSBULKSTAT, _SINGLE, XFS_IOC_FSINUMBERS */
        return BULK;
    default:
        return is_same(request) ? SAME : ENTRY;
    }
}

static long made(u64 fd, u32 request, u64 argument) {
    u64 arguments[6] = {fd, request, argument, 0, 0, 0};
    return x32_gate(__NR_ioctl, arguments);
}

/* struct ifreq: a name of 16 bytes, then a union of 16 in x32 and of 24 in x86-64, for the sake of struct
 * ifmap. */
#define INTERFACE_SIZE 32
#define INTERFACE_WIDE 40

static long interface_request(u64 fd, u32 request, u64 address, int has_pointer) {
    u64 wide[INTERFACE_WIDE / 8], before[INTERFACE_SIZE / 8];
    clear_bytes(wide, sizeof wide);
    if (read_user(wide, address, INTERFACE_SIZE) < 0) {
        /* The kernel decides which of its errors comes first. */
        return made(fd, request, address);
    }
    if (has_pointer) {
        wide[2] &= 0xffffffffU;
        return made(fd, request, (u64)wide);
    }
    copy_bytes(before, wide, sizeof before);
    long result = made(fd, request, (u64)wide);
    int changed = 0;
    for (u64 i = 0; i < INTERFACE_SIZE / 8; i++) {
        changed |= before[i] != wide[i];
    }
    return changed && write_user(address, wide, INTERFACE_SIZE) < 0 ? -EFAULT : result;
}

/* struct ifconf: the room in bytes, and where it is. */
struct interfaces32 {
    i32 size;
    u32 at;
};

struct interfaces64 {
    i32 size;
    u64 at;
};

static long interface_list(u64 fd, u32 request, u64 address) {
    struct interfaces32 narrow;
    if (READ_USER(narrow, address) < 0) {
        return made(fd, request, address);
    }
    struct interfaces64 wide = {0, 0};
    u64 near[16 * INTERFACE_WIDE / 8], mapped = 0;
    if (narrow.at != 0) {
        u64 size = narrow.size > 0 ? (u64)narrow.size / INTERFACE_SIZE * INTERFACE_WIDE : 0;
        /* More interfaces than any machine has. */
        size = size < (1UL << 20) ? size : (1UL << 20) / INTERFACE_WIDE * INTERFACE_WIDE;
        wide = (struct interfaces64){narrow.size < 0 ? narrow.size : (i32)size, (u64)near};
        if (size > sizeof near) {
            mapped = ROUND_UP(size, PAGE);
            long place =
                KERNEL_6(__NR_mmap, 0, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (failed(place)) {
                return -ENOMEM;
            }
            wide.at = (u64)place;
        }
    }
    long result = made(fd, request, (u64)&wide);
    if (result >= 0) {
        u64 count = (u64)wide.size / INTERFACE_WIDE;
        for (u64 i = 0; i < count && wide.at != 0 && result >= 0; i++) {
            const void *from = (const void *)(wide.at + i * INTERFACE_WIDE);
            result = write_user(narrow.at + i * INTERFACE_SIZE, from, INTERFACE_SIZE) < 0 ? -EFAULT : result;
        }
        narrow.size = (i32)(count * INTERFACE_SIZE);
        if (result >= 0 && WRITE_USER(address, narrow.size) < 0) {
            result = -EFAULT;
        }
    }
    if (mapped != 0) {
        KERNEL_2(__NR_munmap, wide.at, mapped);
    }
    return result;
}

/* compat_blkdev_ioctl(), block/ioctl.c */
static long long_answer(u64 fd, u32 request, u64 address) {
    u64 wide = 0;
    long result = made(fd, request, (u64)&wide);
    u32 narrow = (u32)wide;
    if (result < 0) {
        return result;
    }
    if (wide != narrow) {
        return -EFBIG;
    }
    return WRITE_USER(address, narrow) < 0 ? -EFAULT : result;
}

/* struct xfs_fsop_bulkreq. What it points to is as x86-64 has it, which the i386 entry does not give
 * (xfs_compat_ioc_fsbulkstat(), fs/xfs/xfs_ioctl32.c). */
static long bulk_request(u64 fd, u32 request, u64 address) {
    u32 narrow[4];
    if (READ_USER(narrow, address) < 0) {
        return made(fd, request + (16U << 16), address);
    }
    u64 wide[4] = {narrow[0], narrow[1], narrow[2], narrow[3]};
    return made(fd, request + (16U << 16), (u64)wide);
}

#define I386_IOCTL 54

long call_ioctl(struct frame *frame) {
    u64 fd = (u32)frame->rdi, argument = (u32)frame->rdx;
    u32 request = (u32)frame->rsi, native = native_of(request);
    if (native != 0) {
        return made(fd, native, argument);
    }
    switch (way_of(request)) {
    case SAME:
        return made(fd, request, argument);
    case INTERFACE:
        return interface_request(fd, request, argument, 0);
    case INTERFACE_DATA:
        return interface_request(fd, request, argument, 1);
    case INTERFACES:
        return interface_list(fd, request, argument);
    case LONG:
        return long_answer(fd, request, argument);
    case BULK:
        return bulk_request(fd, request, argument);
    default:
        return i386_call(I386_IOCTL, fd, request, argument, 0, 0);
    }
}
