/*
 * Calls of the last years: pidfd, rseq, membarrier, landlock, random bytes.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/random.h>

int main(void) {
    unsigned char random[64] = {0};
    RESULT(getrandom(random, sizeof random, 0));
    int zeros = 0;
    for (unsigned i = 0; i < sizeof random; i++)
        zeros += random[i] == 0;
    IS(zeros < 20);
    RESULT(getrandom((void *)8, 16, 0));
    RESULT(getrandom(random, 16, 0x100));

    say("pidfd");
    pid_t child = fork();
    if (child == 0) {
        open("/dev/zero", O_RDONLY);
        pause();
    }
    int file = SUCCESS(syscall(SYS_pidfd_open, child, 0));
    RESULT(syscall(SYS_pidfd_open, child, 1));
    RESULT(syscall(SYS_pidfd_open, 1 << 30, 0));
    RESULT(poll(&(struct pollfd){file, POLLIN, 0}, 1, 0));
    RESULT(syscall(SYS_pidfd_send_signal, file, 0, NULL, 0));
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGTERM, info.si_code = SI_QUEUE, info.si_value.sival_int = 3;
    RESULT(syscall(SYS_pidfd_send_signal, file, SIGUSR1, &info, 0));
    RESULT(syscall(SYS_pidfd_send_signal, file, SIGTERM, (void *)8, 0));
    SUCCESS(syscall(SYS_pidfd_getfd, file, 1, 0));
    RESULT(syscall(SYS_pidfd_getfd, file, 200, 0));
    RESULT(syscall(SYS_pidfd_send_signal, file, SIGTERM, &info, 0));
    RESULT(poll(&(struct pollfd){file, POLLIN, 0}, 1, 5000));
    ended("child", child);
    RESULT(syscall(SYS_pidfd_send_signal, file, SIGTERM, NULL, 0));

    say("membarrier and rseq");
    IS(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) > 0);
    RESULT(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
    RESULT(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
    RESULT(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
    RESULT(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
    RESULT(syscall(SYS_membarrier, 1 << 30, 0, 0));
    static char area[64] __attribute__((aligned(32)));
    RESULT(syscall(SYS_rseq, area, 32, 0, 0x53053053));
    RESULT(syscall(SYS_rseq, area + 1, 32, 0, 0x53053053));

    say("landlock");
    struct landlock_ruleset_attr rules = {.handled_access_fs = 1ULL << 60};
    IS(syscall(SYS_landlock_create_ruleset, NULL, 0, 1) == -1 || errno == 0);
    long made_rules = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    say("unknown access: %s",
        made_rules == -1 && (errno == EINVAL || errno == ENOMSG || errno == EOPNOTSUPP) ? "refused" : "odd");
    RESULT(syscall(SYS_landlock_restrict_self, -1, 0) == -1);
    return 0;
}
