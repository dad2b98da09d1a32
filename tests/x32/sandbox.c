/*
 * seccomp with filters: what a filter of the program's own sees and does.
 */
#include "transcript.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

static int install(struct sock_filter *list, int count, int by_prctl) {
    struct sock_fprog program = {count, list};
    if (by_prctl)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
static siginfo_t last;
static uint64_t answer;
static void handler(int number, siginfo_t *info, void *context) {
    (void)number;
    last = *info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = answer;
}
#define LOAD(field)                                                                                          \
    { BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, field) }
#define RETURN(what)                                                                                         \
    { BPF_RET | BPF_K, 0, 0, what }
#define ON(value, action) {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)(value)}, RETURN(action)

static void in_child(const char *what, void (*act)(void)) {
    pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    ended(what, child);
}
static void errors(void) {
    struct sock_filter filter[] = {LOAD(arch),
                                   ON(AUDIT_ARCH_I386, SECCOMP_RET_KILL_PROCESS),
                                   LOAD(nr),
                                   ON(SYS_uname, SECCOMP_RET_ERRNO | EXDEV),
                                   ON(SYS_getppid, SECCOMP_RET_ERRNO | 0),
                                   RETURN(SECCOMP_RET_ALLOW)};
    RESULT(install(filter, sizeof filter / sizeof *filter, 0));
    RESULT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    RESULT(install(filter, sizeof filter / sizeof *filter, 0));
    struct utsname name;
    RESULT(uname(&name));
    IS(getppid() == 0);
    IS(getpid() > 0);
    RESULT(prctl(PR_GET_SECCOMP));
    /* It reaches children, and programs they start. */
    pid_t child = fork();
    if (child == 0) {
        RESULT(uname(&name));
        char path[512];
        snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
        execl(path, "x", "exit", "9", NULL);
    }
    ended("child", child);
}
static void arguments(void) {
    struct sock_filter filter[] = {LOAD(nr),
                                   {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, (uint32_t)SYS_dup},
                                   LOAD(args[0]),
                                   ON(77, SECCOMP_RET_ERRNO | EMLINK),
                                   RETURN(SECCOMP_RET_ALLOW)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    RESULT(install(filter, sizeof filter / sizeof *filter, 1));
    RESULT(dup(77));
    RESULT(dup(78));
}
static void traps(void) {
    struct sock_filter filter[] = {LOAD(nr), ON(SYS_uname, SECCOMP_RET_TRAP | 31),
                                   ON(SYS_writev, SECCOMP_RET_TRAP | 5), RETURN(SECCOMP_RET_ALLOW)};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    RESULT(install(filter, sizeof filter / sizeof *filter, 0));
    answer = 4242;
    VALUE(syscall(SYS_uname, 0));
    say("code %d errno %d, number %#x, architecture %s", last.si_code, last.si_errno, last.si_syscall,
        last.si_arch == AUDIT_ARCH_X86_64 ? "x86-64" : "other");
    IS(last.si_call_addr != NULL);
    VALUE(syscall(SYS_writev, 1, 0, 0));
    say("errno %d, number %#x", last.si_errno, last.si_syscall);
}
static void kills(void) {
    struct sock_filter filter[] = {LOAD(nr), ON(SYS_uname, SECCOMP_RET_KILL_PROCESS),
                                   RETURN(SECCOMP_RET_ALLOW)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    install(filter, sizeof filter / sizeof *filter, 0);
    syscall(SYS_uname, 0);
}
static void wrong(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct sock_filter endless[] = {LOAD(nr)};
    RESULT(install(endless, 1, 0));
    RESULT(install((void *)8, 1, 0));
    RESULT(install(endless, 0, 0));
    RESULT(syscall(SYS_seccomp, 99, 0, NULL));
    RESULT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void *)8));
    uint32_t action = SECCOMP_RET_TRAP;
    RESULT(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
    action = 0x12340000;
    RESULT(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
}

int main(void) {
    RESULT(prctl(PR_GET_SECCOMP));
    RESULT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    in_child("errors", errors);
    in_child("arguments", arguments);
    in_child("traps", traps);
    in_child("kills", kills);
    in_child("wrong", wrong);
    return 0;
}
