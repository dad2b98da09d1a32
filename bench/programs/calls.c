/*
 * What system calls and their like cost: nanoseconds for each, the least of many short spells, one line for
 * each kind. Argument 1 is how many rounds of spells, argument 2 a program that ends at once, for fork and
 * exec.
 *
 * With a third argument Syscall User Dispatch is armed around this process as the x32 runtime arms it around
 * its own: every call of the process then takes the kernel's slower way in. (Children and threads are not
 * concerned: the kernel takes it from them.)
 */
#define _GNU_SOURCE /* syscall() */
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define FOUR_GIB 0x100000000
#define TOP 0x7ffffffff000
#define GIB (1UL << 30)

static int null, zero, segment, word, pipes[2], pair[2];
static const char *program;
static volatile int signals;
static char byte;

static void count(int number) {
    (void)number;
    signals++;
}

static void *nothing(void *argument) { return argument; }

static int call_getppid(void) { return syscall(SYS_getppid) < 0; }
static int call_read(void) { return read(zero, &byte, 1) != 1; }
static int call_write(void) { return write(null, &byte, 1) != 1; }
static int call_futex(void) { return syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0) != 0; }

static int call_clock(void) {
    struct timespec time;
    return clock_gettime(CLOCK_MONOTONIC, &time);
}

/* The directory it is started in, from beginning to end. */
static int call_readdir(void) {
    DIR *folder = opendir(".");
    int entries = 0;
    while (folder && readdir(folder))
        entries++;
    return !folder || closedir(folder) || entries < 2;
}

static int call_ioctl(void) {
    int waiting;
    return ioctl(pipes[0], FIONREAD, &waiting);
}

static int call_message(void) {
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1;
}

static int call_writev(void) {
    struct iovec pieces[2] = {{&byte, 1}, {&byte, 0}};
    return writev(null, pieces, 2) != 1;
}

static int call_mmap(void) {
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED || munmap(page, 4096);
}

/* A GiB: what the runtime notes of each page must not be what it costs. */
static int call_large_mmap(void) {
    void *memory = mmap(0, GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED || munmap(memory, GIB);
}

static int call_attach(void) {
    void *memory = shmat(segment, 0, 0);
    return memory == (void *)-1 || shmdt(memory);
}

static int call_signal(void) { return raise(SIGUSR1); }

static int call_exec(void) {
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, (char *)0);
        _exit(127);
    }
    int status;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static int call_thread(void) {
    pthread_t thread;
    return pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0);
}

/* One page of text such as a library has: sixteen calls, each made once. */
static int call_new_sites(void) {
    enum { SITES = 16, APART = 128, PAGE = 4096 };
    const unsigned char code[] = {0xb8,
                                  SYS_getppid & 0xff,
                                  SYS_getppid >> 8 & 0xff,
                                  SYS_getppid >> 16 & 0xff,
                                  (unsigned)SYS_getppid >> 24,
                                  0x0f,
                                  0x05,
                                  0xc3};
    unsigned char *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int wrong = page == MAP_FAILED;
    for (int i = 0; !wrong && i < SITES; i++)
        memcpy(page + 64 + i * APART, code, sizeof code);
    wrong = wrong || mprotect(page, PAGE, PROT_READ | PROT_EXEC);
    for (int i = 0; !wrong && i < SITES; i++)
        wrong = ((int (*)(void))(unsigned long)(page + 64 + i * APART))() < 0;
    return wrong || munmap(page, PAGE);
}

static const struct {
    const char *name;
    int (*call)(void);
    int times; /* in one spell: some tenths of a millisecond, less than a turn on the CPU */
} kinds[] = {
    {"getppid", call_getppid, 2000},      {"read", call_read, 2000},
    {"write", call_write, 2000},          {"futex", call_futex, 2000},
    {"clock_gettime", call_clock, 5000},  {"readdir", call_readdir, 50},
    {"ioctl", call_ioctl, 2000},          {"message", call_message, 500},
    {"writev", call_writev, 1000},        {"mmap", call_mmap, 200},
    {"large_mmap", call_large_mmap, 100}, {"attach", call_attach, 50},
    {"signal", call_signal, 200},         {"fork_exec", call_exec, 2},
    {"thread", call_thread, 10},          {"new_sites", call_new_sites, 10},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count_of_words, char **words) {
    if (count_of_words < 3)
        return 2;
    program = words[2];
    null = open("/dev/null", O_WRONLY);
    zero = open("/dev/zero", O_RDONLY);
    if (null < 0 || zero < 0 || pipe(pipes) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ||
        signal(SIGUSR1, count) == SIG_ERR)
        return 1;
    if (count_of_words > 3 && prctl(DISPATCH, 1, FOUR_GIB, TOP - FOUR_GIB, 0)) {
        perror("Syscall User Dispatch");
        return 1;
    }
    segment = shmget(IPC_PRIVATE, GIB, IPC_CREAT | SHM_NORESERVE | 0600);
    if (segment < 0) {
        perror("shmget");
        return 1;
    }
    double least[KINDS];
    for (int round = 0; round < atoi(words[1]); round++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            double began = now();
            for (int time = 0; time < kinds[kind].times; time++)
                if (kinds[kind].call()) {
                    perror(kinds[kind].name);
                    shmctl(segment, IPC_RMID, 0);
                    return 1;
                }
            double took = (now() - began) / kinds[kind].times;
            if (round == 0 || took < least[kind])
                least[kind] = took;
        }
    shmctl(segment, IPC_RMID, 0);
    for (unsigned kind = 0; kind < KINDS; kind++)
        printf("%s %.2f\n", kinds[kind].name, least[kind]);
    return 0;
}
