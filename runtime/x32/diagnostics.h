/* Words on standard error, without a C library. */
#ifndef X32_DIAGNOSTICS_H
#define X32_DIAGNOSTICS_H

#include "kernel.h"
#include <stdarg.h>

struct text {
    char bytes[512];
    size_t size;
};

/* %s text, %q text in quotes with what is not printable escaped, %d signed, %u unsigned, %x hexadecimal with
 * 0x; all numbers 64 bits wide. What does not fit is left out. */
void text_add(struct text *text, const char *format, ...);
void text_add_list(struct text *text, const char *format, va_list list);
void text_write(const struct text *text, int fd);

/* `x32run: …` on standard error. */
void complain(const char *format, ...);
/* The same, and ends with the status a shell would give: 126 cannot be run, 127 is not there. */
__attribute__((noreturn)) void give_up(int status, const char *format, ...);

const char *error_name(long error);

#endif
