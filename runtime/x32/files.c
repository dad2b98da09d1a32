#include "calls.h"
#include "memory.h"
#include "settings.h"
#include "text.h"

#define AT_SYMLINK_NOFOLLOW 0x100
#define O_NOFOLLOW 0400000

/* Whether a path is one of those that mean the program's own file, where the kernel would name the runtime's.
 */
static int is_own_file(u64 path) {
    char text[32];
    if (path == 0 || read_user(text, path, 8) < 0) {
        return 0;
    }
    if (*(u64 *)text != 0x65732f636f72702fUL /* "/proc/se" */ && *(u32 *)text != 0x6f72702f /* "/pro" */) {
        return 0;
    }
    if (read_user_text(text, path, sizeof text) < 0) {
        return 0;
    }
    if (same_text(text, "/proc/self/exe") || same_text(text, "/proc/thread-self/exe")) {
        return 1;
    }
    struct text own = {.size = 0};
    text_add(&own, "/proc/%d/exe", (i64)KERNEL_1(__NR_getpid, 0));
    own.bytes[own.size] = 0;
    return same_text(text, own.bytes);
}

/* The calls that take a path first. */
long call_file(struct frame *frame) {
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u64 number = frame->rax & 0xfff;
    int follows = number != __NR_lstat && !(number == __NR_open && (frame->rsi & O_NOFOLLOW));
    if (follows && is_own_file(frame->rdi)) {
        arguments[0] = (u64)settings.program;
    }
    return x32_gate((long)number, arguments);
}

static int nofollow(u64 number, const struct frame *frame) {
    switch (number) {
    case __NR_openat:
        return (frame->rdx & O_NOFOLLOW) != 0;
    case __NR_newfstatat:
    case __NR_faccessat2:
        return (frame->r10 & AT_SYMLINK_NOFOLLOW) != 0;
    case __NR_statx:
        return (frame->rdx & AT_SYMLINK_NOFOLLOW) != 0;
    default:
        return 0;
    }
}

/* The calls that take a directory first, then a path. */
long call_file_at(struct frame *frame) {
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u64 number = frame->rax & 0xfff;
    if (!nofollow(number, frame) && is_own_file(frame->rsi)) {
        arguments[1] = (u64)settings.program;
    }
    return x32_gate((long)number, arguments);
}

/* /proc/self/exe is a magic link into another file system, so with any restriction on how a path is resolved
 * the kernel itself decides, and refuses. */
long call_openat2(struct frame *frame) {
    u64 how[3]; /* flags, mode, resolve */
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, 0, 0};
    if (is_own_file(frame->rsi) && READ_USER(how, frame->rdx) == 0 && how[2] == 0 && !(how[0] & O_NOFOLLOW)) {
        arguments[1] = (u64)settings.program;
    }
    return x32_gate(__NR_openat2, arguments);
}

#define DOOR_GETDENTS64 220

/* struct linux_dirent64; in the older struct linux_dirent the name is where the type is here, and the type in
 * the last byte. The sizes are the same. */
struct entry {
    u64 inode, offset;
    u16 size;
    u8 type;
    char name[255 + 1 + 8];
};
#define ENTRY_HEAD 19

/* A place in a directory is a hash, of which ext4, NFS and others give 64 bits to a 64-bit call and 32 to one
 * that is in_compat_syscall(), since telldir() gives a long (is_32bit_api(), fs/ext4/dir.c). x32's calls are;
 * those of the i386 entry too, and getdents64 has one layout. */
long call_getdents64(struct frame *frame) {
    if (!(frame->rax & X32_BIT)) {
        return forward(frame, __NR_getdents64);
    }
    long result = door(DOOR_GETDENTS64, (u32)frame->rdi, (u32)frame->rsi, (u32)frame->rdx, 0, 0);
    return result == -ENOSYS ? forward(frame, __NR_getdents64) : result;
}

long call_getdents(struct frame *frame) {
    if (!(frame->rax & X32_BIT)) {
        return forward(frame, __NR_getdents);
    }
    long result = call_getdents64(frame);
    struct entry entry;
    for (u64 at = (u32)frame->rsi, end = at + (u64)result; result > 0 && at < end; at += entry.size) {
        if (read_user(&entry, at, ENTRY_HEAD) < 0 || entry.size <= ENTRY_HEAD || entry.size > sizeof entry ||
            read_user(&entry, at, entry.size) < 0) {
            return -EFAULT;
        }
        u8 type = entry.type, *name = (u8 *)&entry + ENTRY_HEAD - 1;
        for (int i = 0; i < entry.size - ENTRY_HEAD; i++) {
            name[i] = name[i + 1];
        }
        ((u8 *)&entry)[entry.size - 1] = type;
        if (write_user(at, &entry, entry.size) < 0) {
            return -EFAULT;
        }
    }
    return result;
}

static long own_link(u64 to, u64 room) {
    u64 size = length_of(settings.program);
    if ((i32)room <= 0) {
        return -EINVAL;
    }
    size = size < (u32)room ? size : (u32)room;
    return write_user(to, settings.program, size) < 0 ? -EFAULT : (long)size;
}

long call_readlink(struct frame *frame) {
    return is_own_file(frame->rdi) ? own_link(frame->rsi, frame->rdx) : forward(frame, __NR_readlink);
}

long call_readlinkat(struct frame *frame) {
    return is_own_file(frame->rsi) ? own_link(frame->rdx, frame->r10) : forward(frame, __NR_readlinkat);
}

/* The requests whose argument is the same to both: a number, or bytes without pointers and longs. They are
 * made as they are, and may block. */
static int is_same(u32 request) {
    switch (request) {
    case 0x5401 ... 0x540f: /* TCGETS to TIOCGPGRP */
    case 0x5410 ... 0x541b: /* TIOCSPGRP to FIONREAD */
    case 0x5420 ... 0x542f: /* TIOCPKT, FIONBIO, TIOCNOTTY, TIOCSETD, TCSBRKP, TCGETS2, TIOCSBRK … */
    case 0x5450 ... 0x5452: /* FIONCLEX, FIOCLEX, FIOASYNC */
    case 0x80045430:        /* TIOCGPTN */
    case 0x40045431:        /* TIOCSPTLCK */
    case 0x5441:            /* TIOCGPTPEER */
        return 1;
    default:
        return 0;
    }
}

/* Everything else goes through the i386 entry: it ends in the compat handlers, which is where an x32 kernel's
 * own ioctl ends. All of the program's pointers fit. */
long call_ioctl(struct frame *frame) {
    u32 request = (u32)frame->rsi;
    /* userfaultfd's structures are of 64-bit words in every width. */
    if (is_same(request) || ((request >> 8) & 0xff) == 0xaa) {
        return forward(frame, __NR_ioctl);
    }
    return door(54, (u32)frame->rdi, request, (u32)frame->rdx, 0, 0);
}
