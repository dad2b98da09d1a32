/*
 * Process 1 of a kernel on which the runtime is tried: runs every line of /list as a command, its words
 * separated by single blanks; what each says and how it ended goes to the second serial line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char *line) {
    char *words[32];
    int count = 0, status;
    for (char *word = strtok(line, " \n"); word && count < 31; word = strtok(NULL, " \n"))
        words[count++] = word;
    words[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        execv(words[0], words);
        perror(words[0]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    char line[512];
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    mknod("/dev/ttyS1", S_IFCHR | 0600, makedev(4, 65));
    int reports = open("/dev/ttyS1", O_WRONLY);
    FILE *list = fopen("/list", "r");
    dup2(reports, 1);
    dup2(reports, 2);
    setvbuf(stdout, NULL, _IONBF, 0);
    while (list && fgets(line, sizeof line, list)) {
        printf("$ %s", line);
        printf("status %#x\n", run(line));
    }
    printf("@@@\n");
    sync();
    fsync(reports);
    usleep(500000);
    reboot(RB_AUTOBOOT);
    return 1;
}
