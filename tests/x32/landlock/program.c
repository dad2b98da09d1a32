/*
 * Landlock lets the program execute itself, and nothing else: it does, and is refused another program.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define EXECVE_CHECK 0x10000

static void run(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        execl(path, "again", "again", NULL);
        say("%s", error_name(errno));
        _exit(1);
    }
    ended("a program", child);
}

int main(int count, char **words) {
    if (count > 1)
        return 7;
    struct landlock_ruleset_attr executing = {LANDLOCK_ACCESS_FS_EXECUTE};
    int rules = syscall(SYS_landlock_create_ruleset, &executing, sizeof executing, 0);
    if (rules < 0 || syscall(SYS_execveat, AT_FDCWD, words[0], words, environ, EXECVE_CHECK) != 0) {
        say("not here");
        return 0;
    }
    struct landlock_path_beneath_attr own = {LANDLOCK_ACCESS_FS_EXECUTE, open(words[0], O_PATH)};
    char other[] = "./copy-XXXXXX", part[4096];
    int from = open(words[0], O_RDONLY), to = mkstemp(other);
    for (ssize_t size; (size = read(from, part, sizeof part)) > 0;)
        write(to, part, size);
    fchmod(to, 0755);
    close(to);
    SUCCESS(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &own, 0));
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    SUCCESS(syscall(SYS_landlock_restrict_self, rules, 0));
    run(words[0]);
    run(other);
    return 0;
}
