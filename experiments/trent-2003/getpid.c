/* Calls the kernel and does nothing else: N times getpid, past the C library. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    long calls = count > 1 ? atol(words[1]) : 100000;
    for (long i = 0; i < calls; i++)
        syscall(SYS_getpid);
    printf("%ld calls\n", calls);
    return 0;
}
