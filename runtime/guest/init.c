/*
 * The first process of an emulated machine (process 1): starts an empty program and then the measured one,
 * and reports how the latter ended.
 *
 * It is freestanding and a few pages large, for the reasons of the launcher: a program's peak resident size
 * contains that of the process that started it. It reaches the outside through two ports of QEMU, which need
 * no driver: what it writes to REPORT_PORT goes to a file (isa-debugcon), and a value written to EXIT_PORT
 * ends the machine with exit status 2 * value + 1 (isa-debug-exit).
 *
 * /job is a list of strings, each with a 0 at its end: the empty program, the program's file, its working
 * directory, the file of its standard input, the number of words and the words, the number of environment
 * variables and the variables, the number of large files (large_files.h), and of each its path, its size and
 * `program` or `file`.
 *
 * The report:
 *
 *   widthwise-guest 1
 *   started                                       the machine has reached this process
 *   refused EMPTY|PROGRAM STEP ERROR              a program could not be started; nothing follows but the end
 *   ended exit|signal NUMBER                      how it ended
 *   usage PEAK_KIB MINOR MAJOR VOLUNTARY INVOLUNTARY
 *   times WALL WALL_NS USER USER_US SYSTEM SYSTEM_US     each in seconds and their fractions
 *   oom COUNT                                     processes that the kernel killed for want of memory
 *   stdout BYTES, then a newline, the bytes, a newline; stderr likewise
 *   end
 *
 * The plugin of runtime/plugin counts between markers: 1 and 2 surround the empty program, 3 and 4 the
 * measured one. At marker 5 it begins with what costs much. Marker 6 shows it where code lies in memory: it
 * is executed, and its bytes are read.
 */
#include "kernel.h"
#include "large_files.h"

enum { REPORT_PORT = 0xe9, EXIT_PORT = 0xf4, EXIT_VALUE = 0x31 };
enum { MOST_JOB = 1 << 20, MOST_WORDS = 1 << 15 };
/* The empty program's first start fills caches of the kernel that later starts find full. */
enum { WARM_UPS = 3 };

static char job[MOST_JOB + 1];
static char *words[MOST_WORDS + 1], *variables[MOST_WORDS + 1];
static char *next, *job_end;

static uint32_t length(const char *text) {
    uint32_t count = 0;
    while (text[count])
        count++;
    return count;
}

static void report(const char *bytes, uint32_t count) {
    __asm__ volatile("rep outsb" : "+S"(bytes), "+c"(count) : "d"(REPORT_PORT) : "memory");
}

static void say(const char *text) { report(text, length(text)); }

static void say_number(int32_t number) {
    char digits[12];
    int at = sizeof digits;
    uint32_t left = number < 0 ? -(uint32_t)number : (uint32_t)number;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        digits[--at] = '-';
    report(digits + at, sizeof digits - at);
}

__attribute__((noreturn)) static void leave(void) {
    say("end\n");
    __asm__ volatile("outl %0, %1" : : "a"(EXIT_VALUE), "Nd"((uint16_t)EXIT_PORT));
    for (;;)
        ;
}

__attribute__((noreturn)) static void refuse(const char *which, const char *step, int32_t error) {
    say("refused ");
    say(which);
    say(" ");
    say(step);
    say(" ");
    say_number(-error);
    say("\n");
    leave();
}

static int32_t open_file(const char *path, int flags) {
    return call(CALL_OPEN, (uintptr_t)path, (uintptr_t)flags, 0644, 0, 0);
}

/* Reads until the buffer is full or the file ends. */
static int32_t read_all(int32_t file, char *to, uint32_t most) {
    uint32_t count = 0;
    while (count < most) {
        int32_t got = call(CALL_READ, (uintptr_t)file, (uintptr_t)(to + count), most - count, 0, 0);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        count += (uint32_t)got;
    }
    return (int32_t)count;
}

static char *take(void) {
    char *text = next;
    while (next < job_end && *next)
        next++;
    if (next >= job_end)
        refuse("PROGRAM", "job", -22);
    next++;
    return text;
}

static uint32_t take_number(void) {
    uint32_t number = 0;
    for (char *digits = take(); *digits; digits++)
        number = number * 10 + (uint32_t)(*digits - '0');
    return number;
}

static void take_list(char **list) {
    uint32_t count = take_number();
    if (count > MOST_WORDS)
        refuse("PROGRAM", "job", -7);
    for (uint32_t i = 0; i < count; i++)
        list[i] = take();
    list[count] = 0;
}

