/*
 * Strict seccomp: an x32 program's next call, even one of the four that a 64-bit program may make, is its
 * last.
 */
#include "transcript.h"
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static volatile int *reached;

static void by_exit(void) { syscall(SYS_exit, 3); }
static void by_read(void) {
    char byte;
    syscall(SYS_read, 0, &byte, 1);
    *reached += 100;
}
static void by_write(void) {
    syscall(SYS_write, 1, "never\n", 6);
    *reached += 100;
}
static void by_getpid(void) {
    syscall(SYS_getpid);
    *reached += 100;
}
static void by_writev(void) {
    syscall(SYS_writev, 1, 0, 0);
    *reached += 100;
}
static void by_none(void) {
    for (;;)
        ;
}
static void in_child(const char *what, void (*act)(void), int by_seccomp) {
    *reached = 0;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        read(0, &byte, 1);
        alarm(1);
        long result = by_seccomp ? syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)
                                 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        *reached += 1 + result;
        act();
        _exit(9);
    }
    ended(what, child);
    VALUE(*reached);
}

int main(void) {
    reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RESULT(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
    RESULT(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, (void *)8));
    in_child("exit", by_exit, 0);
    in_child("read", by_read, 0);
    in_child("write", by_write, 1);
    in_child("getpid", by_getpid, 1);
    in_child("writev", by_writev, 0);
    in_child("no call, but a signal", by_none, 0);
    return 0;
}
