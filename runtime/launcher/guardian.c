/*
 * The guardian: ends what setup and teardown commands have left in the background when widthwise was killed.
 *
 * It sleeps in read(2) on a pipe of which only widthwise has the other end. At the end of file widthwise is
 * gone, however it ended, and so is every child of it that was about to execute a program: until then, such a
 * child has the pipe, too. The processes that are to end carry a mark in their environment or as an open
 * descriptor (crates/measure/src/run/setup_mark.rs), whatever their session and parent.
 */
#include <stdint.h>

#include "kernel.h"

#define SIGTERM 15
#define MILLISECOND UINT64_C(1000000)
/* As in crates/measure/src/run/hooks.rs. */
#define PATIENCE (2000 * MILLISECOND)
#define SETTLING (200 * MILLISECOND)

/* struct linux_dirent64, include/linux/dirent.h */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

struct marks {
    const char *variable; /* a string of the environment */
    const char *path;     /* of the descriptor in /proc/PID; null: there is none */
    const char *link;     /* what that leads to */
};

struct findings {
    int marked;    /* processes with a mark */
    int uncertain; /* and processes that may have it: they are about to execute a program */
};

static long open_at(int folder, const char *name) {
    return SYSCALL(__NR_openat, folder, name, O_RDONLY | O_CLOEXEC, 0);
}

/* Whether one of the strings in /proc/PID/environ is `mark`; `size` is the number of bytes that were read. */
static int has_variable(int process, const char *mark, long *size) {
    static char text[16 << 10];
    long fd = open_at(process, "environ"), n = -1;
    uint64_t matched = 0;
    int differs = 0, found = 0;
    *size = -1;
    while (fd >= 0 && !found && (n = sys_read((int)fd, text, sizeof text)) >= 0) {
        *size += n + (*size < 0);
        if (n == 0)
            break;
        for (long i = 0; i < n && !found; i++) {
            if (text[i]) {
                differs = differs || mark[matched] != text[i];
                matched += !differs;
            } else {
                found = !differs && !mark[matched];
                differs = 0;
                matched = 0;
            }
        }
    }
    if (fd >= 0)
        sys_close((int)fd);
    return found;
}

static int has_descriptor(int process, const struct marks *marks) {
    char text[128];
    if (!marks->path)
        return 0;
    long n = SYSCALL(__NR_readlinkat, process, marks->path, text, sizeof text);
    if (n < 0 || (uint64_t)n != length(marks->link))
        return 0;
    while (n > 0 && text[n - 1] == marks->link[n - 1])
        n--;
    return n == 0;
}

/* Whether it has a program, but neither environment nor arguments yet: it is in execve(2). A kernel thread
 * has no program, nor has a process that has ended. */
static int is_executing(int process) {
    char text[8];
    if (SYSCALL(__NR_readlinkat, process, "exe", text, sizeof text) < 0)
        return 0;
    long fd = open_at(process, "cmdline");
    long n = fd < 0 ? -1 : sys_read((int)fd, text, 1);
    if (fd >= 0)
        sys_close((int)fd);
    return n == 0;
}

/* Sends the signal to a process that has a mark. The open folder is this process's, also if its number is
 * another's by now. */
static void examine(const char *number, const struct marks *marks, int signal, struct findings *findings) {
    static char path[64];
    if (length(number) > 20)
        return;
    append(append(path, "/proc/"), number);
    long process = sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (process < 0)
        return;
    long size;
    if (has_variable((int)process, marks->variable, &size) || has_descriptor((int)process, marks)) {
        findings->marked++;
        SYSCALL(__NR_pidfd_send_signal, process, signal, 0, 0);
    } else if (size == 0) {
        findings->uncertain |= is_executing((int)process);
    }
    sys_close((int)process);
}

static struct findings signal_marked(const struct marks *marks, int signal) {
    static char entries[16 << 10] __attribute__((aligned(8)));
    struct findings findings = {0, 0};
    long folder = sys_open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;
    while (folder >= 0 && (n = SYSCALL(__NR_getdents64, folder, entries, sizeof entries, 0)) > 0)
        for (long at = 0; at < n;) {
            struct directory_entry *entry = (struct directory_entry *)(entries + at);
            if (entry->name[0] >= '1' && entry->name[0] <= '9')
                examine(entry->name, marks, signal, &findings);
            at += entry->size;
        }
    if (folder >= 0)
        sys_close((int)folder);
    return findings;
}

/* The same rules as `LeftBehind` in hooks.rs. */
static void end_marked(const struct marks *marks) {
    uint64_t began = now_ns(), pause = MILLISECOND, none_since = 0;
    int is_any_found = 0;
    for (uint64_t now = began; now - began <= 2 * PATIENCE; now = now_ns()) {
        struct findings findings = signal_marked(marks, now - began < PATIENCE ? SIGTERM : SIGKILL);
        if (findings.marked) {
            is_any_found = 1;
            none_since = 0;
        } else {
            /* One that ended while they were searched may have forked another: none is found twice then. */
            if (!findings.uncertain && (!is_any_found || none_since))
                return;
            if (!none_since)
                none_since = now;
            else if (now - none_since > SETTLING)
                return;
        }
        sleep_until(now_ns() + pause);
        pause = pause < 50 * MILLISECOND ? 2 * pause : 100 * MILLISECOND;
    }
}

/* argv: guardian VARIABLE [PATH LINK]: the marks. Standard input is the pipe. */
int main_(int argc, char **argv) {
    char byte;
    long n;
    if (argc != 2 && argc != 4)
        return 1;
    struct marks marks = {argv[1], argc == 4 ? argv[2] : 0, argc == 4 ? argv[3] : 0};
    sys_setsid();
    sys_chdir("/");
    sys_prctl(PR_SET_NAME, (long)"ww-guardian");
    while ((n = sys_read(0, &byte, 1)) > 0 || n == -EINTR) {
    }
    end_marked(&marks);
    sys_exit_group(0);
}
