/*
 * What each system call costs that can be made many times over without harm: nanoseconds, the least of many
 * short spells, a line for each: its name, what it answered, its time. Argument 1 is how many rounds of
 * spells, argument 2 how many calls a spell has; with a third argument Syscall User Dispatch is armed as the
 * x32 runtime arms it. With no numbers it counts instead: every spell lies between two markers that an
 * emulator sees (tests/x32/cost/count.c), spells without a call first, and a line for each has the name and
 * the answer.
 *
 * Each call has a site of its own, with the number loaded just before it, as a library's have. Most work on
 * next to nothing, so that what a call costs whatever it does is not lost in what it does.
 */
#define _GNU_SOURCE /* the calls' structures */
#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/random.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define FOUR_GIB 0x100000000
#define TOP 0x7ffffffff000
#define NONE (-1)

static int null, zero, file, folder, terminal, network, out, in, polled, timer_file, event, watcher, self,
    pipes[2], pair[2];
static char page[4096] __attribute__((aligned(4096)));
static char text[4096];
static struct stat status;
static struct statfs system_status;
static struct statx extended;
static struct timespec now_is, nothing, moment = {0, 1};
static struct itimerspec timer_value;
static struct itimerval interval;
static struct timeval day, no_time;
static struct rlimit limit;
static struct rusage usage;
static struct pollfd waiting;
static struct epoll_event ready, wanted;
static struct iovec piece = {page, 1}, theirs = {text, 1};
static struct msghdr sent = {.msg_iov = &piece, .msg_iovlen = 1};
static struct msghdr received = {.msg_iov = &piece, .msg_iovlen = 1};
static struct mmsghdr several = {{.msg_iov = &piece, .msg_iovlen = 1}, 0};
static struct sockaddr_in address;
static socklen_t length, option_length = sizeof(int);
static int number, word, queue, semaphores, memory_segment, queue_id, key;
static uint64_t mask, old_mask, old_mask_narrow;
static stack_t stack;
static siginfo_t info;
static struct sigevent notice = {.sigev_notify = SIGEV_NONE};
static int timer;
static struct mq_attr attributes;
static struct __user_cap_header_struct capability_head = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct capabilities[2];
static struct sembuf operation;
static struct {
    long type;
    char text[8];
} letter = {1, ""};
static aio_context_t context;
static struct timex clock_state;
static fd_set set;
static loff_t at;
static struct {
    unsigned size, policy;
    uint64_t flags;
    int nice;
    unsigned priority;
    uint64_t rest[5];
} scheduling;
static void *robust_head;
static size_t robust_size;
static void *page_list[1] = {page};
static struct {
    uint32_t handler, flags, restorer;
    uint64_t mask;
    uint64_t rest[2];
} action;
static pid_t own;
static struct { uint64_t flags, mode, resolve; } how;
static struct ifreq interface;
static struct ifconf interfaces;
static struct winsize size;
static struct termios settings;
static long long sectors;
static uint64_t event_value = 1;

