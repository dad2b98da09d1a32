/*
 * built: static, dynamic
 *
 * /proc/self/exe is the program's file: by each of its names, for each call that takes a path, and after the
 * file has another name or none.
 */
#include "transcript.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/stat.h>

static void copy(const char *from, const char *to) {
    static char bytes[1 << 16];
    int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t size;
    while ((size = read(source, bytes, sizeof bytes)) > 0)
        write(target, bytes, size);
    close(source);
    close(target);
}

/* Whether it is a file of class 32. */
static const char *opened(int file) {
    char head[5] = "";
    if (file < 0)
        return error_name(errno);
    pread(file, head, sizeof head, 0);
    close(file);
    return head[4] == 1 ? "the program" : head[0] == '#' ? "another file" : "not the program";
}

static const char *name_of_link(const char *link) {
    static char text[4096];
    ssize_t size = readlink(link, text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    const char *last = strrchr(text, '/');
    return last ? last + 1 : text;
}

static void run(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        execl(path, "again", "again", NULL);
        say("%s: %s", path, error_name(errno));
        _exit(1);
    }
    ended(path, child);
}

static mode_t mode_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

static void names(void) {
    char text[100];
    int own = open("/proc/self", O_PATH | O_DIRECTORY), here = open(".", O_PATH | O_DIRECTORY);
    TEXT(opened(open("/proc/self/exe", O_RDONLY)));
    TEXT(opened(open("/proc/self//exe", O_RDONLY)));
    TEXT(opened(open("/proc/./thread-self/exe", O_RDONLY)));
    snprintf(text, sizeof text, "/proc/%d/exe", getpid());
    TEXT(opened(open(text, O_RDONLY)));
    snprintf(text, sizeof text, "/proc/self/task/%d/exe", getpid());
    TEXT(opened(open(text, O_RDONLY)));
    snprintf(text, sizeof text, "/proc/%d/task/%d/exe", getpid(), getpid());
    TEXT(opened(open(text, O_RDONLY)));
    TEXT(opened(openat(own, "exe", O_RDONLY)));
    chdir("/proc");
    TEXT(opened(open("self/exe", O_RDONLY)));
    TEXT(name_of_link("self/exe"));
    run("self/exe");
    chdir("self");
    TEXT(name_of_link("exe"));
    TEXT(opened(open("exe", O_RDONLY)));
    fchdir(here);
    TEXT(opened(open("exe", O_RDONLY)));
    close(own);
    close(here);
}

static const char *name_of_open_link(const char *name) {
    static char text[4096];
    int link = open(name, O_PATH | O_NOFOLLOW);
    ssize_t length = readlinkat(link, "", text, sizeof text - 1);
    close(link);
    text[length < 0 ? 0 : length] = 0;
    return length < 0 ? error_name(errno) : strrchr(text, '/') + 1;
}

/* Of a thread that is not the first: each name has a folder of its own in /proc. */
static void *names_of_thread(void *nothing) {
    char text[100];
    int here = open(".", O_PATH | O_DIRECTORY);
    for (int kind = 0; kind < 2; kind++) {
        snprintf(text, sizeof text, kind == 0 ? "/proc/%1$d" : "/proc/%2$d/task/%1$d", gettid(), getpid());
        int folder = open(text, O_PATH | O_DIRECTORY);
        strcat(text, "/exe");
        TEXT(name_of_link(text));
        TEXT(opened(open(text, O_RDONLY)));
        TEXT(opened(openat(folder, "exe", O_RDONLY)));
        TEXT(opened(openat(folder, ".//exe", O_RDONLY)));
        fchdir(folder);
        TEXT(opened(open("exe", O_RDONLY)));
        TEXT(opened(open("./exe", O_RDONLY)));
        fchdir(here);
        close(folder);
    }
    for (unsigned i = 0; i < 4; i++) {
        static const char *const forms[] = {"/proc/%d//exe", "/proc/%d/./exe", "/proc/%d/fd/../exe",
                                            "/proc/%d/task/%d/exe"};
        snprintf(text, sizeof text, forms[i], gettid(), gettid());
        TEXT(name_of_link(text));
    }
    TEXT(name_of_open_link(text));
    close(here);
    return nothing;
}

static void calls(void) {
    struct timespec times[2] = {{1000, 0}, {2000, 0}};
    struct stat status;
    char event[sizeof(struct inotify_event) + 300];
    SUCCESS(chmod("/proc/self/exe", 0751));
    VALUE(mode_of("copy") == 0751);
    SUCCESS(fchmodat(AT_FDCWD, "/proc/self/exe", 0755, 0));
    VALUE(mode_of("copy") == 0755);
    SUCCESS(chown("/proc/self/exe", getuid(), -1));
    SUCCESS(fchownat(AT_FDCWD, "/proc/self/exe", -1, getgid(), 0));
    SUCCESS(utimensat(AT_FDCWD, "/proc/self/exe", times, 0));
    stat("copy", &status);
    VALUE((int)status.st_mtime);
    SUCCESS(linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, "second", AT_SYMLINK_FOLLOW));
    stat("copy", &status);
    VALUE((int)status.st_nlink);
    unlink("second");
    int watcher = inotify_init1(IN_NONBLOCK);
    SUCCESS(inotify_add_watch(watcher, "/proc/self/exe", IN_ATTRIB));
    chmod("copy", 0750);
    IS(read(watcher, event, sizeof event) > 0);
    close(watcher);
    chmod("copy", 0755);
}

static void other_names(void) {
    SUCCESS(rename("copy", "moved"));
    copy("/dev/null", "copy");
    TEXT(name_of_link("/proc/self/exe"));
    TEXT(opened(open("/proc/self/exe", O_RDONLY)));
    run("/proc/self/exe");
    SUCCESS(unlink("moved"));
    TEXT(name_of_link("/proc/self/exe"));
    int script = open("moved", O_WRONLY | O_CREAT, 0755);
    write(script, "#!/bin/sh\nexit 8\n", 17);
    close(script);
    TEXT(name_of_link("/proc/self/exe"));
    IS(strcmp(opened(open("/proc/self/exe", O_RDONLY)), "another file") == 0);
    SUCCESS(chmod("moved", 0700));
    chmod("/proc/self/exe", 0711);
    VALUE(mode_of("moved") == 0700);
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "again") == 0)
        return 7;
    if (count > 1) {
        pthread_t thread;
        names();
        TEXT(name_of_open_link("/proc/self/exe"));
        pthread_create(&thread, NULL, names_of_thread, NULL);
        pthread_join(thread, NULL);
        calls();
        other_names();
        return 0;
    }
    copy("/proc/self/exe", "copy");
    execl("./copy", "copy", "copied", NULL);
    return 1;
}
