// Instructions of the loops instead of times: counted by valgrind's callgrind, or by the plugin of QEMU.
#ifndef MICRO_COUNTS_H
#define MICRO_COUNTS_H

#include "operation.h"

#include <stdbool.h>

// The empty loop.
extern const struct operation operation_empty;

// Each counts loops of n and of 2 n iterations, and writes what they are: their difference is n iterations'
// own instructions.
void count_by_callgrind(const struct operation *operation, unsigned long iterations);
// `is_user`: only user mode is emulated, and only one process of it.
void count_between_markers(const struct operation *operation, const char *family, unsigned long iterations,
                           bool is_user);

#endif
