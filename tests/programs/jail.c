/*
 * Starts itself again in places without /proc. jail FOLDER: goes into the folder by chroot; there the program
 * is /jail, and /text the same file without the right to be executed.
 */
#define _GNU_SOURCE /* execveat() */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void inside(void) {
    char *spawned[] = {"spawned", "end", "posix_spawn", NULL}, *given[] = {"given", "end", "fexecve", NULL};
    pid_t child;
    int status = -1, file = open("/jail", O_RDONLY | O_CLOEXEC);
    int error = posix_spawn(&child, "/jail", NULL, NULL, spawned, environ);
    if (error == 0)
        waitpid(child, &status, 0);
    printf("posix_spawn: %s, status %d\n", strerror(error), status);
    execl("/text", "text", "end", "text", NULL);
    printf("not executable: %s\n", strerror(errno));
    execl("/nothing", "nothing", NULL);
    printf("not there: %s\n", strerror(errno));
    fflush(stdout);
    syscall(SYS_execveat, file, "", given, environ, AT_EMPTY_PATH);
    perror("execveat");
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "end") == 0) {
        printf("%s, by %s; %d descriptors\n", words[0], words[2], dup(0) - 3);
        return 0;
    }
    if (count == 2 && strcmp(words[1], "inside") == 0) {
        inside();
        return 1;
    }
    if (count == 2 && (chroot(words[1]) != 0 || chdir("/") != 0)) {
        perror("chroot");
        return 1;
    }
    execl("/jail", "jail", "inside", NULL);
    perror("execl");
    return 1;
}
