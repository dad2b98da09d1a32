/*
 * Counts the instructions that a program (argument 1, with the rest) executes in user mode, one by one
 * (ptrace): those below 4 GiB, which are an x32 program's, and those above, which are the runtime's.
 *
 * As process 1 of a kernel that has x32 it counts /storm with 1000 and with 2000, and switches the machine
 * off: that the same binary executes as many instructions there.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int count(char **words) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(words[0], words);
        _exit(127);
    }
    unsigned long below = 0, above = 0, passed_on = 0;
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    while (WIFSTOPPED(status)) {
        unsigned long at = (unsigned long)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), 0);
        if (ptrace(PTRACE_SINGLESTEP, child, 0, passed_on) || waitpid(child, &status, 0) != child)
            return 1;
        /* A signal that is about to be delivered: nothing was executed. */
        passed_on = WIFSTOPPED(status) && WSTOPSIG(status) != SIGTRAP ? (unsigned long)WSTOPSIG(status) : 0;
        if (passed_on == 0)
            *(at >> 32 ? &above : &below) += 1;
    }
    printf("%lu below 4 GiB, %lu above\n", below, above);
    fflush(stdout);
    return status != 0;
}

int main(int words_count, char **words) {
    if (getpid() == 1) {
        count((char *[]){"/storm", "1000", 0});
        count((char *[]){"/storm", "2000", 0});
        reboot(RB_POWER_OFF);
    }
    return words_count < 2 ? 2 : count(words + 1);
}
