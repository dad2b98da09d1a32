#include "calls.h"
#include "diagnostics.h"
#include "program.h"
#include "user_memory.h"

#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_SYMLINK_FOLLOW 0x400
#define O_NOFOLLOW 0400000
#define IN_DONT_FOLLOW 0x02000000

/* struct stat: device, inode, and in the fourth word the mode. */
struct link_status {
    u64 device, inode, links;
    u32 mode, rest[29];
};
#define IS_LINK(mode) (((mode)&0170000) == 0120000)

static int is_same_link(const struct link_status *link, const char *name) {
    struct link_status own;
    return !failed(KERNEL_4(__NR_newfstatat, AT_FDCWD, name, &own, AT_SYMLINK_NOFOLLOW)) &&
           own.device == link->device && own.inode == link->inode;
}

/* Of a path that ends in a number N: "PREFIX/N/exe"; 0 where it does not. */
static int link_in(struct text *name, const char *prefix, const char *folder, u64 size) {
    u64 first = size;
    while (first > 0 && folder[first - 1] >= '0' && folder[first - 1] <= '9') {
        first--;
    }
    if (first == size || size - first >= 12) {
        return 0;
    }
    name->size = 0;
    text_add(name, "%s/", prefix);
    copy_bytes(name->bytes + name->size, folder + first, size - first);
    name->size += size - first;
    text_add(name, "/exe");
    name->bytes[name->size] = 0;
    return 1;
}

/* The link of a thread that is not the first has two names, and two inodes: in /proc/self/task, and in /proc
 * itself, where only those of this process count. */
static int is_link_in_folder(const struct link_status *link, const char *folder, u64 size) {
    struct link_status of_task;
    struct text name;
    if (!link_in(&name, "/proc/self/task", folder, size) ||
        failed(KERNEL_4(__NR_newfstatat, AT_FDCWD, name.bytes, &of_task, AT_SYMLINK_NOFOLLOW))) {
        return 0;
    }
    return (of_task.device == link->device && of_task.inode == link->inode) ||
           (link_in(&name, "/proc", folder, size) && is_same_link(link, name.bytes));
}

