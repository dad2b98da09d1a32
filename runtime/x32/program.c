#include "program.h"
#include "diagnostics.h"
#include "elf.h"
#include "settings.h"

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

#define RESOLVE_NO_SYMLINKS 4UL

long program_open_without_links(const char *path, u64 mode) {
    const u64 how[3] = {mode, 0, RESOLVE_NO_SYMLINKS};
    return KERNEL_4(__NR_openat2, AT_FDCWD, path, how, sizeof how);
}

#define RLIMIT_NOFILE 7

long program_open(u64 directory, const char *path, u64 mode) {
    struct {
        u64 soft, hard;
    } limit, raised;
    long fd = KERNEL_3(__NR_openat, directory, path, mode);
    if (fd != -EMFILE || failed(KERNEL_4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit)) ||
        limit.soft >= limit.hard) {
        return fd;
    }
    raised = limit;
    raised.soft = limit.hard;
    KERNEL_4(__NR_prlimit64, 0, RLIMIT_NOFILE, &raised, 0);
    fd = KERNEL_3(__NR_openat, directory, path, mode);
    KERNEL_4(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
    return fd;
}

void program_name_descriptor(struct text *name, i64 fd) {
    text_add(name, "/proc/thread-self/fd/%d", fd);
    name->bytes[name->size] = 0;
}

long program_may_execute(long fd) {
    long result = KERNEL_4(__NR_faccessat2, fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH);
    if (result == -ENOSYS) {
        struct text name = {.size = 0};
        program_name_descriptor(&name, fd);
        result = KERNEL_3(__NR_faccessat, AT_FDCWD, name.bytes, X_OK);
        result = result == -ENOENT ? 0 : result; /* no /proc: the loader will see */
    }
    return failed(result) ? -EACCES : 0;
}

enum program_kind program_look_at(const u8 *bytes, i64 size, struct program_head *head) {
    if (size < 2) {
        return PROGRAM_OTHER;
    }
    size = size < SCRIPT_LINE ? size : SCRIPT_LINE - 1;
    if (elf_kind(bytes, (size_t)size) == ELF_X32) {
        return PROGRAM_X32;
    }
    return bytes[0] == '#' && bytes[1] == '!' ? read_line((const char *)bytes, (size_t)size, head)
                                              : PROGRAM_OTHER;
}

enum program_kind program_look(long fd, struct program_head *head) {
    u8 line[SCRIPT_LINE];
    return program_look_at(line, KERNEL_4(__NR_pread64, fd, line, sizeof line - 1, 0), head);
}

enum program_kind program_follow(long fd) {
    struct program_head head;
    enum program_kind kind = program_look(fd, &head);
    for (int depth = 0; kind == PROGRAM_SCRIPT && depth < SCRIPTS_NESTED; depth++) {
        long next = program_open((u64)AT_FDCWD, head.interpreter, O_CLOEXEC | O_NONBLOCK);
        if (failed(next)) {
            return PROGRAM_OTHER;
        }
        kind = program_look(next, &head);
        KERNEL_1(__NR_close, next);
    }
    return kind == PROGRAM_X32 ? PROGRAM_X32 : PROGRAM_OTHER;
}

/* A line of /proc/self/maps begins with `low-high `; the path begins at its first slash, and the kernel
 * writes a newline in it as \012. */
struct line {
    u64 low;
    u64 size;
    int low_is_known, is_wanted;
};

static int take_byte(struct line *line, char byte, char *path, u64 room) {
    if (byte == '\n') {
        int found = line->is_wanted && line->size > 0;
        path[found ? line->size : 0] = 0;
        *line = (struct line){0};
        return found;
    }
    if (!line->low_is_known) {
        line->low_is_known = byte == '-';
        line->is_wanted = line->low_is_known && line->low == settings.image;
        line->low = line->low * 16 + (u64)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
    } else if (line->is_wanted && (line->size > 0 || byte == '/') && line->size < room - 1) {
        path[line->size++] = byte;
        const char *last = path + line->size - 4;
        if (line->size > 4 && last[0] == '\\' && last[1] == '0' && last[2] == '1' && byte == '2') {
            line->size -= 3;
            path[line->size - 1] = '\n';
        }
    }
    return 0;
}

