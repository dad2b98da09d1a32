/*
 * lists FOLDER TIMES [WAY]: reads a folder so often, two calls of getdents64 each time, in the way that is
 * asked for: in its own process (none), `thread`, `fork`, or `exec`, each of which reads it once more in
 * another.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;
static long times;

static void *list(void *argument) {
    char entries[4096];
    for (long i = 0; i < times; i++) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY);
        while (syscall(SYS_getdents64, fd, entries, sizeof entries) > 0) {
        }
        close(fd);
    }
    return argument;
}

int main(int count, char **words) {
    if (count < 3) {
        return 2;
    }
    folder = words[1];
    times = atol(words[2]);
    const char *way = count > 3 ? words[3] : "";
    list(NULL);
    if (strcmp(way, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, list, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(way, "fork") == 0) {
        if (fork() == 0) {
            list(NULL);
            _exit(0);
        }
        wait(NULL);
    } else if (strcmp(way, "exec") == 0) {
        execl(words[0], words[0], words[1], words[2], (char *)NULL);
    }
    puts("listed");
    return 0;
}
