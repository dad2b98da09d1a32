/* Starts itself by a path, by a descriptor, in a directory and by way of a script. Each prints how the kernel
 * names it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char own[4096];

/* The file's name is another in each ABI. */
static void without_own_name(const char *text) {
    const char *last = strrchr(own, '/') + 1, *found = strstr(text, last);
    if (found != NULL)
        printf("%.*sOWN%s", (int)(found - text), text, found + strlen(last));
    else
        printf("%s", text);
}

static void start(const char *what, int directory, const char *path, int flags) {
    char *words[] = {"started", "word", NULL};
    printf("%s: ", what);
    fflush(stdout);
    if (fork() == 0) {
        execveat(directory, path, words, environ, flags);
        printf("%s\n", strerror(errno));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

int main(int count, char **words) {
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0)
        return 1;
    own[length] = 0;
    if (count > 1 && strcmp(words[1], "start") != 0) {
        printf("AT_EXECFN ");
        without_own_name((const char *)getauxval(AT_EXECFN));
        for (int at = 1; at < count; at++) {
            printf(", ");
            without_own_name(words[at]);
        }
        puts("");
        return 0;
    }
    const char *name = strrchr(own, '/') + 1;
    FILE *script = fopen("script.sh", "w");
    if (script == NULL)
        return 1;
    fprintf(script, "#!%s argument\n", own);
    fclose(script);
    if (chmod("script.sh", 0755) != 0)
        return 1;
    char beginning[100];
    int own_file = open(own, O_RDONLY), cut_off = open("cut-off", O_WRONLY | O_CREAT, 0755);
    if (read(own_file, beginning, sizeof beginning) != sizeof beginning ||
        write(cut_off, beginning, sizeof beginning) != sizeof beginning || close(cut_off) != 0)
        return 1;
    int file = open(own, O_RDONLY), folder = open(".", O_RDONLY | O_DIRECTORY),
        closed = open(".", O_RDONLY | O_CLOEXEC), of_script = open("script.sh", O_RDONLY),
        closed_script = open("script.sh", O_RDONLY | O_CLOEXEC);
    start("descriptor", file, "", AT_EMPTY_PATH);
    start("folder", folder, name, 0);
    start("folder that is closed", closed, name, 0);
    start("path", AT_FDCWD, name, 0);
    start("script", AT_FDCWD, "script.sh", 0);
    start("script by descriptor", of_script, "", AT_EMPTY_PATH);
    start("script in a folder", folder, "script.sh", 0);
    start("script by a descriptor that is closed", closed_script, "", AT_EMPTY_PATH);
    start("script in a folder that is closed", closed, "script.sh", 0);
    start("file that is cut off", AT_FDCWD, "cut-off", 0);
    return 0;
}
