// System calls, page faults and signals.
#define _GNU_SOURCE
#include "operation.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long result;
static int file = -1;

#define SYSTEM(name, before, after, statement)                                                               \
    DECLARE(name);                                                                                           \
    LOOP(name) {                                                                                             \
        REPEAT { statement; }                                                                                \
    }                                                                                                        \
    const struct operation operation_##name = {#name, micro_##name, 1, NULL, before, after, 0};

static const char *open_file(const char *path, int flags) {
    file = open(path, flags);
    return file < 0 ? failure("open") : NULL;
}

static void close_file(void) { close(file); }

// glibc has not cached getpid's answer since 2.25; syscall() is certain to make the call.
SYSTEM(getpid, NULL, NULL, result = syscall(SYS_getpid))
// The call of `perf bench syscall basic`: it looks up the parent, and costs more.
SYSTEM(getppid, NULL, NULL, result = syscall(SYS_getppid))

SYSTEM(clock_gettime, NULL, NULL, struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now))

// The program's own file, as a file of some depth that certainly exists.
static const char *path;

static const char *prepare_path(void) {
    path = beside("micro");
    return access(path, R_OK) < 0 ? failure("access") : NULL;
}

SYSTEM(open_close, prepare_path, NULL, close(open(path, O_RDONLY)))

static struct stat status;
SYSTEM(stat, prepare_path, NULL, result = stat(path, &status))

static const char *prepare_null(void) { return open_file("/dev/null", O_WRONLY); }

static const char *prepare_zero(void) { return open_file("/dev/zero", O_RDONLY); }

static char byte;
SYSTEM(fstat, prepare_null, close_file, result = fstat(file, &status))
SYSTEM(read_1, prepare_zero, close_file, result = read(file, &byte, 1))
SYSTEM(write_1, prepare_null, close_file, result = write(file, &byte, 1))

enum { POLLED = 10 };

static struct pollfd polled[POLLED];
static int ends[2];

// A pipe that stays empty: poll looks at all of them.
static const char *prepare_poll(void) {
    if (pipe(ends) < 0)
        return failure("pipe");
    for (int i = 0; i < POLLED; i++)
        polled[i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    return NULL;
}

static void close_ends(void) {
    close(ends[0]);
    close(ends[1]);
}

SYSTEM(poll_10, prepare_poll, close_ends, result = poll(polled, POLLED, 0))

enum { PAGE = 4096, PAGES = 256, MAPPED = 16 * PAGE };

DECLARE(mmap);
LOOP(mmap) {
    REPEAT {
        void *mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) {
            fault = failure("mmap");
            return;
        }
        munmap(mapped, MAPPED);
    }
}
const struct operation operation_mmap = {"mmap", micro_mmap, 1, NULL, NULL, NULL, 0};

static volatile char *pages;

static const char *prepare_pages(void) {
    pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return failure("mmap");
    // A huge page would be one fault for all.
    madvise((void *)pages, PAGES * PAGE, MADV_NOHUGEPAGE);
    return NULL;
}

static void unmap_pages(void) { munmap((void *)pages, PAGES * PAGE); }

DECLARE(page_fault);
LOOP(page_fault) {
    REPEAT {
        for (int i = 0; i < PAGES; i++)
            pages[i * PAGE] = 1;
        // One call for 256 faults.
        madvise((void *)pages, PAGES * PAGE, MADV_DONTNEED);
    }
}
const struct operation operation_page_fault = {"page_fault",  micro_page_fault, PAGES, NULL,
                                               prepare_pages, unmap_pages,      0};

// A read fault maps the pages around it that are in the page cache, 64 KiB (fault_around_bytes, mm/memory.c):
// one access for each of these.
enum { AROUND = 65536, FAULTS = 64 };

static const char *prepare_file(void) {
    char name[] = "/tmp/widthwise-micro-XXXXXX";
    file = mkstemp(name);
    if (file < 0)
        return failure("mkstemp");
    unlink(name);
    static char block[AROUND];
    memset(block, 1, sizeof block);
    for (int i = 0; i < FAULTS; i++)
        if (write(file, block, sizeof block) != (ssize_t)sizeof block)
            return failure("write");
    return NULL;
}

DECLARE(page_fault_file);
LOOP(page_fault_file) {
    REPEAT {
        volatile char *mapped = mmap(NULL, FAULTS * AROUND, PROT_READ, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED) {
            fault = failure("mmap");
            return;
        }
        for (int i = 0; i < FAULTS; i++)
            byte = mapped[i * AROUND];
        munmap((void *)mapped, FAULTS * AROUND);
    }
}
const struct operation operation_page_fault_file = {
    "page_fault_file", micro_page_fault_file, FAULTS, NULL, prepare_file, close_file, 0};

static volatile sig_atomic_t delivered;

static void handler(int signal) {
    (void)signal;
    delivered = 1;
}

static struct sigaction action;
static struct sigaction before;
static pid_t self;

static const char *prepare_signal(void) {
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    self = getpid();
    return sigaction(SIGUSR1, &action, &before) < 0 ? failure("sigaction") : NULL;
}

static void restore_signal(void) { sigaction(SIGUSR1, &before, NULL); }

SYSTEM(signal_install, prepare_signal, restore_signal, sigaction(SIGUSR1, &action, NULL))
SYSTEM(signal_deliver, prepare_signal, restore_signal, kill(self, SIGUSR1))
