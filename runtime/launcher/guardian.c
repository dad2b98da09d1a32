/*
 * The guardian: ends what setup and teardown commands have left in the background when widthwise was killed.
 *
 * It sleeps in read(2) on a pipe of which only widthwise has the other end. At the end of file widthwise is
 * gone, however it ended, and so is every child of it that was about to execute a program: until then, such a
 * child has the pipe, too. The processes that are to end carry a mark in their environment, whatever their
 * session and parent.
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

struct findings {
    int marked;    /* processes with the mark */
    int uncertain; /* and processes that may have it: they are about to execute a program */
};

static long open_at(int folder, const char *name) {
    return SYSCALL(__NR_openat, folder, name, O_RDONLY | O_CLOEXEC, 0);
}

/* Whether one of the strings in /proc/PID/environ is `mark`; `size` is the number of bytes that were read. */
static int has_mark(int process, const char *mark, long *size) {
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

/* Sends the signal to a process that has the mark. The open folder is this process's, also if its number is
 * another's by now. */
static void examine(const char *number, const char *mark, int signal, struct findings *findings) {
    static char path[64];
    if (length(number) > 20)
        return;
    append(append(path, "/proc/"), number);
    long process = sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (process < 0)
        return;
    long size;
    if (has_mark((int)process, mark, &size)) {
        findings->marked++;
        SYSCALL(__NR_pidfd_send_signal, process, signal, 0, 0);
    } else if (size == 0) {
        findings->uncertain |= is_executing((int)process);
    }
    sys_close((int)process);
}

static struct findings signal_marked(const char *mark, int signal) {
    static char entries[16 << 10] __attribute__((aligned(8)));
    struct findings findings = {0, 0};
    long folder = sys_open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;
    while (folder >= 0 && (n = SYSCALL(__NR_getdents64, folder, entries, sizeof entries, 0)) > 0)
        for (long at = 0; at < n;) {
            struct directory_entry *entry = (struct directory_entry *)(entries + at);
            if (entry->name[0] >= '1' && entry->name[0] <= '9')
                examine(entry->name, mark, signal, &findings);
            at += entry->size;
        }
    if (folder >= 0)
        sys_close((int)folder);
    return findings;
}

/* The same rules as `LeftBehind` in hooks.rs. */
static void end_marked(const char *mark) {
    uint64_t began = now_ns(), pause = MILLISECOND, none_since = 0;
    int is_any_found = 0;
    for (uint64_t now = began; now - began <= 2 * PATIENCE; now = now_ns()) {
        struct findings findings = signal_marked(mark, now - began < PATIENCE ? SIGTERM : SIGKILL);
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

/* argv: guardian MARK: the string in the environment of what is to end. Standard input is the pipe. */
int main_(int argc, char **argv) {
    char byte;
    long n;
    if (argc != 2)
        return 1;
    sys_setsid();
    sys_chdir("/");
    sys_prctl(PR_SET_NAME, (long)"ww-guardian");
    while ((n = sys_read(0, &byte, 1)) > 0 || n == -EINTR) {
    }
    end_marked(argv[1]);
    sys_exit_group(0);
}
