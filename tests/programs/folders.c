/*
 * Directories, read from beginning to end, by pieces, and from every place that telldir() gave. Argument 1 is
 * a directory. What it prints is the same in every ABI.
 */
#define _GNU_SOURCE /* syscall() */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 4000

static char names[MOST][40];
static long places[MOST + 1];

/* How many entries a call finds that has room for `room` bytes at a time. */
static int counted(const char *folder, long number, unsigned room) {
    char cells[4096] __attribute__((aligned(8)));
    int fd = open(folder, O_RDONLY | O_DIRECTORY), count = 0;
    long size;
    while ((size = syscall(number, fd, cells, room)) > 0)
        for (long at = 0; at < size; at += *(unsigned short *)(cells + at + 16))
            count++;
    close(fd);
    return size < 0 ? -1 : count;
}

int main(int count, char **words) {
    DIR *folder = count > 1 ? opendir(words[1]) : 0;
    if (!folder)
        return 2;
    int entries = 0, wrong = 0, again = 0, negative = 0;
    places[0] = telldir(folder);
    for (struct dirent *entry; entries < MOST && (entry = readdir(folder));) {
        snprintf(names[entries++], sizeof names[0], "%s", entry->d_name);
        places[entries] = telldir(folder);
        negative += places[entries] < 0;
    }
    for (int i = entries - 1; i >= 0; i--) {
        seekdir(folder, places[i]);
        struct dirent *entry = readdir(folder);
        wrong += !entry || strcmp(entry->d_name, names[i]) != 0;
    }
    seekdir(folder, places[entries]);
    int ended = !readdir(folder);
    rewinddir(folder);
    while (readdir(folder))
        again++;
    printf("%d entries, %d wrong after seekdir, %d places below 0, ended %d, again %d\n", entries, wrong,
           negative, ended, again);
    printf("getdents64: %d and %d, getdents: %d and %d\n", counted(words[1], SYS_getdents64, 64),
           counted(words[1], SYS_getdents64, 4096), counted(words[1], SYS_getdents, 64),
           counted(words[1], SYS_getdents, 4096));
    return 0;
}
