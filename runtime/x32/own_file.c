#include "own_file.h"
#include "diagnostics.h"
#include "settings.h"

enum state { NOT_THERE, NOT_KNOWN, KNOWN };

static struct {
    const char *path, *option;
    u64 device, inode;
    u8 state;
} own;

/* struct stat: device and inode are its first words. */
struct status {
    u64 device, inode, rest[16];
};

void own_file_begin(const char *path) {
    own.path = path;
    own.state = path != NULL && path[0] == '/' && !settings.valgrind ? NOT_KNOWN : NOT_THERE;
}

static const char *read_number(const char *text, u64 *number) {
    for (*number = 0; *text >= '0' && *text <= '9'; text++) {
        *number = *number * 10 + (u64)(*text - '0');
    }
    return *text == ':' ? text + 1 : NULL;
}

void own_file_given(const char *option) {
    const char *rest = read_number(option, &own.device);
    rest = rest != NULL ? read_number(rest, &own.inode) : NULL;
    if (rest == NULL || rest[0] != '/') {
        give_up(126, "--self %s: not a device, an inode and a path", option);
    }
    own.path = rest;
    own.option = option;
    own.state = settings.valgrind ? NOT_THERE : KNOWN;
}

void own_file_learn(void) {
    LARGE static struct text option;
    struct status running, there;
    if (own.state != NOT_KNOWN) {
        return;
    }
    int is_there = !failed(KERNEL_2(__NR_stat, "/proc/thread-self/exe", &running)) &&
                   !failed(KERNEL_2(__NR_stat, own.path, &there)) && running.device == there.device &&
                   running.inode == there.inode;
    if (is_there && length_of(own.path) < sizeof option.bytes - 48) {
        own.device = running.device;
        own.inode = running.inode;
        /* Threads that come here at once write the same. */
        struct text text = {.size = 0};
        text_add(&text, "%u:%u:%s", own.device, own.inode, own.path);
        copy_bytes(option.bytes, text.bytes, text.size);
        own.option = option.bytes;
    }
    __atomic_store_n(&own.state, own.option != NULL ? KNOWN : NOT_THERE, __ATOMIC_RELEASE);
}

long own_file_open(void) {
    struct status there;
    own_file_learn();
    if (__atomic_load_n(&own.state, __ATOMIC_ACQUIRE) != KNOWN) {
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

const char *own_file_option(void) { return own.option; }
