/*
 * The least that starting a program can cost: runs the file (argument 2) so many times (argument 1), one
 * after the other, and does nothing else.
 */
#define _GNU_SOURCE /* vfork */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    for (long times = atol(argv[1]); times > 0; times--) {
        pid_t child = vfork();
        if (child < 0)
            return 1;
        if (child == 0) {
            execv(argv[2], argv + 2);
            _exit(127);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
