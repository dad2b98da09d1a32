/* The message of a thread's last failure. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

static _Thread_local char message[400];

const char *ww_error(void) { return message; }

int ww_fail(int error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    errno = error;
    return -1;
}

/* Ends with the system's words for the error. */
int ww_fail_errno(int error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(message, sizeof message, format, list);
    va_end(list);
    if (length >= 0 && (size_t)length < sizeof message)
        snprintf(message + length, sizeof message - (size_t)length, ": %s", strerror(error));
    errno = error;
    return -1;
}
