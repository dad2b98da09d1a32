#include "own_file.h"
#include "settings.h"
#include "text.h"

enum state { NOT_KNOWN, KNOWN, NOT_THERE };

static struct {
    char path[PATH_ROOM];
    u64 device, inode;
    u8 state;
} own;

/* struct stat: device and inode are its first words. */
struct status {
    u64 device, inode, rest[16];
};

static void keep_path(const char *path) {
    u64 size = length_of(path) + 1;
    own.state = NOT_THERE;
    if (path[0] == '/' && size <= PATH_ROOM && !settings.valgrind) {
        copy_bytes(own.path, path, size);
        own.state = NOT_KNOWN;
    }
}

static const char *execfn;

void own_file_begin(const char *path) { execfn = path; }

static const char *read_number(const char *text, u64 *number) {
    for (*number = 0; *text >= '0' && *text <= '9'; text++) {
        *number = *number * 10 + (u64)(*text - '0');
    }
    return *text == ':' ? text + 1 : NULL;
}

void own_file_given(const char *option) {
    u64 device, inode;
    const char *rest = read_number(option, &device);
    rest = rest != NULL ? read_number(rest, &inode) : NULL;
    if (rest == NULL) {
        give_up(126, "--self %s: not a device, an inode and a path", option);
    }
    execfn = NULL;
    keep_path(rest);
    own.device = device;
    own.inode = inode;
    own.state = own.state == NOT_KNOWN ? KNOWN : NOT_THERE;
}

void own_file_learn(void) {
    struct status running, there;
    if (execfn != NULL) {
        keep_path(execfn);
        execfn = NULL;
    }
    if (own.state != NOT_KNOWN) {
        return;
    }
    own.state = NOT_THERE;
    if (!failed(KERNEL_2(__NR_stat, "/proc/thread-self/exe", &running)) &&
        !failed(KERNEL_2(__NR_stat, own.path, &there)) && running.device == there.device &&
        running.inode == there.inode) {
        own.device = running.device;
        own.inode = running.inode;
        own.state = KNOWN;
    }
}

long own_file_open(void) {
    struct status there;
    own_file_learn();
    if (own.state != KNOWN) {
        return -ENOENT;
    }
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, own.path, O_PATH | O_CLOEXEC);
    if (failed(fd)) {
        return fd;
    }
    if (failed(KERNEL_2(__NR_fstat, fd, &there)) || there.device != own.device || there.inode != own.inode) {
        KERNEL_1(__NR_close, fd);
        return -ENOENT;
    }
    return fd;
}

void own_file_option(char option[OWN_FILE_OPTION]) {
    struct text text = {.size = 0};
    text_add(&text, "%u:%u:", own.device, own.inode);
    copy_bytes(option, text.bytes, text.size);
    copy_bytes(option + text.size, own.path, length_of(own.path) + 1);
}
