/*
 * built: static, dynamic
 *
 * system and popen: a shell of x86-64 started by x32.
 */
#include "transcript.h"

int main(void) {
    print_ended("system", system("exit 3"));
    print_ended("system", system("echo from the shell; kill -TERM $$"));
    VALUE(system(NULL) != 0);
    setenv("GIVEN", "a value", 1);
    FILE *from = popen("echo \"$GIVEN\"; exit 5", "r");
    char line[100] = "";
    fgets(line, sizeof line, from);
    line[strcspn(line, "\n")] = 0;
    TEXT(line);
    print_ended("pclose", pclose(from));
    FILE *to = popen("read word; echo \"the shell read $word\"; exit 6", "w");
    fprintf(to, "hello\n");
    fflush(to);
    print_ended("pclose", pclose(to));
    print_ended("missing", system("./missing 2>/dev/null"));
    struct sigaction action;
    sigaction(SIGINT, NULL, &action);
    IS(action.sa_handler == SIG_DFL);
    return 0;
}
