#include "program.h"
#include "elf.h"

static int is_blank(char byte) { return byte == ' ' || byte == '\t'; }

/* load_script(), fs/binfmt_script.c: the interpreter, and all the rest of the line as one argument. */
static enum program_kind read_line(const char *line, size_t size, struct program_head *head) {
    size_t end = 2, at = 2, length = 0;
    while (end < size && line[end] != '\n' && line[end] != 0) {
        end++;
    }
    while (end > at && is_blank(line[end - 1])) {
        end--;
    }
    while (at < end && is_blank(line[at])) {
        at++;
    }
    while (at < end && !is_blank(line[at])) {
        head->interpreter[length++] = line[at++];
    }
    head->interpreter[length] = 0;
    while (at < end && is_blank(line[at])) {
        at++;
    }
    copy_bytes(head->argument, line + at, end - at);
    head->argument[end - at] = 0;
    return length > 0 ? PROGRAM_SCRIPT : PROGRAM_OTHER;
}

enum program_kind program_look(long fd, struct program_head *head) {
    char line[SCRIPT_LINE];
    long size = KERNEL_4(__NR_pread64, fd, line, sizeof line - 1, 0);
    if (size < 2) {
        return PROGRAM_OTHER;
    }
    if (elf_kind((const u8 *)line, (size_t)size) == ELF_X32) {
        return PROGRAM_X32;
    }
    return line[0] == '#' && line[1] == '!' ? read_line(line, (size_t)size, head) : PROGRAM_OTHER;
}

enum program_kind program_follow(long fd) {
    struct program_head head;
    enum program_kind kind = program_look(fd, &head);
    for (int depth = 0; kind == PROGRAM_SCRIPT && depth < SCRIPTS_NESTED; depth++) {
        long next = KERNEL_3(__NR_openat, AT_FDCWD, head.interpreter, O_CLOEXEC | O_NONBLOCK);
        if (failed(next)) {
            return PROGRAM_OTHER;
        }
        kind = program_look(next, &head);
        KERNEL_1(__NR_close, next);
    }
    return kind == PROGRAM_X32 ? PROGRAM_X32 : PROGRAM_OTHER;
}
