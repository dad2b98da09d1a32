/* What a file is to execve, and what a script makes of it. */
#ifndef X32_PROGRAM_H
#define X32_PROGRAM_H

#include "diagnostics.h"
#include "kernel.h"

enum program_kind {
    PROGRAM_X32,    /* an x32 file, or a script that ends at one */
    PROGRAM_SCRIPT, /* of which the interpreter is still to be looked at */
    PROGRAM_OTHER,  /* whatever it is, the kernel knows */
};

#define SCRIPT_LINE 256 /* BINPRM_BUF_SIZE */
#define SCRIPTS_NESTED 5

struct program_head {
    char interpreter[SCRIPT_LINE];
    char argument[SCRIPT_LINE]; /* empty where there is none */
};

/* openat, as execve opens: a process that has as many descriptors as its soft limit allows can still execute.
 */
long program_open(u64 directory, const char *path, u64 mode);
/* The same, of a path without symbolic links; -ELOOP where there is one, -ENOSYS before Linux 5.6. */
long program_open_without_links(const char *path, u64 mode);
/* "/proc/thread-self/fd/N", with a zero behind it that does not count. */
void program_name_descriptor(struct text *name, i64 fd);
/* 0, or -EACCES where the file has no permission to be executed. */
long program_may_execute(long fd);
/* Of a file's first bytes; at most SCRIPT_LINE - 1 of them are looked at. */
enum program_kind program_look_at(const u8 *bytes, i64 size, struct program_head *head);
/* Reads the first bytes of an open file. */
enum program_kind program_look(long fd, struct program_head *head);
/* Follows scripts to their end: PROGRAM_X32 or PROGRAM_OTHER. Closes nothing but what it opened. */
enum program_kind program_follow(long fd);

/* Of the program's file. */
void program_is(u64 device, u64 inode);
/* What /proc/self/exe shows the program, and a path that leads to its file; null where there is none. The
 * kernel is asked when it is wanted for the first time: a new process has no folder in /proc before it is
 * looked up there. And whenever another file, or none, has that name: the result is in `room` then. */
#define PROGRAM_NAME_ROOM 4096
const char *program_name(char room[PROGRAM_NAME_ROOM]);
const char *program_path(char room[PROGRAM_NAME_ROOM]);
/* At once, while the file is open. `path`: by which it was opened without links; or null. It stays where it
 * is. */
void program_learn_file(long fd, const char *path);

#endif
