// Known truth for forks. Every child asks for two blocks in place<N>(), each from a line of code that no
// other child has been at, and gives none back. It ends with 0 if it saw nothing wrong, and not at all if a
// child hangs (which may have blocked every signal).
//
//   forks fork N         one thread, N children by fork()
//   forks _Fork N        by _Fork(), which calls nothing that pthread_atfork() registered
//   forks clone N        by the system call itself
//   forks tree N         each process has two children, N levels of them; process of level L asks in
//   place<L>() forks fork N threads     beside 4 threads that allocate, load and unload libraries, and look
//   at the loaded ones. A child forks _Fork N threads    by _Fork() or clone of such a program may not
//   allocate: it maps two pages in place<N>() and forks clone N threads    leaves them forks exec WAY execve,
//   posix_spawn, vfork, system, or clearenv and then execve: the child is `forks leaf` forks leaf asks for 7
//   blocks in leaf()
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

static const unsigned places = 1000;
static void *volatile kept;
static volatile bool may_allocate = true;

static void check(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "forks: %s: errno %d\n", what, errno);
        _exit(9);
    }
}

static void keep(void *block) {
    if (block == nullptr || block == MAP_FAILED) {
        _exit(9);
    }
    kept = block;
}

static void *map_page() {
    return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

template <unsigned N> __attribute__((noinline)) static void place() {
    if (may_allocate) {
        keep(malloc(1 + N));
        keep(malloc(2000 + N));
    } else {
        keep(map_page());
        keep(map_page());
    }
}

using Place = void (*)();

template <unsigned... N> static Place place_of(unsigned number, std::integer_sequence<unsigned, N...>) {
    static const Place all[] = {place<N>...};
    return all[number % sizeof...(N)];
}

static void go_to(unsigned number) { place_of(number, std::make_integer_sequence<unsigned, places>())(); }

static pid_t fork_by(const char *way) {
    if (strcmp(way, "fork") == 0) {
        return fork();
    }
    if (strcmp(way, "_Fork") == 0) {
        return _Fork();
    }
    check(strcmp(way, "clone") == 0, "not a way to fork");
    return (pid_t)syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
}

static void wait_for(pid_t child) {
    int status = 0;
    check(child > 0, "no child");
    check(waitpid(child, &status, 0) == child, "waitpid");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
}

static volatile bool over;
static const char *const libraries[] = {"libBrokenLocale.so.1", "libresolv.so.2", "libutil.so.1",
                                        "libanl.so.1"};

static int look(struct dl_phdr_info *, size_t, void *) { return 0; }

// Another stack for every number.
__attribute__((noinline)) static int ask_deeper(unsigned number, int levels) {
    if (levels == 0) {
        free(malloc(1 + number % 100));
        return 1;
    }
    int inner = number & 1 ? ask_deeper(number >> 1, levels - 1) : 1 + ask_deeper(number >> 1, levels - 1);
    __asm__ volatile("" : "+r"(inner));
    return inner + 1;
}

static void *be_busy(void *library) {
    for (unsigned turn = 0; !over; turn++) {
        ask_deeper(turn, 5);
        dl_iterate_phdr(look, nullptr);
        if (turn % 8 == 0) {
            void *module = dlopen((const char *)library, RTLD_NOW);
            check(module != nullptr, "dlopen");
            dlclose(module);
            usleep(100); // the parent has to get on too
        }
    }
    return nullptr;
}

static void many_children(const char *way, unsigned wanted, bool beside_threads) {
    pthread_t threads[4];
    for (int i = 0; beside_threads && i < 4; i++) {
        check(pthread_create(&threads[i], nullptr, be_busy, (void *)libraries[i]) == 0, "pthread_create");
    }
    may_allocate = !beside_threads || strcmp(way, "fork") == 0;
    for (unsigned i = 0; i < wanted; i++) {
        pid_t child = fork_by(way);
        if (child == 0) {
            go_to(i);
            _exit(0);
        }
        wait_for(child);
    }
    over = true;
    for (int i = 0; beside_threads && i < 4; i++) {
        pthread_join(threads[i], nullptr);
    }
}

static void tree(unsigned level, unsigned deepest) {
    pid_t children[2] = {};
    go_to(level);
    for (int i = 0; level < deepest && i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            tree(level + 1, deepest);
            _exit(0);
        }
    }
    for (int i = 0; level < deepest && i < 2; i++) {
        wait_for(children[i]);
    }
}

__attribute__((noinline)) static void leaf() {
    for (size_t i = 0; i < 7; i++) {
        keep(malloc(100 + i));
    }
}

static void run_leaf(const char *way, char *own_path) {
    char word[] = "leaf";
    char *words[] = {own_path, word, nullptr};
    pid_t child = -1;
    if (strcmp(way, "system") == 0) {
        char command[4096];
        snprintf(command, sizeof command, "%s leaf", own_path);
        check(system(command) == 0, "system");
        go_to(2);
        return;
    }
    if (strcmp(way, "posix_spawn") == 0) {
        check(posix_spawn(&child, own_path, nullptr, nullptr, words, environ) == 0, "posix_spawn");
    } else if (strcmp(way, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execve(own_path, words, environ);
            _exit(8);
        }
    } else {
        child = fork();
        if (child == 0) {
            if (strcmp(way, "clearenv") == 0) {
                clearenv();
            }
            go_to(1);
            execve(own_path, words, environ);
            _exit(8);
        }
    }
    wait_for(child);
    go_to(2);
}

int main(int count, char **words) {
    check(count > 1, "no words");
    keep(malloc(64)); // the first process has a block too
    if (strcmp(words[1], "leaf") == 0) {
        leaf();
    } else if (strcmp(words[1], "exec") == 0) {
        check(count > 2, "no way");
        run_leaf(words[2], words[0]);
    } else if (strcmp(words[1], "tree") == 0) {
        check(count > 2, "no levels");
        tree(0, (unsigned)atoi(words[2]));
    } else {
        check(count > 2, "no number");
        many_children(words[1], (unsigned)atoi(words[2]), count > 3);
    }
    return 0;
}
