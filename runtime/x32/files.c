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
