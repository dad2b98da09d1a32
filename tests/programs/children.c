/* Known truth: K children (argument 1), each of which touches M MiB (argument 2) and burns T ms of CPU time
 * (argument 3). Argument 4: `wait` (the default), `ignore` (SIGCHLD is ignored: no wait), `daemon` (each
 * child is orphaned, in a session of its own, and ends before the parent does), `linger` (as daemon, but it
 * sleeps on), or the path of a `cgroup.procs` (as ignore, but each child first moves to that control group).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void work(long mebibytes, long milliseconds) {
    unsigned long bytes = (unsigned long)mebibytes << 20;
    if (bytes > 0) {
        volatile char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (unsigned long at = 0; at < bytes; at += 4096)
            memory[at] = 1;
    }
    struct timespec now;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1, mebibytes = argc > 2 ? atol(argv[2]) : 0;
    long milliseconds = argc > 3 ? atol(argv[3]) : 0;
    const char *mode = argc > 4 ? argv[4] : "wait";
    int orphan = !strcmp(mode, "daemon") || !strcmp(mode, "linger");
    int done[2];
    if (pipe(done))
        return 1;
    int moves = mode[0] == '/';
    if (moves || !strcmp(mode, "ignore"))
        signal(SIGCHLD, SIG_IGN);
    for (long i = 0; i < count; i++)
        if (fork() == 0) {
            if (orphan && fork() > 0)
                _exit(0);
            if (orphan)
                setsid();
            if (moves && write(open(mode, O_WRONLY), "0", 1) != 1)
                _exit(1);
            work(mebibytes, milliseconds);
            if (!strcmp(mode, "linger")) {
                close(done[0]);
                close(done[1]);
                sleep(1000);
            }
            _exit(0);
        }
    close(done[1]);
    char none;
    while (read(done[0], &none, 1) > 0)
        ;
    while (wait(0) > 0)
        ;
    return 0;
}
