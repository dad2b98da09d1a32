/*
 * What most tools do: a process of so many MiB (argument 1) runs a command (the rest), without its output,
 * and prints what getrusage(RUSAGE_CHILDREN) then calls the children's peak resident size, in KiB. Linux
 * hands the size of the old image on at execve (fs/exec.c, exec_mmap: setmax_mm_hiwater_rss), so that it is
 * never less than the parent's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    unsigned long bytes = strtoul(argv[1], 0, 10) << 20;
    volatile char *memory = malloc(bytes + 1);
    if (!memory)
        return 1;
    for (unsigned long at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere < 0 || dup2(nowhere, 1) < 0)
            _exit(127);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (waitpid(child, &status, 0) != child || status != 0 || getrusage(RUSAGE_CHILDREN, &usage))
        return 1;
    printf("%ld\n", usage.ru_maxrss);
    return 0;
}
