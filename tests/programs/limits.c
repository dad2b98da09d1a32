/* Known truth for what a program does to its own limits, rights and descriptors. It asks for 1000 blocks,
 * does what its first word says, and asks for 45000 more, 15000 of them in five threads. Of the first 1000
 * and of the others 1000 are left at the end: 46000 blocks in ask(), 2000 left. Meanwhile it writes a file of
 * its own, and reads it again.
 *
 *   limits nothing
 *   limits file-size BYTES     RLIMIT_FSIZE
 *   limits descriptors         RLIMIT_NOFILE of 16, and opens as many files as it can
 *   limits setuid | chroot     becomes nobody; enters an empty folder (as root alone)
 *   limits close | close-all | close_range | closefrom | close-listed | dup2
 *                              closes 3 to 4095, 0 to 4095, all by one call, all from 3 on, those in
 *                              /proc/self/fd; puts its own file in the place of each of 3 to 1023
 *   limits clearenv
 *   limits daemon              closes all in a child, which does the rest
 *   limits exec FIRST...       does as FIRST says, and executes itself as `limits nothing`
 *   limits keep BLOCKS         asks for so many blocks in ask_and_keep(), and gives none back
 *
 * It prints the numbers of the descriptors that it got. It ends with 0 if it saw nothing wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEFT 1000
#define HIGHEST 4096
#define NOBODY 65534

static void *live[LEFT];
static char seen[4096]; /* what is printed at the end */
static size_t seen_bytes;

static void check(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "limits: %s: errno %d\n", what, errno);
        _exit(9);
    }
}

static void remember(int descriptor) {
    int length = snprintf(seen + seen_bytes, sizeof seen - seen_bytes, "%d ", descriptor);
    seen_bytes += length > 0 ? (size_t)length : 0;
}

/* Sizes and order vary, so that hardly any two events look alike in a log. */
__attribute__((noinline)) static void ask(unsigned wanted) {
    static unsigned number;
    for (unsigned i = 0; i < wanted; i++) {
        unsigned slot = number * 7919 % LEFT;
        free(live[slot]);
        live[slot] = malloc(1 + number * 31 % 700);
        check(live[slot] != NULL, "no memory");
        number++;
    }
}

__attribute__((noinline)) static void ask_and_keep(unsigned wanted) {
    for (unsigned i = 0; i < wanted; i++) {
        live[0] = malloc(1 + i * 31 % 700);
        check(live[0] != NULL, "no memory");
    }
}

static void *ask_in_thread(void *nothing) {
    ask(3000);
    return nothing;
}

static void leave_them(void) {
    for (int i = 0; i < LEFT; i++) {
        live[i] = NULL;
    }
}

