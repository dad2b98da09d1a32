#include "diagnostics.h"

static void add_byte(struct text *text, char byte) {
    if (text->size < sizeof text->bytes) {
        text->bytes[text->size++] = byte;
    }
}

static void add_text(struct text *text, const char *from) {
    while (*from != 0) {
        add_byte(text, *from++);
    }
}

static void add_quoted(struct text *text, const char *from) {
    add_byte(text, '"');
    for (; *from != 0; from++) {
        u8 byte = (u8)*from;
        if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\') {
            add_byte(text, (char)byte);
        } else {
            add_byte(text, '\\');
            add_byte(text, 'x');
            add_byte(text, "0123456789abcdef"[byte >> 4]);
            add_byte(text, "0123456789abcdef"[byte & 15]);
        }
    }
    add_byte(text, '"');
}

static void add_number(struct text *text, u64 value, u64 base) {
    char digits[24];
    size_t count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (count > 0) {
        add_byte(text, digits[--count]);
    }
}

void text_add_list(struct text *text, const char *format, va_list list) {
    for (; *format != 0; format++) {
        if (*format != '%') {
            add_byte(text, *format);
            continue;
        }
        format++;
        if (*format == 's') {
            add_text(text, va_arg(list, const char *));
        } else if (*format == 'q') {
            add_quoted(text, va_arg(list, const char *));
        } else if (*format == 'd') {
            i64 value = va_arg(list, i64);
            if (value < 0) {
                add_byte(text, '-');
            }
            add_number(text, value < 0 ? -(u64)value : (u64)value, 10);
        } else if (*format == 'u') {
            add_number(text, va_arg(list, u64), 10);
        } else if (*format == 'x') {
            add_text(text, "0x");
            add_number(text, va_arg(list, u64), 16);
        } else {
            add_byte(text, *format);
        }
    }
}

void text_add(struct text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    text_add_list(text, format, list);
    va_end(list);
}

void text_write(const struct text *text, int fd) { KERNEL_3(__NR_write, fd, text->bytes, text->size); }

static void say(const char *format, va_list list) {
    struct text text = {.size = 0};
    text_add(&text, "x32run: ");
    text_add_list(&text, format, list);
    text.size = text.size == sizeof text.bytes ? text.size - 1 : text.size;
    text_add(&text, "\n");
    text_write(&text, 2);
}

void complain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
}

void give_up(int status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    for (;;) {
        KERNEL_1(__NR_exit_group, status);
    }
}

const char *error_name(long error) {
    static const struct {
        i32 number;
        char name[16];
    } names[] = {
        {EPERM, "EPERM"},
        {ENOENT, "ENOENT"},
        {ESRCH, "ESRCH"},
        {EINTR, "EINTR"},
        {EIO, "EIO"},
        {ENXIO, "ENXIO"},
        {E2BIG, "E2BIG"},
        {ENOEXEC, "ENOEXEC"},
        {EBADF, "EBADF"},
        {ECHILD, "ECHILD"},
        {EAGAIN, "EAGAIN"},
        {ENOMEM, "ENOMEM"},
        {EACCES, "EACCES"},
        {EFAULT, "EFAULT"},
        {EBUSY, "EBUSY"},
        {EEXIST, "EEXIST"},
        {EXDEV, "EXDEV"},
        {ENODEV, "ENODEV"},
        {ENOTDIR, "ENOTDIR"},
        {EISDIR, "EISDIR"},
        {EINVAL, "EINVAL"},
        {ENFILE, "ENFILE"},
        {EMFILE, "EMFILE"},
        {ENOTTY, "ENOTTY"},
        {ETXTBSY, "ETXTBSY"},
        {EFBIG, "EFBIG"},
        {ENOSPC, "ENOSPC"},
        {ESPIPE, "ESPIPE"},
        {EROFS, "EROFS"},
        {EPIPE, "EPIPE"},
        {ERANGE, "ERANGE"},
        {EDEADLK, "EDEADLK"},
        {ENAMETOOLONG, "ENAMETOOLONG"},
        {ENOSYS, "ENOSYS"},
        {ENOTEMPTY, "ENOTEMPTY"},
        {ELOOP, "ELOOP"},
        {ENOPROTOOPT, "ENOPROTOOPT"},
        {EOPNOTSUPP, "EOPNOTSUPP"},
        {ETIMEDOUT, "ETIMEDOUT"},
        {ECONNREFUSED, "ECONNREFUSED"},
        {EINPROGRESS, "EINPROGRESS"},
        {EADDRINUSE, "EADDRINUSE"},
        {512, "ERESTART"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].number == error) {
            return names[i].name;
        }
    }
    return "error";
}
