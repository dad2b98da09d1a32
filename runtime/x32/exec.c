#include "calls.h"
#include "diagnostics.h"
#include "elf.h"
#include "own_file.h"
#include "own_image.h"
#include "program.h"
#include "robust.h"
#include "settings.h"
#include "signals.h"
#include "stubs.h"
#include "trace.h"
#include "user_memory.h"

#define ST_NOEXEC 8
#define O_NOFOLLOW 0400000
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_EXECVE_CHECK 0x10000

/* Words that x32run puts before the program's own: --argv0 NAME --fd N --self FILE, what is inherited, and --
 * PATH. */
#define WORDS_BEFORE 17

/* So many have room on the runtime's own stack. */
#define FEW_WORDS 128

struct vector_count {
    u64 arguments, variables;
};

static long count(u64 address, u64 *total) {
    *total = 0;
    for (u32 pointer; address != 0; address += 4) {
        if (READ_USER(pointer, address) < 0) {
            return -EFAULT;
        }
        if (pointer == 0) {
            return 0;
        }
        ++*total;
    }
    return 0;
}

/* The program's 4-byte pointers, widened; the texts stay where they are. */
static long widen(u64 *to, u64 address, u64 total) {
    for (u64 i = 0; i < total; i++) {
        u32 pointer;
        if (READ_USER(pointer, address + 4 * i) < 0) {
            return -EFAULT;
        }
        to[i] = pointer;
    }
    to[total] = 0;
    return 0;
}

/* What the kernel would have refused, it has to refuse now: x32run could only fail. */
static long may_execute(long fd) {
    u64 status[15];
    long result = program_may_execute(fd);
    /* struct statfs: f_flags is the eleventh word. */
    if (!failed(result) && !failed(KERNEL_2(__NR_fstatfs, fd, status)) && (status[10] & ST_NOEXEC)) {
        return -EACCES;
    }
    return result;
}

/* What is to take this program's place. */
struct successor {
    const char *path;                  /* as x32run gets it */
    u64 directory, native_path, flags; /* as the kernel gets it */
    long file;                         /* opened, if x32run is to find it by its descriptor */
    int by_descriptor, x32;
    long runtime;   /* x32run's own file, opened, where it is found by its path */
    int may_begin;  /* it has a format that the kernel itself starts */
    int is_printed; /* the statistics are printed */
};

/* What starts x32 programs: this file. Under valgrind the link names the program that valgrind runs, but
 * cannot be executed. */
static const char *own_file(void) {
    LARGE static char linked[4096];
    if (settings.valgrind && KERNEL_3(__NR_readlink, "/proc/self/exe", linked, sizeof linked - 1) > 0) {
        return linked;
    }
    return "/proc/thread-self/exe";
}

/* x32run's command line for it: words go before those of the program, of which there are `count`. `number` is
 * where a descriptor's number is written. The first word. */
static u64 *through_x32run(struct successor *next, u64 *own, u64 count, struct text *number) {
    u64 words[WORDS_BEFORE], total = 0;
    words[total++] = (u64) "x32run";
    words[total++] = (u64) "--argv0";
    words[total++] = count > 0 ? own[0] : (u64) "";
    if (next->by_descriptor) {
        text_add(number, "%d", (i64)next->file);
        number->bytes[number->size] = 0;
        words[total++] = (u64) "--fd";
        words[total++] = (u64)number->bytes;
    }
    next->runtime = own_file_open();
    if (!failed(next->runtime)) {
        words[total++] = (u64) "--self";
        words[total++] = (u64)own_file_option();
    }
    const struct {
        int is_set;
        const char *word;
    } options[] = {{settings.trace, "--trace"},     {settings.statistics, "--stats"},
                   {settings.seccomp, "--seccomp"}, {settings.keep_sites, "--no-rewrite"},
                   {settings.ahead, "--ahead"},     {settings.no_i386, "--no-i386"}};
    for (u64 i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].is_set) {
            words[total++] = (u64)options[i].word;
        }
    }
    if (settings.account != NULL) {
        words[total++] = (u64) "--account";
        words[total++] = (u64)settings.account;
    }
    words[total++] = (u64) "--";
    words[total++] = (u64)next->path;
    /* The program's own first word is given by --argv0; the others follow the path. */
    u64 *first = own + (count > 0 ? 1 : 0) - total;
    for (u64 i = 0; i < total; i++) {
        first[i] = words[i];
    }
    return first;
}

