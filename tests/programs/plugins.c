/* A program in C that loads plugins. It ends with 0 if it saw nothing wrong.
 *
 *   plugins local|global FILE TIMES    loads, uses (100 turns of plugin_work()) and unloads it so many times,
 * and asks for a block in between() plugins many FOLDER NUMBER         loads FOLDER/lib0.so up to
 * FOLDER/libN-1.so, then calls ask() of each */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int right, const char *what) {
    if (!right) {
        const char *reason = dlerror();
        fprintf(stderr, "plugins: %s: %s\n", what, reason != NULL ? reason : "");
        _exit(9);
    }
}

static void *loaded(const char *path, int flags) {
    void *module = dlopen(path, RTLD_NOW | flags);
    check(module != NULL, path);
    return module;
}

static void *function(void *module, const char *name) {
    void *found = dlsym(module, name);
    check(found != NULL, name);
    return found;
}

__attribute__((noinline)) static void between(void) { check(malloc(10) != NULL, "no memory"); }

static void again_and_again(const char *path, int flags, int times) {
    for (int i = 0; i < times; i++) {
        void *module = loaded(path, flags);
        long (*work)(long) = (long (*)(long))function(module, "plugin_work");
        check(work(100) == 10, "not every exception was caught");
        check(dlclose(module) == 0, "dlclose");
        between();
    }
}

static void many(const char *folder, int number) {
    void **modules = calloc((size_t)number, sizeof *modules);
    check(modules != NULL, "no memory");
    for (int i = 0; i < number; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/lib%d.so", folder, i);
        modules[i] = loaded(path, RTLD_LOCAL);
    }
    for (int i = 0; i < number; i++) {
        void *(*ask)(void) = (void *(*)(void))function(modules[i], "ask");
        check(ask() != NULL, "no memory");
    }
}

int main(int count, char **words) {
    check(count > 3, "no words");
    if (strcmp(words[1], "many") == 0) {
        many(words[2], atoi(words[3]));
    } else {
        int is_global = strcmp(words[1], "global") == 0;
        again_and_again(words[2], is_global ? RTLD_GLOBAL : RTLD_LOCAL, atoi(words[3]));
    }
    return 0;
}
