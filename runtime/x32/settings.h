/* What the command line says, and what was found at the start. Set once. */
#ifndef X32_SETTINGS_H
#define X32_SETTINGS_H

#include "kernel.h"

struct settings {
    u8 trace, statistics, ahead, keep_sites, seccomp, valgrind;
    i32 trace_fd;
    char program[4096]; /* what /proc/self/exe means to the program */
};

extern struct settings settings;

#endif
