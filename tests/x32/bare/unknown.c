/* A request that the runtime does not know, with SIGSEGV blocked and without. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(void) {
    sigset_t all;
    sigfillset(&all);
    int free = ioctl(0, 0x12345678, 0);
    printf("%d %s\n", free, strerror(errno));
    sigprocmask(SIG_SETMASK, &all, NULL);
    int blocked = ioctl(0, 0x12345678, 0);
    printf("%d %s\n", blocked, strerror(errno));
    return 0;
}
