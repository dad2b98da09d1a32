#include "trace.h"
#include "diagnostics.h"
#include "interception.h"
#include "settings.h"
#include "signals.h"
#include "sites.h"
#include "table.h"
#include "user_memory.h"

static u64 traps;

void trace_count_trap(void) { __atomic_fetch_add(&traps, 1, __ATOMIC_RELAXED); }

static void add_argument(struct text *text, char kind, u64 value) {
    char string[64];
    if (kind == 's') {
        int result = value == 0 ? -EFAULT : read_user_text(string, value, sizeof string);
        if (result == -EFAULT) {
            text_add(text, value == 0 ? "NULL" : "%x", value);
            return;
        }
        string[sizeof string - 1] = 0;
        text_add(text, result == 0 ? "%q" : "%q...", string);
    } else if (kind == 'd') {
        text_add(text, "%d", (i64)(i32)value);
    } else if (kind == 'o') {
        text_add(text, "0%u%u%u", value >> 6 & 7, value >> 3 & 7, value & 7);
    } else {
        text_add(text, "%x", value);
    }
}

static void add_call(struct text *text, const struct frame *frame, u64 number) {
    const u64 values[6] = {frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9};
    const struct row *row = table_row(number);
    text_add(text, "[%d] ", (i64)KERNEL_1(__NR_gettid, 0));
    if (number & TRACE_I386) {
        text_add(text, "i386 call %u(", (u64)(u32)number);
    } else if (row->name == NULL) {
        text_add(text, "call %u%s(", number & ~(u64)X32_BIT, number & X32_BIT ? "" : " of 64 bits");
    } else {
        text_add(text, "%s(", row->name);
    }
    const char *kinds = row->name != NULL ? row->arguments : "xxxxxx";
    for (int i = 0; kinds[i] != 0; i++) {
        text_add(text, i == 0 ? "" : ", ");
        add_argument(text, kinds[i], values[i]);
    }
    text_add(text, ")");
}

#define I386_EXIT 1
#define I386_EXECVE 11
#define I386_EXIT_GROUP 252

/* Calls that do not return, or not here, are shown when they are made. */
static int returns(u64 number) {
    if (number & TRACE_I386) {
        number = (u32)number;
        return number != I386_EXIT && number != I386_EXIT_GROUP && number != I386_EXECVE;
    }
    u64 native = number & ~(u64)X32_BIT;
    return native != __NR_exit && native != __NR_exit_group && native != 513 && native != 520 &&
           native != 545;
}

void trace_before(const struct frame *frame, u64 number) {
    if (!returns(number)) {
        struct text text = {.size = 0};
        add_call(&text, frame, number);
        text_add(&text, "\n");
        text_write(&text, settings.trace_fd);
    }
}

void trace_after(const struct frame *frame, u64 number, long result) {
    struct text text = {.size = 0};
    add_call(&text, frame, number);
    const struct row *row = table_row(number);
    if (failed(result) || result == -RESTART_AFTER_SIGNAL) {
        text_add(&text, " = -1 %s", error_name(-result));
        if (error_name(-result)[0] == 'e') {
            text_add(&text, " %d", (i64)-result);
        }
    } else if ((u64)result > 65535) {
        text_add(&text, " = %x", (u64)result);
    } else {
        text_add(&text, " = %d", (i64)result);
    }
    if (row->refused != NULL) {
        text_add(&text, " (refused: %s)", row->refused);
    }
    text_add(&text, "%s\n", frame->trapped ? " [trapped]" : "");
    text_write(&text, settings.trace_fd);
}

/* What is resident of the runtime's own: all that lies above 4 GiB but the kernel's parts, in KiB. */
static u64 own_memory(void) {
    LARGE static char buffer[4096];
    u64 total = 0, address = 0, size = 0;
    int own = 0, in_line = 0;
    char key[4] = {0};
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, "/proc/self/smaps", O_CLOEXEC), got;
    while (!failed(fd) && (got = KERNEL_3(__NR_read, fd, buffer, sizeof buffer)) > 0) {
        for (long i = 0; i < got; i++) {
            char byte = buffer[i];
            if (byte == '\n') {
                total += own && key[0] == 'R' && key[1] == 's' && key[2] == 's' ? size : 0;
                in_line = 0;
                continue;
            }
            if (in_line == 0) {
                address = size = 0;
                clear_bytes(key, sizeof key);
            }
            if (in_line < 4) {
                key[in_line] = byte;
            }
            in_line++;
            int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                        : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                                                     : -1;
            if (byte == '-' && in_line > 4 && in_line < 18) {
                own = address >= (1UL << 32);
            }
            if (digit >= 0) {
                address = address * 16 + (u64)digit;
                size = digit < 10 ? size * 10 + (u64)digit : size;
            }
        }
    }
    KERNEL_1(__NR_close, fd);
    return total;
}

void trace_statistics(void) {
    static const char *const ways[] = {"Syscall User Dispatch", "a seccomp filter", "nothing"};
    struct site_count count = sites_count();
    struct text text = {.size = 0};
    text_add(&text,
             "x32run: process %d: %u sites rewritten, %u calls trapped, %u of them where nothing can be "
             "rewritten, %u in "
             "writable or shared text; ",
             (i64)KERNEL_1(__NR_getpid, 0), count.rewritten, traps, count.refused, count.elsewhere);
    text_add(&text, "what is left is caught by %s; %u KiB of the resident memory are the runtime's own\n",
             ways[interception_used()], own_memory());
    text_write(&text, settings.trace_fd);
}
