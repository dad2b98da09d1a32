/*
 * x32run: runs an x32 program on any x86-64 Linux, in user space.
 *
 * The process stays a 64-bit one. The program lies below 4 GiB, as it would on a kernel with x32; everything
 * of the runtime lies above. See docs/x32.md.
 */
#include "account.h"
#include "calls.h"
#include "costs.h"
#include "diagnostics.h"
#include "initial_stack.h"
#include "interception.h"
#include "listing.h"
#include "loader.h"
#include "own_file.h"
#include "program.h"
#include "settings.h"
#include "signals.h"
#include "sites.h"
#include "space.h"
#include "thread.h"
#include "trace.h"
#include "trampolines.h"
#include "user_memory.h"
#include "valgrind.h"
#include "vdso.h"
#include <elf.h>

#define KERNEL_AT_MINSIGSTKSZ 51
#define HWCAP2_FSGSBASE 2      /* arch/x86/include/uapi/asm/hwcap2.h */
#define PRESERVED_FIRST_WORD 1 /* AT_FLAGS_PRESERVE_ARGV0 */
#define ADDR_NO_RANDOMIZE 0x0040000
/* STACK_TOP of a 64-bit process, arch/x86/include/asm/page_64_types.h. */
#define LAST_STACK 0x7ffffffff000UL
#define GUARD_GAP (256 * PAGE)
#define STACK_RANDOM_PAGES 0x7ffUL
#define MAP_RANDOM_PAGES 0xffUL
#define HEAP_RANDOM_PAGES 0x1fffUL

/* Behind what a start reads (layout.ld). */
#define RARELY_READ __attribute__((section(".rodata.late")))

RARELY_READ static const char usage[] =
    "usage: x32run [options] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs an x32 program (ELF of class 32 for x86-64) on a kernel without x32.\n"
    "\n"
    "  --trace       show every system call on standard error\n"
    "  --stats       at the end, print how many sites were rewritten and how many calls trapped\n"
    "  --argv0 NAME  the program's own name, if it is not PROGRAM\n"
    "  --fd N        read the program from this descriptor, and close it\n"
    "  --self D:I:F  this file itself is F, of device D and inode I\n"
    "  --ahead       rewrite every site that is certain at load, not when first used\n"
    "  --no-rewrite  let every system call trap\n"
    "  --seccomp     catch what is not rewritten with a seccomp filter, not with Syscall User Dispatch\n"
    "  --no-i386     do without the kernel's i386 entry, as where it has no IA32_EMULATION\n"
    "  --check       print whether the kernel has that entry\n"
    "  --account F   count the runtime's own pages, faults, calls and time in this file (account.h)\n"
    "  --costs       print what each way of a call costs here, in ticks of the time-stamp counter\n"
    "  --list-calls  print what becomes of every system call, as a table in Markdown\n"
    "  --version     print which version this is\n"
    "\n"
    "Exit status: the program's; 126 where it cannot be run, 127 where it is not there.\n";

RARELY_READ static const char no_i386[] =
    "i386 entry: no (the kernel has no IA32_EMULATION, or ia32_emulation=0): "
    "unknown requests of ioctl are answered with "
    "ENOSYS, and robust mutexes of a thread that a signal ends stay locked\n";

/* entry.S: continues on another stack. Its pages are touched by the first calls anyway; those of the kernel's
 * are not, beyond what the kernel has put there. */
__attribute__((noreturn)) void x32_continue_on(u64 stack_top, u64 *cells, u64 first_faults,
                                               void (*begin)(u64 *, u64));

struct request {
    const char *path;
    const char *script; /* whose interpreter the path is; or null */
    const char *first_word;
    i64 fd;
    const char **rest; /* after the path */
    int has_no_links;  /* the path, by which the file was opened */
};

static void print(int fd, const char *text) { KERNEL_3(__NR_write, fd, text, length_of(text)); }

static i64 number(const char *text) {
    i64 value = 0;
    if (*text == 0) {
        return -1;
    }
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9' || value > 1000000) {
            return -1;
        }
        value = value * 10 + (*text - '0');
    }
    return value;
}

static const char *value_of(const char ***word) {
    const char *option = **word;
    const char *value = *++*word;
    if (value == NULL) {
        give_up(126, "%s: a value is missing; x32run --help lists the options", option);
    }
    return value;
}

