#include "interception.h"
#include "diagnostics.h"
#include "settings.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define PROGRAM_END (1UL << 32)
#define USER_END 0x7ffffffff000UL
/* What the filter puts into si_errno, so that no other filter's trap is taken for ours. */
#define OUR_MARK 0x7832

extern u8 x32_stubs_end[];

static enum interception used;
static int is_decided;

/* Calls from `low` on are let through. */
static long arm_dispatch(u64 low) {
    return KERNEL_5(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, low, USER_END - low, 0);
}

static long arm_seccomp(void) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        /* Not i386's calls: the filter is inherited by i386 programs that this one executes. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | OUR_MARK),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof instructions / sizeof instructions[0], instructions};
    KERNEL_5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return KERNEL_5(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

void interception_begin(int valgrind, int seccomp_wanted) {
    is_decided = 1;
    if (valgrind) {
        used = CATCH_NOTHING;
        return;
    }
    used = CATCH_DISPATCH;
    long dispatch = seccomp_wanted ? -EINVAL : arm_dispatch(PROGRAM_END);
    if (!failed(dispatch)) {
        return;
    }
    used = CATCH_SECCOMP;
    long filter = arm_seccomp();
    if (failed(filter)) {
        give_up(126,
                "this kernel, or the sandbox around this process, lets x32 calls be caught neither by "
                "Syscall User "
                "Dispatch (prctl 59: %s) nor by seccomp (prctl 22: %s); allow one of them, or use Linux 5.11 "
                "or later",
                error_name(-dispatch), error_name(-filter));
    }
}

void interception_arm_thread(int with_stubs) {
    if (used == CATCH_DISPATCH) {
        arm_dispatch(with_stubs ? (u64)x32_stubs_end : PROGRAM_END);
    }
}

enum interception interception_used(void) { return used; }

int interception_catches_every_number(void) {
    static int known;
    if (is_decided) {
        return used == CATCH_DISPATCH;
    }
    /* Of what is rewritten ahead: to switch it off does nothing, and fails where there is none. */
    if (known == 0) {
        int is_there = !settings.valgrind && !settings.seccomp &&
                       KERNEL_5(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) == 0;
        known = is_there ? 1 : -1;
    }
    return known > 0;
}

int interception_caught(i32 code, i32 error, u64 rip, int with_stubs) {
    if (rip >= (with_stubs ? (u64)x32_stubs_end : PROGRAM_END)) {
        return 0;
    }
    return (used == CATCH_DISPATCH && code == SYS_USER_DISPATCH) ||
           (used == CATCH_SECCOMP && code == SYS_SECCOMP && error == OUR_MARK);
}