/* What the call would fail with, or 0. It says so without being made since Linux 6.14, not under valgrind;
 * what only the loader of a format refuses, it does not say. */
static long failure_beforehand(long system_call, const u64 call[6]) {
    if (settings.valgrind) {
        return 0;
    }
    int by_path = system_call == __NR_execve;
    u64 directory = by_path ? (u64)AT_FDCWD : call[0], flags = by_path ? 0 : call[4];
    const u64 *rest = by_path ? call : call + 1;
    long result = KERNEL_5(__NR_execveat, directory, rest[0], rest[1], rest[2], flags | AT_EXECVE_CHECK);
    return result == -EINVAL || result == -ENOSYS ? 0 : result;
}

/* What is done because this image ends is done before the call, and so only if that is not known to fail. */
__attribute__((cold, noinline)) static long attempt_as_the_last(struct successor *next, int tells,
                                                                long system_call, const u64 call[6]) {
    struct thread *thread = this_thread();
    struct released released;
    long result = failure_beforehand(system_call, call);
    if (failed(result)) {
        return result;
    }
    released.count = 0;
    if (tells) {
        next->is_printed = 1;
        trace_statistics();
    }
    if (next->x32) {
        robust_before_exec(thread, &released);
    }
    result = x32_gate(system_call, call);
    robust_after_failed_exec(thread, &released);
    return result;
}

static inline __attribute__((always_inline)) long attempt(struct successor *next, long system_call,
                                                          const u64 call[6]) {
    const struct thread *thread = this_thread();
    /* A vfork child's image is its parent's, and goes on. */
    int tells = settings.statistics && next->may_begin && !next->is_printed && !thread->is_vfork_child;
    return tells || (next->x32 && robust_releases(thread))
               ? attempt_as_the_last(next, tells, system_call, call)
               : x32_gate(system_call, call);
}

/* In a chroot or a mount namespace without /proc. */
__attribute__((cold, noinline)) static long start_in_memory(struct successor *next, const u64 *arguments,
                                                            const u64 *variables) {
    long image = own_image_open();
    if (failed(image)) {
        return -ENOENT;
    }
    u64 call[6] = {(u64)image, (u64) "", (u64)arguments, (u64)variables, AT_EMPTY_PATH, 0};
    long result = attempt(next, __NR_execveat, call);
    KERNEL_1(__NR_close, image);
    return result;
}

/* Landlock may forbid to execute x32run's file, and permit it for the program's. The kernel knows (since
 * Linux 6.14). */
static int is_permitted(const struct successor *next) {
    u64 by_descriptor = next->by_descriptor;
    u64 file = by_descriptor ? (u64)next->file : (u64)AT_FDCWD;
    const char *none[] = {NULL}, *path = by_descriptor ? "" : next->path;
    return !failed(KERNEL_5(__NR_execveat, file, path, none, none,
                            AT_EXECVE_CHECK | (by_descriptor ? AT_EMPTY_PATH : 0)));
}

/* The kernel opens the file before it reads the vectors (fs/exec.c, do_execveat_common()). An x32 file is
 * opened and checked already. */
__attribute__((cold, noinline)) static long refused(const struct successor *next, long error) {
    return next->x32 ? error
                     : KERNEL_5(__NR_execveat, next->directory, next->native_path, UNREADABLE, UNREADABLE,
                                next->flags);
}