static struct request read_words(const char **word) {
    struct request request = {.fd = -1};
    for (; *word != NULL && (*word)[0] == '-' && (*word)[1] == '-'; word++) {
        if ((*word)[2] == 0) {
            word++;
            break;
        }
        if (same_text(*word, "--trace")) {
            settings.trace = 1;
        } else if (same_text(*word, "--stats")) {
            settings.statistics = 1;
        } else if (same_text(*word, "--ahead")) {
            settings.ahead = 1;
        } else if (same_text(*word, "--no-rewrite")) {
            settings.keep_sites = 1;
        } else if (same_text(*word, "--seccomp")) {
            settings.seccomp = 1;
        } else if (same_text(*word, "--account")) {
            settings.account = value_of(&word);
        } else if (same_text(*word, "--no-i386")) {
            settings.no_i386 = 1;
        } else if (same_text(*word, "--check")) {
            settings.check = 1;
        } else if (same_text(*word, "--costs")) {
            settings.costs = 1;
        } else if (same_text(*word, "--argv0")) {
            request.first_word = value_of(&word);
        } else if (same_text(*word, "--fd")) {
            const char *value = value_of(&word);
            request.fd = number(value);
            if (request.fd < 0) {
                give_up(126, "--fd %s: not a descriptor's number", value);
            }
        } else if (same_text(*word, "--self")) {
            own_file_given(value_of(&word));
        } else if (same_text(*word, "--list-calls")) {
            listing_print();
            KERNEL_1(__NR_exit_group, 0);
        } else if (same_text(*word, "--help")) {
            print(1, usage);
            KERNEL_1(__NR_exit_group, 0);
        } else if (same_text(*word, "--version")) {
            print(1, "x32run " X32_VERSION "\n");
            KERNEL_1(__NR_exit_group, 0);
        } else {
            give_up(126, "%s: there is no such option; x32run --help lists them", *word);
        }
    }
    if (*word == NULL && (settings.costs != 0 || settings.check)) {
        return request;
    }
    if (*word == NULL) {
        print(2, usage);
        KERNEL_1(__NR_exit_group, 126);
    }
    if ((*word)[0] == 0) {
        give_up(127, "'' is an empty name: a program is needed");
    }
    request.path = *word;
    request.rest = word + 1;
    return request;
}

static u64 vector_value(const u64 *vector, u64 key) {
    for (; vector[0] != AT_NULL; vector += 2) {
        if (vector[0] == key) {
            return vector[1];
        }
    }
    return 0;
}

__attribute__((noreturn)) static void cannot_run(const struct request *request, int status,
                                                 const char *reason) {
    if (request->script != NULL) {
        give_up(status, "%s: its interpreter %s: %s", request->script, request->path, reason);
    }
    give_up(status, "%s: %s", request->path, reason);
}

__attribute__((noreturn)) static void cannot_open(const struct request *request, long error) {
    const struct {
        long error;
        const char *reason;
    } reasons[] = {
        {ENOENT, "there is no such file"},
        {ENOTDIR, "it is below a file that is not a directory"},
        {ELOOP, "its path has too many symbolic links"},
        {ENXIO, "it is not a regular file"}, /* a socket */
        {EACCES,
         "permission denied: it, and all that its path leads through, has to be accessible (chmod +r; "
         "of a directory, chmod +x)"},
    };
    int status = error == ENOENT || error == ENOTDIR ? 127 : 126;
    for (u64 i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].error == error) {
            cannot_run(request, status, reasons[i].reason);
        }
    }
    cannot_run(request, status, error_name(error));
}

#define MODE_OF_FILE 3 /* struct stat: the fourth word has the mode in its lower half */
#define FILE_TYPE 0170000
#define IS_REGULAR 0100000
#define IS_DIRECTORY 0040000

/* As may_open() and do_open_execat() of the kernel: only a regular file that may be executed. */
static void check_permission(const struct request *request, long fd) {
    u64 status[18];
    if (failed(KERNEL_2(__NR_fstat, fd, status))) {
        return;
    }
    u64 type = status[MODE_OF_FILE] & FILE_TYPE;
    if (type != IS_REGULAR) {
        cannot_run(request, 126, type == IS_DIRECTORY ? "it is a directory" : "it is not a regular file");
    }
    if (failed(program_may_execute(fd))) {
        cannot_run(request, 126, "permission denied: it is not executable (chmod +x)");
    }
}