static inline __attribute__((always_inline)) long make(const int number, uintptr_t a, uintptr_t b,
                                                       uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) {
    unsigned long long result;
    register unsigned long long fourth __asm__("r10") = d;
    register unsigned long long fifth __asm__("r8") = e;
    register unsigned long long sixth __asm__("r9") = f;
    __asm__ volatile("mov %1, %%eax; syscall"
                     : "=a"(result)
                     : "i"(number), "D"((unsigned long long)a), "S"((unsigned long long)b),
                       "d"((unsigned long long)c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return (long)result;
}

#define FIRST_SIX(a, b, c, d, e, f, ...)                                                                     \
    (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d), (uintptr_t)(e), (uintptr_t)(f)
#define SIX(...) FIRST_SIX(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL(name, ...) NAMED(name, name, __VA_ARGS__)
#define NAMED(label, name, ...)                                                                              \
    static long call_##label(void) { return make(SYS_##name, SIX(__VA_ARGS__)); }

#include "every_call.h"

#undef NAMED
#define NAMED(label, name, ...) {#label, call_##label},
static const struct {
    const char *name;
    long (*call)(void);
} calls[] = {
#include "every_call.h"
};
#define CALLS (int)(sizeof calls / sizeof *calls)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int need(int descriptor, const char *what) {
    if (descriptor < 0) {
        perror(what);
        exit(1);
    }
    return descriptor;
}

static void prepare(void) {
    own = getpid();
    null = need(open("/dev/null", O_RDWR), "/dev/null");
    zero = need(open("/dev/zero", O_RDWR), "/dev/zero");
    file = need(open(".", O_RDWR | O_TMPFILE, 0600), "a file");
    folder = need(open(".", O_RDONLY | O_DIRECTORY), ".");
    watcher = need(open("/dev/urandom", O_RDONLY), "/dev/urandom");
    terminal = need(posix_openpt(O_RDWR | O_NOCTTY), "a terminal");
    network = need(socket(AF_INET, SOCK_DGRAM, 0), "a socket");
    polled = need(epoll_create1(0), "epoll");
    timer_file = need(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd");
    need(pipe(pipes), "a pipe");
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "a pair of sockets");
    need(fcntl(pair[1], F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    need(fcntl(network, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    /* Datagrams to a port without a listener are made, sent and dropped. */
    out = need(socket(AF_INET, SOCK_DGRAM, 0), "a socket");
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    length = sizeof address;
    need(bind(network, (void *)&address, sizeof address), "bind");
    need(getsockname(network, (void *)&address, &length), "getsockname");
    need(connect(out, (void *)&address, sizeof address), "connect");
    need(epoll_ctl(polled, EPOLL_CTL_ADD, pipes[0], &wanted), "epoll_ctl");
    semaphores = need(semget(IPC_PRIVATE, 1, 0600), "semget");
    memory_segment = need(shmget(IPC_PRIVATE, 4096, 0600), "shmget");
    queue_id = need(msgget(IPC_PRIVATE, 0600), "msgget");
    key = 0x57574747;
    char name[40];
    snprintf(name, sizeof name, "/every-call-%d", own);
    queue = need(mq_open(name, O_RDWR | O_CREAT, 0600, NULL), "mq_open");
    mq_unlink(name);
    need(syscall(SYS_timer_create, CLOCK_MONOTONIC, &notice, &timer), "timer_create");
    need(syscall(SYS_io_setup, 8, &context), "io_setup");
    waiting = (struct pollfd){.fd = pipes[0], .events = POLLIN};
    strcpy(interface.ifr_name, "lo");
    static struct ifreq all[8];
    interfaces = (struct ifconf){.ifc_len = sizeof all, .ifc_req = all};
    clock_state.modes = 0;
    getrlimit(RLIMIT_CORE, &limit);
}

static void tidy(void) {
    semctl(semaphores, 0, IPC_RMID);
    shmctl(memory_segment, IPC_RMID, 0);
    msgctl(queue_id, IPC_RMID, 0);
}

/* Does nothing: `nopl 0x5744NNNN(%rax)`. */
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #number ", 0, 0x44, 0x57" : : : "memory")
#define SPELLS 5
#define CALLS_IN_A_SPELL 10
#define CALLS_BEFORE 20

static long no_call(void) { return 0; }

static __attribute__((noinline)) void count(const char *name, long (*call)(void)) {
    long answer = 0;
    for (int time = 0; time < CALLS_BEFORE; time++)
        answer = call();
    for (int spell = 0; spell < SPELLS; spell++) {
        MARK(1);
        for (int time = 0; time < CALLS_IN_A_SPELL; time++)
            call();
        MARK(2);
    }
    printf("%s %ld\n", name, answer < 0 ? answer : 0);
}

int main(int words_count, char **words) {
    if (words_count < 3) {
        prepare();
        count("", no_call);
        for (int i = 0; i < CALLS; i++)
            count(calls[i].name, calls[i].call);
        tidy();
        return 0;
    }
    static double least[sizeof calls / sizeof *calls];
    static long answers[sizeof calls / sizeof *calls];
    int times = atoi(words[2]);
    prepare();
    if (words_count > 3 && prctl(DISPATCH, 1, FOUR_GIB, TOP - FOUR_GIB, 0)) {
        perror("Syscall User Dispatch");
        return 1;
    }
    for (int round = 0; round < atoi(words[1]); round++)
        for (int i = 0; i < CALLS; i++) {
            /* What traps first, and what is met with cold caches, is not what a call costs. */
            answers[i] = calls[i].call();
            calls[i].call();
            double began = now();
            for (int time = 0; time < times; time++)
                calls[i].call();
            double took = (now() - began) / times;
            if (round == 0 || took < least[i])
                least[i] = took;
        }
    for (int i = 0; i < CALLS; i++)
        printf("%s %ld %.2f\n", calls[i].name, answers[i] < 0 ? answers[i] : 0, least[i]);
    tidy();
    return 0;
}
