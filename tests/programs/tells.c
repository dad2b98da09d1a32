/* Tells what it was built with and started with (argument 1), so that a test need not take it on trust. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Each allocator by a function that only it has. */
static const char *allocator(void) {
    if (dlsym(RTLD_DEFAULT, "mallctl"))
        return "jemalloc";
    if (dlsym(RTLD_DEFAULT, "mi_version"))
        return "mimalloc";
    if (dlsym(RTLD_DEFAULT, "tc_version"))
        return "tcmalloc";
    return "glibc";
}

static const char *compiler(void) {
#ifdef __clang__
    return "clang";
#else
    return "gcc";
#endif
}

static const char *optimisation(void) {
#ifdef __FAST_MATH__
    return "fast mathematics";
#elif defined __OPTIMIZE__
    return "optimised";
#else
    return "not optimised";
#endif
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "";
    if (!strcmp(what, "allocator"))
        puts(allocator());
    if (!strcmp(what, "compiler"))
        puts(compiler());
    if (!strcmp(what, "optimisation"))
        puts(optimisation());
    if (!strcmp(what, "huge-pages"))
        puts(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 ? "never" : "as the system has it");
    if (!strcmp(what, "addresses"))
        puts(personality(0xffffffff) & ADDR_NO_RANDOMIZE ? "fixed" : "random");
    if (!strcmp(what, "variable"))
        puts(getenv(more) ? getenv(more) : "not set");
    if (!strcmp(what, "arguments"))
        for (int i = 2; i < argc; i++)
            printf("[%s]\n", argv[i]);
    if (!strcmp(what, "input"))
        for (int c; (c = getchar()) != EOF;)
            putchar(c);
    return 0;
}