static long open_program(struct request *request) {
    const u64 mode = O_CLOEXEC | O_NONBLOCK;
    /* valgrind 3.19 does not know the call. */
    int is_asked = request->fd < 0 && !settings.valgrind;
    long fd = is_asked ? program_open_without_links(request->path, mode) : request->fd;
    request->has_no_links = is_asked && !failed(fd);
    fd = fd < 0 ? program_open((u64)AT_FDCWD, request->path, mode) : fd;
    if (failed(fd)) {
        cannot_open(request, -fd);
    }
    if (request->fd < 0) { /* else the process that opened it has checked it */
        check_permission(request, fd);
    }
    return fd;
}

#define SCRIPT_WORDS (2 * SCRIPTS_NESTED + 1)

/* A script becomes its interpreter's argument, as in the kernel. Returns how many words were put before the
 * rest. */
static u64 follow_scripts(struct request *request, struct beginning *beginning, long *fd,
                          const char *words[SCRIPT_WORDS]) {
    LARGE static struct program_head heads[SCRIPTS_NESTED];
    u64 used = 0;
    enum program_kind kind;
    program_read_beginning(beginning, *fd);
    for (int depth = 0;
         (kind = program_look_at(beginning->bytes, beginning->size, &heads[depth])) == PROGRAM_SCRIPT;
         depth++) {
        if (depth == SCRIPTS_NESTED - 1) {
            give_up(126, "%s: its interpreter is a script, whose interpreter is a script, and so on",
                    request->path);
        }
        const char *before[2] = {heads[depth].argument, request->path};
        u64 more = heads[depth].argument[0] != 0 ? 2 : 1;
        for (u64 i = used; i > 0; i--) {
            words[i - 1 + more] = words[i - 1];
        }
        words[0] = before[2 - more];
        words[more - 1] = before[1];
        used += more;
        KERNEL_1(__NR_close, *fd);
        request->fd = -1;
        request->script = request->path;
        request->path = heads[depth].interpreter;
        request->first_word = heads[depth].interpreter;
        *fd = open_program(request);
        program_read_beginning(beginning, *fd);
    }
    if (request->script != NULL && kind == PROGRAM_OTHER) {
        give_up(126, "%s: its interpreter %s is not an x32 program", request->script, request->path);
    }
    return used;
}

/* Of a program that was started by its descriptor alone, the file's own name (since Linux 6.14; before, the
 * number). */
static const char *name_of_descriptor(const struct request *request, char *room, u64 size) {
    const char prefix[] = "/dev/fd/";
    u64 at = 0;
    while (at < sizeof prefix - 1 && request->path[at] == prefix[at]) {
        at++;
    }
    u64 first = at;
    while (request->path[at] >= '0' && request->path[at] <= '9') {
        at++;
    }
    if (request->fd < 0 || first < sizeof prefix - 1 || request->path[at] != 0) {
        return request->path;
    }
    struct text link = {.size = 0};
    program_name_descriptor(&link, request->fd);
    long length = KERNEL_3(__NR_readlink, link.bytes, room, size - 1);
    if (failed(length)) {
        return request->path;
    }
    /* The kernel names it by its entry, which a file that is deleted, or only in memory, keeps. */
    static const char deleted[] = " (deleted)";
    u64 status[18], end = (u64)length - (sizeof deleted - 1);
    room[length] = 0;
    if ((u64)length >= sizeof deleted && same_text(room + end, deleted) &&
        !failed(KERNEL_2(__NR_fstat, request->fd, status)) && status[2] == 0) { /* st_nlink */
        room[end] = 0;
    }
    return room;
}

static void name_process(const char *path) {
    const char *name = path;
    for (const char *at = path; *at != 0; at++) {
        if (*at == '/') {
            name = at + 1;
        }
    }
    KERNEL_2(__NR_prctl, PR_SET_NAME, name);
}

/* Whether programs have random addresses here: neither the personality nor the sysctl randomize_va_space
 * forbids it. Where one does, the runtime's own stack ends with the address space: the last text there is the
 * file's name. */
