/*
 * What every program of the oracle prints with. A transcript holds nothing that differs from one run to the
 * next: no address, process number or time, only results, the names of errors, contents, and relations
 * between values. The main function of such a program is the list of its calls, in the transcript's order,
 * and so as long as that.
 */
#ifndef TRANSCRIPT_H
#define TRANSCRIPT_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* One line, written at once, so that it is whole even if the program dies in the next statement. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...) {
    char line[2048];
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (write(1, line, length) != length)
        _exit(99);
    errno = saved;
}

__attribute__((unused)) static const char *error_name(int number) {
    const char *name = strerrorname_np(number);
    return name ? name : "unknown error";
}

/* An error's name, or the value itself. */
__attribute__((unused)) static long long print_result(const char *what, long long value) {
    if (value == -1)
        say("%s: %s", what, error_name(errno));
    else
        say("%s: %lld", what, value);
    return value;
}

/* An error's name, or `ok` for a value that differs from run to run. */
__attribute__((unused)) static long long print_ok(const char *what, long long value) {
    if (value == -1)
        say("%s: %s", what, error_name(errno));
    else
        say("%s: ok", what);
    return value;
}

__attribute__((unused)) static void print_ended(const char *what, int status) {
    if (WIFEXITED(status))
        say("%s: exit %d", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        say("%s: signal %s", what, sigabbrev_np(WTERMSIG(status)));
    else
        say("%s: status %#x", what, status);
}

/* RESULT prints the value of a call, SUCCESS only that it succeeded; both name the error otherwise. The value
 * is that of the call. */
#define RESULT(call) print_result(#call, (long long)(call))
#define SUCCESS(call) print_ok(#call, (long long)(call))
/* For functions that return an error number (pthread_*, posix_*). */
#define NUMBER(call)                                                                                         \
    do {                                                                                                     \
        int number_ = (call);                                                                                \
        say("%s: %s", #call, number_ ? error_name(number_) : "0");                                           \
    } while (0)
#define IS(condition) say("%s: %s", #condition, (condition) ? "yes" : "no")
#define VALUE(expression) say("%s = %lld", #expression, (long long)(expression))
#define HEX(expression) say("%s = %#llx", #expression, (unsigned long long)(expression))
#define TEXT(expression) say("%s = \"%s\"", #expression, (expression))

/* Bytes in hexadecimal. */
__attribute__((unused)) static void bytes(const char *what, const void *from, size_t count) {
    char line[1500];
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof line - 4; i++)
        length += snprintf(line + length, sizeof line - length, " %02x", ((const unsigned char *)from)[i]);
    line[length] = 0;
    say("%s:%s", what, line);
}

/* The end of a child, which must be waited for. */
__attribute__((unused)) static void ended(const char *what, pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        say("%s: waitpid: %s", what, error_name(errno));
    else
        print_ended(what, status);
}

#endif
