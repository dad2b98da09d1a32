/* What waitid says and writes if there is no child. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int main(void) {
    siginfo_t info;
    memset(&info, 0xff, sizeof info);
    int result = waitid(P_ALL, 0, &info, WEXITED);
    printf("%d %s: signal %d, error %d, code %d, process %d, user %d, status %d\n", result, strerror(errno),
           info.si_signo, info.si_errno, info.si_code, info.si_pid, (int)info.si_uid, info.si_status);
    /* An address where nothing is. */
    siginfo_t *volatile nowhere = (siginfo_t *)8;
    result = waitid(P_ALL, 0, nowhere, WEXITED);
    printf("%d %s\n", result, strerror(errno));
    return 0;
}