static int file_of_its_own(void) {
    int file = open("own.txt", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(file >= 0, "own.txt");
    return file;
}

static const char line[] = "one line of its own\n";

/* The file has what was written to it, and nothing else. */
static void check_file(int file, unsigned lines) {
    char text[sizeof line];
    struct stat facts;
    check(fstat(file, &facts) == 0, "fstat");
    check(facts.st_size == (off_t)(lines * (sizeof line - 1)), "the file has another length");
    for (unsigned i = 0; i < lines; i++) {
        check(pread(file, text, sizeof line - 1, (off_t)(i * (sizeof line - 1))) == sizeof line - 1, "pread");
        check(memcmp(text, line, sizeof line - 1) == 0, "the file has other bytes");
    }
}

static void limit(int resource, rlim_t value) {
    struct rlimit both = {value, value}, now;
    check(setrlimit(resource, &both) == 0, "setrlimit");
    check(getrlimit(resource, &now) == 0 && now.rlim_cur == value && now.rlim_max == value, "getrlimit");
}

static void open_all(void) {
    limit(RLIMIT_NOFILE, 16);
    for (int file; (file = open("/dev/null", O_RDONLY)) >= 0;) {
        remember(file);
    }
    check(errno == EMFILE, "not EMFILE");
}

static void become_nobody(void) {
    /* The folder it works in is its own, so that it can write there; the folder of the logs is not. */
    check(chown(".", NOBODY, NOBODY) == 0, "chown (run it as root)");
    unlink("own.txt");
    check(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
    check(setuid(0) != 0, "still root");
}

static void enter_empty_folder(void) {
    char name[] = "empty-XXXXXX";
    check(mkdtemp(name) != NULL && chroot(name) == 0 && chdir("/") == 0, "chroot (run it as root)");
}

static void close_from(int first) {
    for (int file = first; file < HIGHEST; file++) {
        close(file);
    }
}

static void close_listed(void) {
    DIR *folder = opendir("/proc/self/fd");
    int files[1024], count = 0;
    check(folder != NULL, "/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < 1024;) {
        int file = atoi(entry->d_name);
        if (file > 2 && file != dirfd(folder)) {
            files[count++] = file;
        }
    }
    closedir(folder);
    while (count > 0) {
        close(files[--count]);
    }
}

static void replace_all(int file) {
    for (int other = 3; other < 1024; other++) {
        if (other != file) {
            check(dup2(file, other) == other, "dup2");
        }
    }
}

static void become_daemon(void) {
    int status;
    pid_t child = fork();
    if (child != 0) {
        check(waitpid(child, &status, 0) == child && status == 0, "the daemon failed");
        leave_them();
        _exit(0);
    }
    setsid();
    close_from(0);
}

static void prepare(int count, char **words) {
    const char *what = words[0];
    if (strcmp(what, "file-size") == 0 && count > 1) {
        limit(RLIMIT_FSIZE, (rlim_t)atol(words[1]));
    } else if (strcmp(what, "descriptors") == 0) {
        open_all();
    } else if (strcmp(what, "setuid") == 0) {
        become_nobody();
    } else if (strcmp(what, "chroot") == 0) {
        enter_empty_folder();
    } else if (strcmp(what, "close") == 0) {
        close_from(3);
    } else if (strcmp(what, "close-all") == 0) {
        close_from(0);
    } else if (strcmp(what, "close_range") == 0) {
        check(close_range(3, ~0U, 0) == 0, "close_range");
    } else if (strcmp(what, "closefrom") == 0) {
        closefrom(3);
    } else if (strcmp(what, "close-listed") == 0) {
        close_listed();
    } else if (strcmp(what, "dup2") == 0) {
        replace_all(file_of_its_own());
    } else if (strcmp(what, "clearenv") == 0) {
        check(clearenv() == 0, "clearenv");
    } else if (strcmp(what, "daemon") == 0) {
        become_daemon();
    } else {
        check(strcmp(what, "nothing") == 0, "not known");
    }
}

static void execute_itself(int count, char **words) {
    char word[] = "nothing", *next[] = {words[0], word, NULL};
    check(count > 2, "no words");
    prepare(count - 2, words + 2);
    execv(words[0], next);
    check(0, "execv");
}

/* Most of the blocks, in main and in five threads; with a file of its own, which grows meanwhile. */
static void ask_and_write(int file) {
    unsigned lines = 0;
    for (int i = 0; i < 15; i++) {
        pthread_t thread;
        if (i % 3 != 2) {
            ask(3000);
        } else {
            check(pthread_create(&thread, NULL, ask_in_thread, NULL) == 0, "pthread_create");
            pthread_join(thread, NULL);
        }
        if (file >= 0) {
            check(write(file, line, sizeof line - 1) == sizeof line - 1, "write");
            lines++;
        }
    }
    if (file >= 0) {
        check_file(file, lines);
        remember(file);
        remember(open("/dev/null", O_RDWR));
        remember(open("/dev/null", O_RDWR));
    }
}

int main(int count, char **words) {
    check(count > 1, "no words");
    if (strcmp(words[1], "exec") == 0) {
        execute_itself(count, words);
    }
    if (strcmp(words[1], "keep") == 0) {
        check(count > 2, "no number");
        ask_and_keep((unsigned)atol(words[2]));
        return 0;
    }
    ask(1000);
    leave_them();
    prepare(count - 1, words + 1);
    ask_and_write(strcmp(words[1], "descriptors") != 0 ? file_of_its_own() : -1);
    if (strcmp(words[1], "close-all") != 0 && strcmp(words[1], "daemon") != 0) {
        seen[seen_bytes] = '\n';
        check(write(1, seen, seen_bytes + 1) == (ssize_t)seen_bytes + 1, "write");
    }
    return 0;
}
