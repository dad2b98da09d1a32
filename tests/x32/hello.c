/*
 * built: static, dynamic, static-pie
 * core
 *
 * A program starts with its words, its variables and stdio.
 */
#include "transcript.h"
#include <limits.h>

extern char **environ;
__attribute__((constructor)) static void before(void) { say("constructor"); }
__attribute__((destructor)) static void after(void) { say("destructor"); }
static void at_exit(void) { say("at exit"); }

int main(int count, char **words) {
    atexit(at_exit);
    VALUE(count);
    IS(strstr(words[0], "/hello") != NULL);
    IS(words[count] == NULL);
    VALUE(sizeof(long));
    VALUE(sizeof(void *));
    VALUE(sizeof(time_t));
    VALUE(sizeof(off_t));
    for (char **one = environ; *one; one++)
        if (strncmp(*one, "PROGRAMS=", 9) != 0)
            TEXT(*one);
    printf("%d %s %.3f\n", 7, "printed", 1.5);
    fflush(stdout);
    int on_stack;
    IS((uintptr_t)&on_stack % 4 == 0);
    IS((uintptr_t)(void *)main != 0);
    void *memory = malloc(1 << 20);
    IS(memory != NULL);
    free(memory);
    return 42;
}