static int is_random(const char *file_name) {
    u64 end = (u64)file_name + length_of(file_name) + 1 + 8;
    return end != LAST_STACK && (KERNEL_1(__NR_personality, 0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

/* Of the kernel's mmap_base(), arch/x86/mm/mmap.c, for a 32-bit program. */
static u64 lay_out_space(u64 random, int randomize) {
    struct rlimit limit;
    u64 stack = 8UL << 20;
    if (!failed(KERNEL_2(__NR_getrlimit, RLIMIT_STACK, &limit))) {
        stack = limit.current;
    }
    u64 shift = randomize ? (random & MAP_RANDOM_PAGES) * PAGE : 0;
    if (stack == RLIM_INFINITY) {
        space_begin(ROUND_DOWN(TASK_SIZE / 3, PAGE) + shift, 1);
        return 0;
    }
    u64 gap = stack + (STACK_RANDOM_PAGES + 1) * PAGE + GUARD_GAP;
    u64 least = 128UL << 20, most = TASK_SIZE / 6 * 5;
    gap = gap < least ? least : gap > most ? most : gap;
    space_begin(ROUND_DOWN(TASK_SIZE - gap - shift, PAGE), 0);
    return gap;
}

/* Lets the kernel show and grow what is the program's: its heap, and in /proc its arguments and environment.
 * Needs no right (prctl_set_mm_map, kernel/sys.c). */
static void describe(const struct program *program, const struct stack *stack, u64 heap) {
    const struct image *image = &program->main.image;
    struct mm_map map = {
        .start_code = (u64)image->low + program->main.bias,
        .end_code = (u64)image->high + program->main.bias,
        .start_data = (u64)image->low + program->main.bias,
        .end_data = (u64)image->high + program->main.bias,
        .start_brk = heap,
        .brk = heap,
        .start_stack = stack->sp,
        .arg_start = stack->arguments,
        .arg_end = stack->arguments_end,
        .env_start = stack->environment,
        .env_end = stack->environment_end,
        .auxv = stack->vector,
        .auxv_size = (u32)stack->vector_size,
        .exe_fd = ~0U,
    };
    KERNEL_5(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

static u64 count_words(const char *const *words) {
    u64 count = 0;
    while (words[count] != NULL) {
        count++;
    }
    return count;
}

/* Whether an account is asked for. A string constant would be a page fault of the runtime's before it counts.
 */
static int wants_account(const char *const *words) {
    for (; *words != NULL; words++) {
        const char *word = *words;
        if (word[0] == '-' && word[1] == '-' && word[2] == 'a' && word[3] == 'c') {
            return 1;
        }
    }
    return 0;
}

/* What the kernel has put on the stack. */
struct given {
    const char **words;
    const char **environment;
    const u64 *vector;
    u64 environment_count;
};

static struct given read_cells(u64 *cells) {
    struct given given = {.words = (const char **)(cells + 1)};
    given.environment = given.words + cells[0] + 1;
    given.environment_count = count_words(given.environment);
    given.vector = (const u64 *)(given.environment + given.environment_count + 1);
    return given;
}

/* The program's words: its name, `before` and the rest. They take the places of those words of x32run's own
 * that come before the rest; a script started by one word has too few, and gets a mapping, which stays. */
static const char **put_arguments(const struct request *request, const char *const *first_place,
                                  const char *const *before, u64 before_count) {
    const char **arguments = request->rest - before_count - 1;
    if (arguments < first_place) {
        u64 size = (count_words(request->rest) + 1) * 8;
        long place = KERNEL_6(__NR_mmap, 0, size + (before_count + 1) * 8, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (failed(place)) {
            give_up(126, "no memory for the runtime itself: %s", error_name(-place));
        }
        arguments = (const char **)place;
        copy_bytes(arguments + 1 + before_count, request->rest, size);
    }
    copy_bytes(arguments + 1, before, before_count * 8);
    arguments[0] = request->first_word != NULL ? request->first_word : request->path;
    return arguments;
}

__attribute__((noreturn)) static void begin(u64 *cells, u64 first_faults) {
    const struct given given = read_cells(cells);
    const char **words = given.words;
    const u64 *vector = given.vector;
    own_file_begin((const char *)vector_value(vector, AT_EXECFN));
    struct request request;
    if ((vector_value(vector, AT_FLAGS) & PRESERVED_FIRST_WORD) && cells[0] >= 3) {
        /* Started by binfmt_misc with the flag P: x32run, the file, its first word, the rest. */
        request = (struct request){.path = words[1], .first_word = words[2], .fd = -1, .rest = words + 3};
    } else {
        request = read_words(words + (cells[0] > 0));
    }
    u64 kernel_vdso = vector_value(vector, AT_SYSINFO_EHDR);
    if (settings.costs != 0) {
        settings.account = "";
    }
    if (settings.account != NULL && !settings.valgrind) {
        const char *last = (const char *)vector_value(vector, AT_EXECFN);
        account_begin(settings.account, (u64)cells, (u64)last + length_of(last), kernel_vdso, first_faults);
    }
    settings.ahead |= settings.valgrind;
    sites_begin(settings.trace, !settings.keep_sites);
    signals_begin();
    if (settings.check) {
        print(1, i386_entry_is_there() ? "i386 entry: yes\n" : no_i386);
        KERNEL_1(__NR_exit_group, 0);
    }
    if (settings.costs != 0) {
        lay_out_space(0, 0);
        costs_measure();
    }

    long fd = open_program(&request);
    const char *file_name = request.path; /* of a script, the process has the script's */
    LARGE static char linked[4096];
    const char *name = name_of_descriptor(&request, linked, sizeof linked);
    const char *script_words[SCRIPT_WORDS + 1];
    struct beginning beginning;
    u64 script_count = follow_scripts(&request, &beginning, &fd, script_words);

    u64 random[6] = {0};
    int randomize = is_random((const char *)vector_value(vector, AT_EXECFN));
    KERNEL_3(__NR_getrandom, random, sizeof random, 0);
    lay_out_space(random[0], randomize);

    /* mmap_min_addr and less is never the program's by accident. */
    struct program program;
    clear_bytes(&program, sizeof program);
    settings.program = request.path;
    program_load(&program, &beginning, fd, request.path, randomize ? random[1] & MAP_RANDOM_PAGES : 0);
    settings.image = program.main.image.low + program.main.bias;
    program_is(program.main.image.device, program.main.image.inode);
    if (!program.has_interpreter) {
        /* The first that static glibc asks for. */
        program_learn_file(fd, request.has_no_links ? request.path : NULL);
    }
    KERNEL_1(__NR_close, fd);

    const char **arguments = put_arguments(&request, words, script_words, script_count);
    const struct image *image = &program.main.image;
    struct stack_content content = {
        .arguments = arguments,
        .argument_count = count_words(arguments),
        .environment = given.environment,
        .environment_count = given.environment_count,
        .file_name = file_name,
        .kernel_vector = vector,
        .program_headers = image->header_address != 0 ? image->header_address + program.main.bias : 0,
        .program_header_count = image->header_count,
        .interpreter_base =
            program.has_interpreter ? program.interpreter.image.low + program.interpreter.bias : 0,
        .entry = image->entry + program.main.bias,
        .vdso = vdso_map(settings.valgrind ? 0 : kernel_vdso),
        .random = (const u8 *)&random[3],
        .random_gap = randomize ? random[5] % STACK_RANDOM_GAP : 0,
        .executable = image->executable_stack,
    };
    struct stack stack;
    stack_build(&stack, TASK_SIZE - (randomize ? (random[2] & STACK_RANDOM_PAGES) * PAGE : 0), &content);

    u64 heap =
        program.heap_start + TRAMPOLINE_GAP + (randomize ? (random[2] >> 32 & HEAP_RANDOM_PAGES) * PAGE : 0);
    if (!settings.valgrind) {
        describe(&program, &stack, heap);
    }
    space_begin_heap(program.heap_start, heap);
    name_process(name);

    interception_begin(settings.valgrind, settings.seccomp);
    if (this_thread()->guards_sigsys) {
        interception_arm_thread(1);
    }
    thread_settle(this_thread());
    account_loaded();
    x32_start(stack.sp, program.start);
}

__attribute__((noreturn, used)) void x32_main(u64 *cells) {
    const struct given given = read_cells(cells);
    u64 first_faults = wants_account(given.words) ? account_first_faults() : 0;
    settings.trace_fd = 2;
    settings.valgrind = (u8)valgrind_is_here();
    x32_has_wrgsbase = !settings.valgrind && (vector_value(given.vector, AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    u64 signal_frame_size = vector_value(given.vector, KERNEL_AT_MINSIGSTKSZ);
    int result = thread_adopt_first(signal_frame_size != 0 ? signal_frame_size : 4096);
    if (result < 0) {
        give_up(126, "no memory for the runtime itself: %s", error_name(-result));
    }
    x32_continue_on(this_thread()->stack_top, cells, first_faults, begin);
}
