/* posix_spawn with all that it may do to the child, system, popen, vfork, wordexp: what glibc 2.38 and later
 * make with clone3 and CLONE_CLEAR_SIGHAND. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

extern char **environ;
static volatile sig_atomic_t seen;

static void handler(int signal) { seen += signal == SIGCHLD; }

static pid_t pid;

static void end(const char *what, int error) {
    int status = -1;
    if (error == 0)
        waitpid(pid, &status, 0);
    printf("%s: %s, status %x\n", what, strerror(error), (unsigned)status);
    fflush(stdout);
}

int main(void) {
    char *shows[] = {"sh", "-c",
                     "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; pwd | sed 's,.*/,,'; cat; exit 9", NULL};
    char *self[] = {"sh", "-c", "kill -TERM $$", NULL}, *none[] = {"none", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    signal(SIGCHLD, handler);
    signal(SIGUSR1, SIG_IGN);
    FILE *input = fopen("input", "w");
    fputs("from a file\n", input);
    fclose(input);

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "input", O_RDONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, "/usr");
    posix_spawnattr_init(&attributes);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigaddset(&set, SIGUSR1);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    end("all of it", posix_spawnp(&pid, "sh", &actions, &attributes, shows, environ));
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_RESETIDS);
    end("a session", posix_spawnp(&pid, "sh", NULL, &attributes, self, environ));
    end("none", posix_spawnp(&pid, "none", NULL, NULL, none, environ));
    posix_spawn_file_actions_adddup2(&actions, 99, 1);
    end("a wrong file", posix_spawnp(&pid, "sh", &actions, NULL, shows, environ));
    for (int i = 0; i < 50; i++) {
        pid_t one;
        int status, error = posix_spawnp(&one, "true", NULL, NULL, (char *[]){"true", NULL}, environ);
        if (error != 0 || waitpid(one, &status, 0) != one || status != 0)
            printf("%d: %d %x\n", i, error, (unsigned)status);
    }

    printf("system: %x\n", (unsigned)system("echo in a shell; exit 3"));
    fflush(stdout);
    printf("system: %x\n", (unsigned)system("kill -9 $$"));
    printf("system: %x\n", (unsigned)system("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
    printf("system: %x\n", (unsigned)system(NULL));
    fflush(stdout);
    char line[64];
    FILE *pipe = popen("echo one; echo two; exit 4", "re");
    while (fgets(line, sizeof line, pipe) != NULL)
        printf("popen: %s", line);
    printf("pclose: %x\n", (unsigned)pclose(pipe));
    fflush(stdout);
    pipe = popen("tr a-z A-Z", "w");
    fputs("written\n", pipe);
    printf("pclose: %x\n", (unsigned)pclose(pipe));
    fflush(stdout);
    if ((pid = vfork()) == 0) {
        execlp("sh", "sh", "-c", "exit 6", NULL);
        _exit(127);
    }
    end("vfork", 0);
    wordexp_t words;
    int answer = wordexp("a $(echo b c) \"$HOME_OF_NONE\" ~none", &words, 0);
    printf("wordexp: %d, %zu words\n", answer, words.we_wordc);
    printf("SIGCHLD: %s\n", seen > 0 ? "seen" : "none");
    return 0;
}