static void take_large_files(void) {
    uint32_t count = take_number();
    if (count == 0)
        return;
    call(CALL_IOPERM, SELECT_PORT, DMA_PORTS_END - SELECT_PORT, 1, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        char *path = take();
        uint32_t size = take_number(), mode = *take() == 'p' ? 0755 : 0644;
        int32_t error = place_large_file(path, i, size, mode);
        if (error < 0)
            refuse("PROGRAM", "input", error);
    }
    /* The kernel copies the rights up to the highest port at each switch to the process: only the low ones
     * stay. */
    call(CALL_IOPERM, SELECT_PORT, DMA_PORTS_END - SELECT_PORT, 0, 0, 0);
}

static void mount_at(const char *type, const char *where) {
    call(CALL_MKDIR, (uintptr_t)where, 0755, 0, 0, 0);
    call(CALL_MOUNT, (uintptr_t)type, (uintptr_t)where, (uintptr_t)type, 0, 0);
}

struct ending {
    int32_t status;
    struct rusage usage;
    struct timespec wall;
    int32_t step, error; /* of a start that failed; step is an index of STEPS */
};

static const char *const STEPS[] = {"none", "fork", "directory", "stdin", "stdout", "stderr", "execve"};
enum { NONE, FORK, DIRECTORY, STDIN, STDOUT, STDERR, EXECVE };

/* The child tells a failed start through its exit status and this file. */
static const char FAILED[] = "/failed";

__attribute__((noreturn)) static void fail(int32_t step, int32_t error) {
    int32_t file = open_file(FAILED, O_WRONLY | O_CREAT | O_TRUNC), record[2] = {step, error};
    call(CALL_WRITE, (uintptr_t)file, (uintptr_t)record, sizeof record, 0, 0);
    call(CALL_EXIT, 127, 0, 0, 0, 0);
    __builtin_unreachable();
}

static void redirect(int32_t step, const char *path, int flags, int to) {
    int32_t file = open_file(path, flags);
    if (file < 0)
        fail(step, file);
    call(CALL_DUP2, (uintptr_t)file, (uintptr_t)to, 0, 0, 0);
    if (file != to)
        call(CALL_CLOSE, (uintptr_t)file, 0, 0, 0, 0);
}

#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #number ", 0x00, 0x44, 0x57" : : : "memory")

/* Marker 6, and a read of its bytes. */
static void show_code(void) {
    uint32_t bytes;
    __asm__ volatile("1:\n\t.byte 0x0f, 0x1f, 0x80, 0x06, 0x00, 0x44, 0x57\n\tmovl 1b, %0"
                     : "=r"(bytes)
                     :
                     : "memory");
}

/* When the program's execve began: written by the child. */
static struct timespec *began;

static void map_shared(void) {
    const struct mapping page = {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, (uint32_t)-1,
                                 0};
    int32_t address = call(CALL_MMAP, (uintptr_t)&page, 0, 0, 0, 0);
    if (address < 0 && address > -4096)
        refuse("PROGRAM", "memory", address);
    began = (struct timespec *)(uintptr_t)address;
    *began = (struct timespec){0, 0};
}

static void read_clock(struct timespec *now) {
    call(CALL_CLOCK_GETTIME, CLOCK_MONOTONIC, (uintptr_t)now, 0, 0, 0);
}

static struct timespec since(const struct timespec *start) {
    struct timespec now;
    read_clock(&now);
    now.seconds -= start->seconds;
    now.nanoseconds -= start->nanoseconds;
    if (now.nanoseconds < 0) {
        now.nanoseconds += 1000000000;
        now.seconds--;
    }
    return now;
}

/* `is_measured`: the measured program, and not the empty one; with markers if `is_marked`. */
static struct ending run(const char *file, char **arguments, char **environment, const char *directory,
                         const char *input, int is_measured, int is_marked) {
    struct ending ending = {0};
    int32_t child = call(CALL_FORK, 0, 0, 0, 0, 0);
    if (child < 0) {
        ending.step = FORK;
        ending.error = child;
        return ending;
    }
    if (child == 0) {
        const int write = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
        call(CALL_SETSID, 0, 0, 0, 0, 0);
        redirect(STDIN, input, O_RDONLY, 0);
        redirect(STDOUT, is_measured ? "/stdout" : "/dev/null", write, 1);
        redirect(STDERR, is_measured ? "/stderr" : "/dev/null", write, 2);
        int32_t error = call(CALL_CHDIR, (uintptr_t)directory, 0, 0, 0, 0);
        if (error < 0)
            fail(DIRECTORY, error);
        read_clock(began);
        if (is_marked && is_measured)
            MARK(0x03);
        else if (is_marked)
            MARK(0x01);
        error = call(CALL_EXECVE, (uintptr_t)file, (uintptr_t)arguments, (uintptr_t)environment, 0, 0);
        fail(EXECVE, error);
    }
    while (call(CALL_WAIT4, (uintptr_t)child, (uintptr_t)&ending.status, 0, (uintptr_t)&ending.usage, 0) !=
           child)
        ;
    if (is_marked && is_measured)
        MARK(0x04);
    else if (is_marked)
        MARK(0x02);
    ending.wall = since(began);
    int32_t failed = open_file(FAILED, O_RDONLY), record[2];
    if (failed >= 0 && read_all(failed, (char *)record, sizeof record) == sizeof record) {
        ending.step = record[0];
        ending.error = record[1];
    }
    if (failed >= 0)
        call(CALL_CLOSE, (uintptr_t)failed, 0, 0, 0, 0);
    return ending;
}

