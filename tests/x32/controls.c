/*
 * prctl and its kind: names, signals of a dying parent, subreapers, dumpability, capabilities, identities.
 */
#include "transcript.h"
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>

int main(void) {
    char name[20] = "";
    RESULT(prctl(PR_SET_NAME, "short"));
    RESULT(prctl(PR_GET_NAME, name));
    TEXT(name);
    RESULT(prctl(PR_GET_NAME, 8));
    int value[2] = {-1, -1};
    RESULT(prctl(PR_SET_PDEATHSIG, SIGUSR1));
    RESULT(prctl(PR_GET_PDEATHSIG, value));
    say("%d %d", value[0], value[1]);
    RESULT(prctl(PR_SET_PDEATHSIG, 99));
    RESULT(prctl(PR_SET_CHILD_SUBREAPER, 1));
    RESULT(prctl(PR_GET_CHILD_SUBREAPER, value));
    VALUE(value[0]);
    RESULT(prctl(PR_GET_DUMPABLE));
    RESULT(prctl(PR_SET_DUMPABLE, 0));
    RESULT(prctl(PR_GET_DUMPABLE));
    RESULT(prctl(PR_SET_DUMPABLE, 7));
    RESULT(prctl(PR_GET_KEEPCAPS));
    RESULT(prctl(PR_GET_TIMERSLACK) > 0);
    RESULT(prctl(PR_SET_TIMERSLACK, 77777));
    RESULT(prctl(PR_GET_TIMERSLACK));
    RESULT(prctl(PR_GET_TSC, value));
    VALUE(value[0]);
    RESULT(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    RESULT(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    RESULT(prctl(PR_CAPBSET_READ, CAP_CHOWN) >= 0);
    RESULT(prctl(PR_CAPBSET_READ, 99));
    RESULT(prctl(PR_GET_SECUREBITS));
    unsigned tid_address[2] = {7, 0x5a5a5a5a};
    RESULT(prctl(PR_GET_TID_ADDRESS, tid_address));
    HEX(tid_address[1]);
    RESULT(prctl(4711));
    RESULT(prctl(PR_SET_MM, 99, 0, 0, 0));
    RESULT(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));

    say("identities");
    uid_t a, b, c;
    RESULT(getresuid(&a, &b, &c));
    IS(a == getuid() && b == geteuid() && c == a);
    RESULT(getresgid(&a, &b, &c));
    IS(a == getgid() && b == getegid() && c == a);
    RESULT(setuid(0));
    RESULT(setresuid(-1, getuid(), -1));
    RESULT(setreuid(-1, -1));
    RESULT(setgroups(0, NULL));
    gid_t groups[64];
    IS(getgroups(64, groups) >= 0);
    RESULT(getgroups(-1, groups));
    IS(setfsuid(-1) == (int)getuid());
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    RESULT(syscall(SYS_capget, &head, data));
    say("effective %#x %#x", data[0].effective, data[1].effective);
    head.version = 7;
    RESULT(syscall(SYS_capget, &head, data));
    HEX(head.version);
    data[0].effective = 1;
    head.version = _LINUX_CAPABILITY_VERSION_3;
    RESULT(syscall(SYS_capset, &head, data));
    HEX(personality(0xffffffff));
    RESULT(personality(UNAME26));
    HEX(personality(0xffffffff));
    IS(syscall(SYS_set_tid_address, tid_address) == getpid());
    IS(syscall(SYS_gettid) == getpid());

    say("not for everybody");
    RESULT(sethostname("x", 1));
    RESULT(syscall(SYS_reboot, 0, 0, 0, 0));
    RESULT(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
    RESULT(syscall(SYS_umount2, "/tmp", 0));
    RESULT(chroot("/"));
    RESULT(syscall(SYS_swapon, "x", 0));
    RESULT(syscall(SYS_pivot_root, ".", "."));
    RESULT(syscall(SYS_vhangup));
    RESULT(syscall(SYS_fanotify_init, 0x100, 0) == -1);
    RESULT(syscall(SYS_bpf, 99, NULL, 0) == -1);
    RESULT(syscall(SYS_perf_event_open, (void *)8, 0, -1, -1, 0) == -1);
    return 0;
}