static long replace(struct successor *next, u64 argv, u64 envp) {
    struct thread *thread = this_thread();
    struct vector_count counts;
    struct text number = {.size = 0};
    long result = count(argv, &counts.arguments);
    result = failed(result) ? result : count(envp, &counts.variables);
    if (failed(result)) {
        return refused(next, result);
    }
    u64 few[FEW_WORDS], total = counts.arguments + counts.variables + WORDS_BEFORE + 4;
    u64 size = total > FEW_WORDS ? ROUND_UP(total * 8, PAGE) : 0;
    long scratch = (long)few;
    if (size != 0) {
        scratch = KERNEL_6(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (failed(scratch)) {
        return -ENOMEM;
    }
    u64 *arguments = (u64 *)scratch;
    u64 *variables = arguments + counts.arguments + WORDS_BEFORE + 2;
    u64 *own = arguments + WORDS_BEFORE;
    result = widen(own, argv, counts.arguments);
    result = failed(result) ? result : widen(variables, envp, counts.variables);
    if (failed(result)) {
        result = refused(next, result);
        goto out;
    }
    u64 call[6] = {next->native_path, (u64)own, (u64)variables, 0, 0, 0};
    long system_call = __NR_execve;
    if (next->x32) {
        own = through_x32run(next, own, counts.arguments, &number);
        call[0] = (u64)own_file();
        call[1] = (u64)own;
        if (!failed(next->runtime)) {
            const u64 by_descriptor[6] = {(u64)next->runtime, (u64) "",      (u64)own,
                                          (u64)variables,     AT_EMPTY_PATH, 0};
            copy_bytes(call, by_descriptor, sizeof call);
            system_call = __NR_execveat;
        }
    } else if (next->directory != (u64)AT_FDCWD || next->flags != 0) {
        system_call = __NR_execveat;
        call[0] = next->directory;
        call[1] = next->native_path;
        call[2] = (u64)own;
        call[3] = (u64)variables;
        call[4] = next->flags;
    }
    /* A vfork child's memory is its parent's, which has to clear up. */
    thread->scratch = size != 0 ? (u64)scratch : 0;
    thread->scratch_size = size;
    signals_before_exec();
    account_before_exec(next->x32);
    result = attempt(next, system_call, call);
    if (system_call == __NR_execveat && next->x32 &&
        (result == -ENOENT || result == -EACCES || result == -EPERM)) {
        /* Its path may lead through a mount that forbids it. */
        const u64 by_link[6] = {(u64)own_file(), (u64)own, (u64)variables, 0, 0, 0};
        result = attempt(next, __NR_execve, by_link);
    }
    if (next->x32 && (result == -ENOENT || result == -ENOTDIR || (result == -EACCES && is_permitted(next)))) {
        result = start_in_memory(next, own, variables);
    }
    if (next->x32 && !failed(next->runtime)) {
        KERNEL_1(__NR_close, next->runtime);
    }
    account_after_failed_exec(next->x32);
    signals_after_failed_exec();
    thread->scratch = 0;
out:
    if (size != 0) {
        KERNEL_2(__NR_munmap, scratch, size);
    }
    return result;
}

#define HEADERS_AT_ONCE 12
#define PATH_MAX 4096U
/* In the ELF header: type, offset of the program headers, size of one, how many. */
#define AT_TYPE 16
#define AT_OFFSET 28
#define AT_SIZE 42
#define AT_COUNT 44
#define TYPE_EXECUTABLE 2
#define TYPE_SHARED 3
#define HEADER_INTERPRETER 3 /* PT_INTERP */

static int is_elf(const u8 *head) { return get32(head) == 0x464c457f; }

/* As load_elf_phdrs(), fs/binfmt_elf.c: all have to be there. */
static int has_program_headers(long file, const u8 *head) {
    u8 last;
    u64 offset = get32(head + AT_OFFSET), size = get16(head + AT_SIZE), count = get16(head + AT_COUNT);
    return size == ELF_PROGRAM_HEADER_SIZE && count > 0 && count <= ELF_PROGRAM_HEADERS &&
           KERNEL_4(__NR_pread64, file, &last, 1, offset + size * count - 1) == 1;
}

/* struct stat: the mode is in the fourth word. */
static int is_regular(long file) {
    u64 status[18];
    return !failed(KERNEL_2(__NR_fstat, file, status)) && (status[3] & 0170000) == 0100000;
}

/* As open_exec() and what load_elf_binary() asks of an interpreter. */
static long check_interpreter(const char *name) {
    u8 head[ELF_HEADER_SIZE];
    long file = program_open((u64)AT_FDCWD, name, O_CLOEXEC | O_NONBLOCK);
    if (failed(file)) {
        return file;
    }
    long result = is_regular(file) ? may_execute(file) : -EACCES;
    if (!failed(result) && KERNEL_4(__NR_pread64, file, head, sizeof head, 0) != sizeof head) {
        result = -EIO;
    } else if (!failed(result) && (!is_elf(head) || elf_kind(head, sizeof head) != ELF_X32 ||
                                   !has_program_headers(file, head))) {
        result = -ELIBBAD;
    }
    KERNEL_1(__NR_close, file);
    return result;
}

__attribute__((noinline)) static long check_named_interpreter(long file, u64 offset, u64 size) {
    char name[size];
    if (KERNEL_4(__NR_pread64, file, name, size, offset) != (long)size) {
        return -EIO;
    }
    return name[size - 1] == 0 ? check_interpreter(name) : -ENOEXEC;
}

/* What load_elf_binary() refuses while the calling program is still there. */
static long check_elf(long file) {
    u8 head[ELF_HEADER_SIZE], headers[HEADERS_AT_ONCE * ELF_PROGRAM_HEADER_SIZE];
    if (KERNEL_4(__NR_pread64, file, head, sizeof head, 0) != sizeof head ||
        !has_program_headers(file, head) ||
        (get16(head + AT_TYPE) != TYPE_EXECUTABLE && get16(head + AT_TYPE) != TYPE_SHARED)) {
        return -ENOEXEC;
    }
    u64 left = get16(head + AT_COUNT), at = get32(head + AT_OFFSET);
    while (left > 0) {
        u64 count = left < HEADERS_AT_ONCE ? left : HEADERS_AT_ONCE, size = count * ELF_PROGRAM_HEADER_SIZE;
        if (KERNEL_4(__NR_pread64, file, headers, size, at) != (long)size) {
            return -ENOEXEC;
        }
        for (u64 i = 0; i < count; i++) {
            const u8 *header = headers + i * ELF_PROGRAM_HEADER_SIZE;
            if (get32(header) == HEADER_INTERPRETER) {
                u64 name_size = get32(header + 16);
                return name_size < 2 || name_size > PATH_MAX
                           ? -ENOEXEC
                           : check_named_interpreter(file, get32(header + 4), name_size);
            }
        }
        left -= count;
        at += size;
    }
    return 0;
}

/* Of a script, what is asked of its interpreter. */
static long check_program(long file, int depth) {
    struct program_head head;
    if (program_look(file, &head) != PROGRAM_SCRIPT || depth == SCRIPTS_NESTED) {
        return check_elf(file);
    }
    long next = program_open((u64)AT_FDCWD, head.interpreter, O_CLOEXEC | O_NONBLOCK);
    if (failed(next)) {
        return next;
    }
    long result = may_execute(next);
    result = failed(result) ? result : check_program(next, depth + 1);
    KERNEL_1(__NR_close, next);
    return result;
}

/* An ELF file, or a script whose interpreter may be executed. Of other formats the kernel alone knows. */
static int may_begin(long file) {
    struct program_head head;
    u8 first[4] = {0};
    KERNEL_4(__NR_pread64, file, first, sizeof first, 0);
    return is_elf(first) || (program_look(file, &head) == PROGRAM_SCRIPT &&
                             !failed(KERNEL_3(__NR_faccessat, AT_FDCWD, head.interpreter, X_OK)));
}

/* A descriptor that is closed by execve may be behind such a name. */
static int may_name_descriptor(const char *path) {
    return path[0] == '/' && ((path[1] == 'p' && path[2] == 'r' && path[3] == 'o' && path[4] == 'c') ||
                              (path[1] == 'd' && path[2] == 'e' && path[3] == 'v' && path[4] == '/'));
}

/* A script that the new program could not open by its name: the descriptor in it is closed by then
 * (fs/exec.c, BINPRM_FLAGS_PATH_INACCESSIBLE). */
static int is_closed_script(long file, u64 directory) {
    struct program_head head;
    long flags = KERNEL_2(__NR_fcntl, directory, F_GETFD);
    return !failed(flags) && (flags & FD_CLOEXEC) && program_look(file, &head) == PROGRAM_SCRIPT;
}

static long execute_path(const char *path, u64 directory, u64 path_address, u64 argv, u64 envp, u64 flags) {
    int empty = path[0] == 0 && (flags & AT_EMPTY_PATH);
    int is_in_directory = empty || (directory != (u64)AT_FDCWD && path[0] != '/');
    int by_descriptor = is_in_directory || may_name_descriptor(path);
    long file;
    /* Without O_CLOEXEC only where x32run is to find it. */
    u64 mode = (by_descriptor ? 0 : O_CLOEXEC) | O_NONBLOCK | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    if (empty) {
        /* Opened anew: a descriptor made with O_PATH cannot be read. */
        struct text name = {.size = 0};
        program_name_descriptor(&name, (i32)directory);
        file = program_open((u64)AT_FDCWD, name.bytes, mode);
        file = file == -ENOENT ? KERNEL_1(__NR_dup, directory) : file; /* no /proc */
    } else {
        file = program_open(directory, path, mode);
    }
    /* A check is the kernel's alone: it does not look at the format. */
    int executes = !failed(file) && !(flags & AT_EXECVE_CHECK);
    int x32 = executes && program_follow(file) == PROGRAM_X32;
    if (x32) {
        long allowed = may_execute(file);
        allowed = failed(allowed) ? allowed : check_program(file, 0);
        if (failed(allowed)) {
            KERNEL_1(__NR_close, file);
            return allowed;
        }
    }
    /* A program may be executed without being readable. */
    int has_format = settings.statistics && !(flags & AT_EXECVE_CHECK) &&
                     (failed(file) ? file == -EACCES : x32 || may_begin(file));
    if (!failed(file) && !(x32 && by_descriptor)) {
        KERNEL_1(__NR_close, file);
    }
    if (x32 && is_in_directory && is_closed_script(file, directory)) {
        KERNEL_1(__NR_close, file);
        return -ENOENT;
    }
    /* As the kernel names it: fs/exec.c, alloc_bprm(). */
    struct text prefix = {.size = 0};
    text_add(&prefix, "/dev/fd/%d%s", (i64)(i32)directory, empty ? "" : "/");
    u64 length = length_of(path);
    char shown[prefix.size + length + 1];
    copy_bytes(shown, prefix.bytes, prefix.size);
    copy_bytes(shown + prefix.size, path, length + 1);
    struct successor next = {
        .path = is_in_directory ? shown : path,
        .directory = directory,
        .native_path = path_address,
        .flags = flags,
        .file = file,
        .by_descriptor = by_descriptor,
        .x32 = x32,
        .may_begin = has_format,
    };
    long result = replace(&next, (u32)argv, (u32)envp);
    /* It may be an x32 file: a C library gives what the kernel does not know to a shell. */
    result = result == -ENOEXEC && file == -EMFILE ? -EMFILE : result;
    if (x32 && by_descriptor) {
        KERNEL_1(__NR_close, file);
    }
    return result;
}

__attribute__((noinline)) static long execute_own_file(u64 argv, u64 envp, u64 flags) {
    char room[PROGRAM_NAME_ROOM];
    const char *path = program_path(room);
    return path == NULL ? -ENOENT : execute_path(path, (u64)AT_FDCWD, (u64)path, argv, envp, flags);
}

__attribute__((noinline)) static long execute_long_path(u64 directory, u64 path_address, u64 argv, u64 envp,
                                                        u64 flags) {
    char path[4096];
    int read = read_user_text(path, path_address, sizeof path);
    return read < 0 ? read : execute_path(path, directory, path_address, argv, envp, flags);
}

static long execute(u64 directory, u64 path_address, u64 argv, u64 envp, u64 flags) {
    char path[256]; /* most are shorter: less of the stack is touched */
    if (flags & ~(u64)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EXECVE_CHECK)) {
        return -EINVAL;
    }
    int read = read_user_text(path, path_address, sizeof path);
    if (read == -ENAMETOOLONG) {
        return execute_long_path(directory, path_address, argv, envp, flags);
    }
    if (read >= 0 && !(flags & AT_SYMLINK_NOFOLLOW) && is_own_exe(directory, path)) {
        return execute_own_file(argv, envp, flags);
    }
    return read < 0 ? read : execute_path(path, directory, path_address, argv, envp, flags);
}

long call_execve(struct frame *frame) {
    return execute((u64)AT_FDCWD, (u32)frame->rdi, frame->rsi, frame->rdx, 0);
}

long call_execveat(struct frame *frame) {
    return execute((u64)(i64)(i32)frame->rdi, (u32)frame->rsi, frame->rdx, frame->r10, (u32)frame->r8);
}
