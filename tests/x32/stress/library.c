/* Loaded and unloaded, over and over: two of them, which differ in VALUE, come to lie in the same place. */
#include <sys/syscall.h>
#include <unistd.h>

int makes_calls(void);
int makes_calls(void) {
    int parent = getppid();
    for (int i = 0; i < 4; i++)
        if ((int)syscall(SYS_getppid) != parent || getpid() <= 0)
            return -1;
    return VALUE;
}