static void say_file(const char *name, const char *path) {
    static char buffer[1 << 16];
    int32_t file = open_file(path, O_RDONLY);
    int32_t size = file < 0 ? 0 : call(CALL_LSEEK, (uintptr_t)file, 0, 2, 0, 0);
    say(name);
    say(" ");
    say_number(size);
    say("\n");
    if (file >= 0)
        call(CALL_LSEEK, (uintptr_t)file, 0, 0, 0, 0);
    while (size > 0) {
        uint32_t most = (uint32_t)size < sizeof buffer ? (uint32_t)size : sizeof buffer;
        int32_t got = read_all(file, buffer, most);
        if (got <= 0)
            break;
        report(buffer, (uint32_t)got);
        size -= got;
    }
    say("\n");
}

/* The number behind `oom_kill ` in /proc/vmstat. */
static int32_t killed_for_memory(void) {
    static char text[1 << 16];
    static const char key[] = "\noom_kill ";
    int32_t file = open_file("/proc/vmstat", O_RDONLY);
    int32_t count = file < 0 ? 0 : read_all(file, text, sizeof text - 1);
    for (int32_t at = 0; at + (int32_t)sizeof key < count; at++) {
        uint32_t same = 0;
        while (key[same] && text[at + (int32_t)same] == key[same])
            same++;
        if (key[same])
            continue;
        int32_t number = 0;
        for (const char *digit = text + at + same; *digit >= '0' && *digit <= '9'; digit++)
            number = number * 10 + (*digit - '0');
        return number;
    }
    return 0;
}

static void say_ending(const struct ending *ending) {
    int32_t signal = ending->status & 0x7f;
    say(signal ? "ended signal " : "ended exit ");
    say_number(signal ? signal : (ending->status >> 8) & 0xff);
    const int32_t usage[] = {ending->usage.peak_resident_kib, ending->usage.minor_faults,
                             ending->usage.major_faults, ending->usage.voluntary_switches,
                             ending->usage.involuntary_switches};
    say("\nusage");
    for (uint32_t i = 0; i < sizeof usage / sizeof *usage; i++) {
        say(" ");
        say_number(usage[i]);
    }
    const int32_t times[] = {ending->wall.seconds,         ending->wall.nanoseconds,
                             ending->usage.user_seconds,   ending->usage.user_microseconds,
                             ending->usage.system_seconds, ending->usage.system_microseconds};
    say("\ntimes");
    for (uint32_t i = 0; i < sizeof times / sizeof *times; i++) {
        say(" ");
        say_number(times[i]);
    }
    say("\noom ");
    say_number(killed_for_memory());
    say("\n");
}

__attribute__((used, noreturn)) static void start(void) {
    call(CALL_IOPERM, REPORT_PORT, 1, 1, 0, 0);
    call(CALL_IOPERM, EXIT_PORT, 4, 1, 0, 0);
    MARK(0x05);
    say("widthwise-guest 1\nstarted\n");
    mount_at("devtmpfs", "/dev");
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("tmpfs", "/dev/shm");
    int32_t file = open_file("/job", O_RDONLY | O_CLOEXEC);
    int32_t size = file < 0 ? file : read_all(file, job, sizeof job);
    if (size < 0 || size > MOST_JOB)
        refuse("PROGRAM", "job", size < 0 ? size : -7);
    next = job;
    job_end = job + size;
    char *empty = take(), *program = take(), *directory = take(), *input = take();
    take_list(words);
    take_list(variables);
    take_large_files();
    map_shared();
    show_code();
    char *none[] = {empty, 0};
    for (int i = 0; i <= WARM_UPS; i++) {
        struct ending ending = run(empty, none, none + 1, "/", "/dev/null", 0, i == WARM_UPS);
        if (ending.step != NONE)
            refuse("EMPTY", STEPS[ending.step], ending.error);
    }
    struct ending ending = run(program, words, variables, directory, input, 1, 1);
    if (ending.step != NONE)
        refuse("PROGRAM", STEPS[ending.step], ending.error);
    /* What the program left running must not write while the report is made. */
    call(CALL_KILL, (uintptr_t)-1, SIGKILL, 0, 0, 0);
    say_ending(&ending);
    say_file("stdout", "/stdout");
    say_file("stderr", "/stderr");
    leave();
}

/* The kernel enters here with an aligned stack; nothing on it is needed. */
__asm__(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandl $-16, %esp\n\tcall start\n\thlt\n");