/* "/proc/N/exe", which leads nowhere else: what lists all processes asks for those. */
static int is_usual_name(const char *text, u64 size) {
    static const char prefix[] = "/proc/";
    u64 at = 0, end = size - 4;
    while (at < sizeof prefix - 1 && text[at] == prefix[at]) {
        at++;
    }
    while (at >= sizeof prefix - 1 && at < end && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at >= sizeof prefix && at == end;
}

/* Of a descriptor whose name ends in `rest` bytes behind the folder's. The kernel's own name leads to a
 * thread, whichever of its folders (/proc/TID/task/TID) that is. */
static int is_link_in_open(i32 fd, u64 rest) {
    struct text name = {.size = 0};
    struct link_status of_task;
    char folder[256];
    program_name_descriptor(&name, fd);
    long length = KERNEL_3(__NR_readlink, name.bytes, folder, sizeof folder);
    return length > (long)rest && length < (long)sizeof folder &&
           link_in(&name, "/proc/self/task", folder, (u64)length - rest) &&
           !failed(KERNEL_4(__NR_newfstatat, AT_FDCWD, name.bytes, &of_task, AT_SYMLINK_NOFOLLOW));
}

/* ".../N/exe"; or the kernel names the folder, which a moment's descriptor leads to. */
__attribute__((noinline)) static int is_link_of_task(const struct link_status *link, u64 directory,
                                                     const char *text, u64 size) {
    char folder[256] = ".";
    if (size > 3 && is_link_in_folder(link, text, size - 4)) {
        return 1;
    }
    if (size - 3 >= sizeof folder || (size > 3 && is_usual_name(text, size))) {
        return 0;
    }
    if (size > 3) {
        copy_bytes(folder, text, size - 3);
        folder[size - 3] = 0;
    }
    long fd = KERNEL_3(__NR_openat, directory, folder, O_PATH | O_CLOEXEC);
    if (failed(fd)) {
        return 0;
    }
    int is_link = is_link_in_open((i32)fd, 0);
    KERNEL_1(__NR_close, fd);
    return is_link;
}

/* 1 where it is one of the first two, 0 where it is in another file system. -1: a thread's, or another
 * process's. */
static int is_known_link(const struct link_status *link) {
    struct link_status own;
    if (!IS_LINK(link->mode) ||
        failed(KERNEL_4(__NR_newfstatat, AT_FDCWD, "/proc/self/exe", &own, AT_SYMLINK_NOFOLLOW)) ||
        own.device != link->device) {
        return 0;
    }
    return own.inode == link->inode || is_same_link(link, "/proc/thread-self/exe") ? 1 : -1;
}

/* A file of that name in /proc is recognised by its inode, which it has while the process lives. */
static int leads_to_own_exe(u64 directory, const char *text, u64 size) {
    struct link_status link;
    if (failed(KERNEL_4(__NR_newfstatat, directory, text, &link, AT_SYMLINK_NOFOLLOW))) {
        return 0;
    }
    int is_known = is_known_link(&link);
    return is_known < 0 ? is_link_of_task(&link, directory, text, size) : is_known;
}

/* A descriptor of the link itself (O_PATH | O_NOFOLLOW). */
__attribute__((noinline)) static int is_own_link(u64 fd) {
    struct link_status link;
    if (failed(KERNEL_4(__NR_newfstatat, fd, "", &link, AT_EMPTY_PATH))) {
        return 0;
    }
    int is_known = is_known_link(&link);
    return is_known < 0 ? is_link_in_open((i32)fd, sizeof "/exe" - 1) : is_known;
}

int is_own_exe(u64 directory, const char *text) {
    u64 size = length_of(text);
    const char *last = text + size - 3;
    if (size < 3 || !same_text(last, "exe") || (size > 3 && last[-1] != '/')) {
        return 0;
    }
    return same_text(text, "/proc/self/exe") || same_text(text, "/proc/thread-self/exe") ||
           leads_to_own_exe(directory, text, size);
}

#define LONGEST_NAME 256

/* Whether a path is one of those that mean the program's own file, where the kernel would name the runtime's:
 * in /proc, or relative. */
static int is_own_file(u64 directory, u64 path) {
    union {
        char bytes[LONGEST_NAME];
        u64 first;
    } text;
    if (path == 0 || read_user(text.bytes, path, 8) < 0 || text.bytes[0] == 0 ||
        (text.bytes[0] == '/' && (u32)text.first != 0x6f72702f /* "/pro" */)) {
        return 0;
    }
    if (read_user_text(text.bytes, path, sizeof text.bytes) < 0) {
        return 0;
    }
    return is_own_exe(directory, text.bytes);
}

/* Apart, since the space for the name is a page of the stack. */
__attribute__((noinline)) static long with_own_file(u64 number, u64 arguments[6], u32 place) {
    char room[PROGRAM_NAME_ROOM];
    const char *path = program_path(room);
    if (path == NULL) {
        return -ENOENT;
    }
    arguments[place] = (u64)path;
    return x32_gate((long)number, arguments);
}

/* The calls that take a path first. */
long call_file(struct frame *frame) {
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u64 number = frame->rax & 0xfff;
    int follows = number != __NR_lstat && !(number == __NR_open && (frame->rsi & O_NOFOLLOW));
    if (follows && is_own_file((u64)AT_FDCWD, frame->rdi)) {
        return with_own_file(number, arguments, 0);
    }
    return x32_gate((long)number, arguments);
}

/* Whether the last part of the path may be a link that is followed. */
static int follows(u64 number, const struct frame *frame) {
    switch (number) {
    case __NR_openat:
        return !(frame->rdx & O_NOFOLLOW);
    case __NR_inotify_add_watch:
        return !(frame->rdx & IN_DONT_FOLLOW);
    case __NR_newfstatat:
    case __NR_faccessat2:
    case __NR_utimensat:
    case 452: /* fchmodat2 */
        return !(frame->r10 & AT_SYMLINK_NOFOLLOW);
    case __NR_statx:
    case 463: /* setxattrat */
    case 464: /* getxattrat */
    case 465: /* listxattrat */
    case 466: /* removexattrat */
        return !(frame->rdx & AT_SYMLINK_NOFOLLOW);
    case __NR_fchownat:
    case 468: /* file_getattr */
    case 469: /* file_setattr */
        return !(frame->r8 & AT_SYMLINK_NOFOLLOW);
    case __NR_linkat:
    case __NR_name_to_handle_at:
        return (frame->r8 & AT_SYMLINK_FOLLOW) != 0;
    default:
        return 1;
    }
}

/* The calls that take a directory first, then a path. */
long call_file_at(struct frame *frame) {
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    u64 number = frame->rax & 0xfff;
    u64 directory = number == __NR_inotify_add_watch ? (u64)AT_FDCWD : frame->rdi;
    if (follows(number, frame) && is_own_file(directory, frame->rsi)) {
        return with_own_file(number, arguments, 1);
    }
    return x32_gate((long)number, arguments);
}

/* /proc/self/exe is a magic link into another file system, so with any restriction on how a path is resolved
 * the kernel itself decides, and refuses. */
long call_openat2(struct frame *frame) {
    u64 how[3]; /* flags, mode, resolve */
    u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, 0, 0};
    if (is_own_file(frame->rdi, frame->rsi) && READ_USER(how, frame->rdx) == 0 && how[2] == 0 &&
        !(how[0] & O_NOFOLLOW)) {
        return with_own_file(__NR_openat2, arguments, 1);
    }
    return x32_gate(__NR_openat2, arguments);
}

__attribute__((noinline)) static long own_link(u64 to, u64 room) {
    char name[PROGRAM_NAME_ROOM];
    const char *file = program_name(name);
    u64 size = length_of(file);
    if ((i32)room <= 0) {
        return -EINVAL;
    }
    size = size < (u32)room ? size : (u32)room;
    return write_user(to, file, size) < 0 ? -EFAULT : (long)size;
}

long call_readlink(struct frame *frame) {
    return is_own_file((u64)AT_FDCWD, frame->rdi) ? own_link(frame->rsi, frame->rdx)
                                                  : forward(frame, __NR_readlink);
}

long call_readlinkat(struct frame *frame) {
    char first;
    int is_empty = READ_USER(first, frame->rsi) == 0 && first == 0;
    return (is_empty ? is_own_link(frame->rdi) : is_own_file(frame->rdi, frame->rsi))
               ? own_link(frame->rdx, frame->r10)
               : forward(frame, __NR_readlinkat);
}