LARGE static char file[4096];
/* Most names fit here, so that no page of `file` is touched. */
static char short_file[192];
static const char *file_name;

/* Whether each part of the path is the name of what it leads to, as far as no link is followed. */
static int names_are_plain(const char *path) {
    for (;;) {
        u64 size = 0;
        while (path[size] != '/' && path[size] != 0) {
            size++;
        }
        if (size == 0 || (path[0] == '.' && (size == 1 || (size == 2 && path[1] == '.')))) {
            return 0;
        }
        if (path[size] == 0) {
            return 1;
        }
        path += size + 1;
    }
}

/* The path that no link was followed on, from the root: it is the name that the kernel would give the file.
 * To ask /proc for it costs a new process ten to twenty microseconds. 0 where that is not certain. */
static int learn_from_path(const char *path) {
    if (path[0] == '/') {
        file_name = names_are_plain(path + 1) ? path : NULL;
        return file_name != NULL;
    }
    path += path[0] == '.' && path[1] == '/' ? 2 : 0;
    char *name = short_file;
    u64 room = sizeof short_file, length = length_of(path) + 1;
    long size = names_are_plain(path) ? KERNEL_2(__NR_getcwd, name, room) : -ENOENT;
    if (size == -ERANGE || (!failed(size) && (u64)size + length > room)) {
        name = file;
        room = sizeof file;
        size = KERNEL_2(__NR_getcwd, name, room);
    }
    /* The size includes the 0; a folder beyond the root is "(unreachable)/…". */
    if (failed(size) || (u64)size + length > room || name[0] != '/') {
        return 0;
    }
    u64 end = size == 2 ? 0 : (u64)size - 1;
    name[end] = '/';
    copy_bytes(name + end + 1, path, length);
    file_name = name;
    return 1;
}

void program_learn_file(long fd, const char *path) {
    if (path != NULL && learn_from_path(path)) {
        return;
    }
    static const char format[] = "/proc/self/fd/%d"; /* no string constant: these lie apart (layout.ld) */
    struct text link = {.size = 0};
    text_add(&link, format, (i64)fd);
    link.bytes[link.size] = 0;
    long size = KERNEL_3(__NR_readlink, link.bytes, file, sizeof file - 1);
    if (!failed(size)) {
        file[size] = 0;
        file_name = file;
    }
}

static int find_in_maps(char *path, u64 room) {
    char buffer[512];
    struct line line = {0};
    long size, fd = KERNEL_3(__NR_openat, AT_FDCWD, "/proc/self/maps", O_CLOEXEC);
    int found = 0;
    while (!failed(fd) && !found && (size = KERNEL_3(__NR_read, fd, buffer, sizeof buffer)) > 0) {
        for (long i = 0; i < size && !found; i++) {
            found = take_byte(&line, buffer[i], path, room);
        }
    }
    if (!failed(fd)) {
        KERNEL_1(__NR_close, fd);
    }
    return found;
}

static struct { u64 device, inode; } identity;

void program_is(u64 device, u64 inode) {
    identity.device = device;
    identity.inode = inode;
}

static int leads_to_program(const char *path) {
    u64 status[18];
    return !failed(KERNEL_2(__NR_stat, path, status)) && status[0] == identity.device &&
           status[1] == identity.inode;
}

static const char *learn_name(void) {
    if (!find_in_maps(file, sizeof file)) {
        u64 length = length_of(settings.program);
        length = length < sizeof file ? length : sizeof file - 1;
        copy_bytes(file, settings.program, length);
        file[length] = 0;
    }
    __atomic_store_n(&file_name, file, __ATOMIC_RELEASE);
    return file;
}

const char *program_name(char room[PROGRAM_NAME_ROOM]) {
    const char *known = __atomic_load_n(&file_name, __ATOMIC_ACQUIRE);
    known = known != NULL ? known : learn_name();
    return leads_to_program(known) || !find_in_maps(room, PROGRAM_NAME_ROOM) ? known : room;
}

const char *program_path(char room[PROGRAM_NAME_ROOM]) {
    const char *name = program_name(room);
    return leads_to_program(name) ? name : NULL;
}
