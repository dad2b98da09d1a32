/*
 * Plain rows that few programs use: memory policies, handles, comparisons, priorities of input and output,
 * local descriptor tables, logs.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static void on_signal(int number) { (void)number; }

int main(void) {
    say("memory policies");
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    uint64_t nodes[16] = {1};
    int mode = 77;
    RESULT(syscall(SYS_set_mempolicy, MPOL_BIND, nodes, 64));
    RESULT(syscall(SYS_get_mempolicy, &mode, nodes, 1024, 0, 0));
    say("mode %d nodes %llx %llx", mode, (long long)nodes[0], (long long)nodes[1]);
    RESULT(syscall(SYS_get_mempolicy, &mode, NULL, 0, page, 3));
    VALUE(mode);
    RESULT(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
    RESULT(syscall(SYS_mbind, page, 4096, MPOL_PREFERRED, nodes, 64, 0));
    RESULT(syscall(SYS_mbind, page + 1, 4096, MPOL_PREFERRED, nodes, 64, 0));
    nodes[0] = 0, nodes[1] = 1;
    RESULT(syscall(SYS_mbind, page, 4096, MPOL_BIND, nodes, 128, 0));
    RESULT(syscall(SYS_set_mempolicy, 99, NULL, 0));
    nodes[0] = 1;
    RESULT(syscall(SYS_migrate_pages, 0, 64, nodes, nodes));
    RESULT(syscall(SYS_get_mempolicy, (void *)8, NULL, 0, 0, 0));

    say("descriptor tables");
    struct {
        uint32_t entry, base, limit, flags;
    } segment = {0, 0x1000, 0xfffff, 0x51};
    RESULT(syscall(SYS_modify_ldt, 1, &segment, sizeof segment));
    char table[64] = "";
    RESULT(syscall(SYS_modify_ldt, 0, table, sizeof table));
    RESULT(syscall(SYS_modify_ldt, 7, table, sizeof table));

    say("comparing and sending");
    int file = open("file", O_RDWR | O_CREAT, 0600), same = dup(file);
    RESULT(syscall(SYS_kcmp, getpid(), getpid(), 0, file, same));
    RESULT(syscall(SYS_kcmp, getpid(), getpid(), 0, file, 250));
    RESULT(syscall(SYS_kcmp, getpid(), getpid(), 99, 0, 0));
    RESULT(syscall(SYS_tkill, getpid(), 0));
    RESULT(syscall(SYS_tgkill, getpid(), getpid(), 0));
    RESULT(syscall(SYS_tgkill, getpid(), 1, 0));
    RESULT(syscall(SYS_tkill, -1, 0));
    /* What a call of the parent's has left to be restarted is inherited, until a handler has returned. */
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    RESULT(syscall(SYS_restart_syscall));
    RESULT(syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 5));
    RESULT(syscall(SYS_ioprio_get, 1, 0));
    RESULT(syscall(SYS_ioprio_get, 9, 0));
    RESULT(syscall(SYS_ioprio_set, 1, 0, 9 << 13));
    IS(syscall(SYS_time, NULL) > 1600000000);
    long long now[2] = {0, 0x5a5a5a5a};
    IS(syscall(SYS_time, now) > 1600000000 && now[0] > 1600000000 && now[1] == 0x5a5a5a5a);
    RESULT(syscall(SYS_time, (void *)8));
    RESULT(syscall(SYS_alarm, 0));
    RESULT(syscall(SYS_creat, "made", 0600) > 2);
    RESULT(syscall(SYS_remap_file_pages, page, 4096, 0, 0, 0));
    RESULT(syscall(SYS_ustat, 0, (void *)8));
    char handle[160];
    memset(handle, 0, sizeof handle);
    int mount = 0;
    RESULT(syscall(SYS_name_to_handle_at, AT_FDCWD, "missing", handle, &mount, 0));
    RESULT(syscall(SYS_name_to_handle_at, AT_FDCWD, "file", (void *)8, &mount, 0));
    RESULT(syscall(SYS_sysfs, 9, 0, 0));
    RESULT(syscall(SYS_unshare, 0));
    RESULT(syscall(SYS_unshare, 1));
    RESULT(syscall(SYS_unshare, CLONE_FILES | CLONE_FS));
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } attributes = {48, 0, 0, getpriority(PRIO_PROCESS, 0), 0, {0}};
    RESULT(syscall(SYS_sched_setattr, 0, &attributes, 0));
    attributes.size = 10000;
    RESULT(syscall(SYS_sched_setattr, 0, &attributes, 0));
    RESULT(syscall(SYS_sched_setattr, 0, (void *)8, 0));
    RESULT(syscall(SYS_sched_getattr, 0, &attributes, 8, 0));
    RESULT(syscall(SYS_mknodat, AT_FDCWD, "fifo", S_IFIFO | 0600, 0));
    RESULT(syscall(SYS_futimesat, AT_FDCWD, "file", NULL));
    RESULT(syscall(SYS_symlinkat, "file", AT_FDCWD, "link"));
    RESULT(syscall(SYS_fchmodat, AT_FDCWD, "file", 0644));
    RESULT(syscall(SYS_fchownat, AT_FDCWD, "file", -1, -1, AT_SYMLINK_NOFOLLOW));
    RESULT(syscall(SYS_lchown, "link", -1, -1));
    RESULT(syscall(SYS_syncfs, file));
    RESULT(syscall(SYS_getpgrp) == getpgrp());
    RESULT(syscall(SYS_sched_getparam, 0, (void *)8));
    /* Leaves only the thread; the last one's status is the process's. */
    pid_t child = fork();
    if (child == 0)
        syscall(SYS_exit, 300);
    ended("exit", child);
    return 0;
}
