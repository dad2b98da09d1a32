/*
 * A call that a handler interrupts while SIGSEGV is blocked; the handler makes the same call, from the same
 * place, so often that the runtime rewrites that place before the first call goes on.
 */
#include "transcript.h"
#include <poll.h>
#include <sys/time.h>

static volatile int count;
static void handler(int number) {
    (void)number;
    count++;
    for (int i = 0; i < 3; i++)
        syscall(SYS_poll, NULL, 0, 1);
}

int main(void) {
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigprocmask(SIG_BLOCK, &faults, NULL);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 50000}}, NULL);
    RESULT(syscall(SYS_poll, NULL, 0, 5000));
    VALUE(count);
    RESULT(syscall(SYS_poll, NULL, 0, 1));
    return 0;
}
