/*
 * A signalfd for SIGSYS.
 */
#include "transcript.h"
#include <poll.h>
#include <sys/signalfd.h>

int main(void) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGSYS);
    sigprocmask(SIG_BLOCK, &only, NULL);
    int file = signalfd(-1, &only, SFD_NONBLOCK);
    struct signalfd_siginfo info = {0};
    struct pollfd ready = {.fd = file, .events = POLLIN};
    raise(SIGSYS);
    RESULT(poll(&ready, 1, 100));
    RESULT(read(file, &info, sizeof info));
    VALUE(info.ssi_signo);
    sigset_t pending;
    sigpending(&pending);
    IS(sigismember(&pending, SIGSYS));
    return 0;
}
