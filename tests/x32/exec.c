/*
 * built: static, dynamic
 *
 * execve and execveat (rows 520 and 545): children of x32 and of x86-64, scripts, what is kept, and errors.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char *plain[] = {"PATH=/bin", "ONE=1", "EMPTY=", NULL};

static void run_with(const char *what, const char *path, char **words, char **variables) {
    pid_t child = fork();
    if (child == 0) {
        execve(path, words, variables);
        say("%s: %s", what, error_name(errno));
        _exit(99);
    }
    ended(what, child);
}
static void at(const char *what, int folder, const char *path, int flags) {
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_execveat, folder, path, (char *[]){"called", "exit", "5", NULL}, plain, flags);
        say("%s: %s", what, error_name(errno));
        _exit(99);
    }
    ended(what, child);
}
/* With as many descriptors as the soft limit allows, all of which execve closes. */
static void run_without_descriptors(const char *what, const char *path, char **words) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit low = {.rlim_cur = 20, .rlim_max = limit.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
            ;
        execve(path, words, plain);
        say("%s: %s", what, error_name(errno));
        _exit(99);
    }
    ended(what, child);
}
static void nothing(int number) { (void)number; }

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "again") == 0) {
        say("started again with %s and TZ %s", words[2], getenv("TZ") ? "set" : "unset");
        return 12;
    }
    char here[600], folder[512], path[512];
    getcwd(here, sizeof here);
    strcpy(folder, getenv("PROGRAMS"));
    RESULT(chdir(folder));
    char *with_words[] = {"name of its own", "two words", "", NULL}, *exit_9[] = {"x", "exit", "9", NULL};
    run_with("x32", "child-x32", with_words, plain);
    run_with("x86-64", "child-x86-64", with_words, plain);
    run_with("dynamic x32", "child-x32-dynamic", with_words, plain);
    run_with("killed", "child-x32", (char *[]){"x", "kill", "15", NULL}, plain);
    run_with("nothing at all", "./child-x32", (char *[]){NULL}, (char *[]){NULL});
    run_with("no pointers", "./child-x32", NULL, NULL);
    run_with("script", "./script", (char *[]){"x", "word", NULL}, plain);
    run_with("script of scripts", "./script-of-scripts", (char *[]){"x", "word", NULL}, plain);
    run_with("script without an interpreter", "./script-without-interpreter", exit_9, plain);
    /* From x86-64 back to x32 is the kernel's business on both sides. */

    say("itself");
    snprintf(path, sizeof path, "%s", words[0]);
    run_with("by its path", path, (char *[]){path, "again", "a path", NULL}, environ);
    run_with("by /proc/self/exe", "/proc/self/exe", (char *[]){path, "again", "a link", NULL}, plain);

    say("execveat");
    int self = open("child-x32", O_RDONLY), other = open("child-x86-64", O_RDONLY | O_CLOEXEC),
        dir = open(".", O_PATH);
    at("x32 by descriptor", self, "", AT_EMPTY_PATH);
    at("x86-64 by descriptor", other, "", AT_EMPTY_PATH);
    at("x32 in a folder", dir, "child-x32", 0);
    at("here", AT_FDCWD, "child-x32", 0);
    at("no empty path", self, "", 0);
    at("wrong descriptor", 200, "child-x32", 0);
    at("wrong flags", dir, "child-x32", 0x40000);
    int opened = open("child-x32", O_PATH | O_CLOEXEC);
    at("x32 by path descriptor", opened, "", AT_EMPTY_PATH);
    close(self), close(other), close(dir), close(opened);

    say("errors");
    run_with("missing", "missing", exit_9, plain);
    run_with("under a file", "child-x32/x", exit_9, plain);
    run_with("a folder", folder, exit_9, plain);
    snprintf(path, sizeof path, "%s/fifo", here);
    mkfifo(path, 0777);
    run_with("a pipe with a name", path, exit_9, plain);
    run_with("bad path", (char *)8, exit_9, plain);
    run_with("bad words", "child-x32", (char **)8, plain);
    run_with("bad variables", "child-x32", exit_9, (char **)8);
    run_with("a bad word", "child-x32", (char *[]){"x", (char *)8, NULL}, plain);
    run_with("empty path", "", exit_9, plain);
    snprintf(path, sizeof path, "%s/data", here);
    int file = open(path, O_RDWR | O_CREAT, 0644);
    write(file, "no program\n", 11);
    run_with("not executable", path, exit_9, plain);
    fchmod(file, 0755);
    close(file);
    file = memfd_create("made", 0);
    write(file,
          "\x7f"
          "ELF\1\1\1 and nothing more",
          20);
    at("a cut ELF file", file, "", AT_EMPTY_PATH);

    say("sizes");
    enum { MANY = 3000 };
    static char *many[MANY + 1], big[200000];
    for (int i = 0; i < MANY; i++)
        many[i] = "NAME=0123456789012345678901234567890123456789";
    run_with("many variables", "child-x32", (char *[]){"x", "sizes", NULL}, many);
    memset(big, 'b', 100000);
    run_with("a long word", "child-x32", (char *[]){"x", "sizes", big, NULL}, plain);
    memset(big, 'b', sizeof big - 1);
    run_with("too long a word", "child-x32", (char *[]){"x", "sizes", big, NULL}, plain);
    big[131000] = 0;
    for (int i = 0; i < MANY; i++)
        many[i] = big;
    run_with("too many", "child-x32", (char *[]){"x", "sizes", NULL}, many);

    say("no descriptor is left");
    run_without_descriptors("x32", "child-x32", exit_9);
    run_without_descriptors("x86-64", "child-x86-64", exit_9);
    run_without_descriptors("script", "./script", (char *[]){"x", "word", NULL});

    say("what is kept");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, nothing);
    raise(SIGUSR2);
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    dup2(1, 10);
    fcntl(dup2(1, 11), F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGUSR2);
        execve("child-x32", (char *[]){"x", "state", NULL}, plain);
    }
    ended("state", child);
    child = fork();
    if (child == 0)
        execve("child-x86-64", (char *[]){"x", "state", NULL}, plain);
    ended("state", child);
    return 0;
}
