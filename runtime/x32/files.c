#include "calls.h"
#include "diagnostics.h"
#include "program.h"
#include "user_memory.h"

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
        arguments[0] = (u64)program_file();
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
        arguments[1] = (u64)program_file();
    }
    return x32_gate((long)number, arguments);
}

/* /proc/self/exe is a magic link into another file system, so with any restriction on how a path is resolved
 * the kernel itself decides, and refuses. */
long call_openat2(struct frame *frame) {
    u64 how[3]; /* flags, mode, resolve */
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, 0, 0};
    if (is_own_file(frame->rsi) && READ_USER(how, frame->rdx) == 0 && how[2] == 0 && !(how[0] & O_NOFOLLOW)) {
        arguments[1] = (u64)program_file();
    }
    return x32_gate(__NR_openat2, arguments);
}

static long own_link(u64 to, u64 room) {
    const char *file = program_file();
    u64 size = length_of(file);
    if ((i32)room <= 0) {
        return -EINVAL;
    }
    size = size < (u32)room ? size : (u32)room;
    return write_user(to, file, size) < 0 ? -EFAULT : (long)size;
}

long call_readlink(struct frame *frame) {
    return is_own_file(frame->rdi) ? own_link(frame->rsi, frame->rdx) : forward(frame, __NR_readlink);
}

long call_readlinkat(struct frame *frame) {
    return is_own_file(frame->rsi) ? own_link(frame->rdx, frame->r10) : forward(frame, __NR_readlinkat);
}
