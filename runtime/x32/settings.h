/* What the command line asks for, and what was found at the start. Set once. */
#ifndef X32_SETTINGS_H
#define X32_SETTINGS_H

#include "kernel.h"

struct settings {
    u8 trace, statistics, ahead, keep_sites, seccomp, valgrind;
    u8 no_i386;          /* the i386 entry is not to be used */
    u8 check;            /* print what the kernel has, and end */
    u8 costs;            /* what each way of a call costs is being measured: 1 without timers, 2 with them */
    const char *account; /* the file of the account; null where there is none */
    i32 trace_fd;
    const char *program; /* its path, as it was given */
    u64 image;           /* where its first page is */
};

extern struct settings settings;

#endif
