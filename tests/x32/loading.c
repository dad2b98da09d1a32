/*
 * built: dynamic
 *
 * Shared objects opened while the program runs.
 */
#include "transcript.h"
#include <dlfcn.h>
#include <link.h>

static int count_one(struct dl_phdr_info *info, size_t size, void *count) {
    (void)info, (void)size;
    ++*(int *)count;
    return 0;
}
int main(void) {
    int before = 0, after = 0;
    dl_iterate_phdr(count_one, &before);
    void *mathematics = dlopen("libm.so.6", RTLD_NOW);
    IS(mathematics != NULL);
    dl_iterate_phdr(count_one, &after);
    VALUE(after - before);
    double (*cube_root)(double) = (double (*)(double))dlsym(mathematics, "cbrt");
    say("%.6f", cube_root(27));
    void *standard = dlopen("libstdc++.so.6", RTLD_LAZY);
    IS(standard != NULL);
    IS(dlsym(standard, "__cxa_throw") != NULL);
    IS(dlopen("libmissing.so", RTLD_NOW) == NULL);
    Dl_info where;
    IS(dladdr((void *)cube_root, &where) != 0 && strstr(where.dli_fname, "libm.so.6"));
    RESULT(dlclose(mathematics));
    return 0;
}
