/*
 * seconds: 400
 *
 * Every call that blocks, made from three kinds of places (one without an earlier call; one whose
 * number is loaded just before the call; one behind which the result is compared), and interrupted in each of
 * four ways: by a handler with SA_RESTART, by one without, by a signal that ends the process, by a stop that
 * is continued. The outcome is one line for each call: what is the same from all places is printed once. A
 * blocking ioctl of the i386 entry: blocking_ioctls.c.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>

/* What the two processes share. */
static struct shared {
    volatile int ready, handled, done, error;
    volatile long long result;
    volatile int cell, owned;
    sigset_t mask;
    uint64_t pair[2];
    struct timespec time, until, later;
    struct timeval timeval;
    struct itimerspec often;
    struct epoll_event event;
    struct pollfd one;
    struct sembuf operation;
    struct {
        long type;
        char text[8];
    } message;
    struct iovec vector;
    struct msghdr header;
    struct mmsghdr batch;
    struct flock lock;
    struct sockaddr_un name;
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } waiter;
    struct io_event completion;
    aio_context_t context;
    fd_set set;
    loff_t offset;
    char byte, room[1 << 16], path[32];
} * shared;

/* One call: what it is made with, what the caller does first, and how it is let return. */
static struct call {
    long number;
    long long arguments[6];
    int ends[2], others[2], id;
    void (*inside)(void);
    void (*release)(void);
    pid_t helper, caller;
} call;

#define CALL(NUMBER, ...)                                                                                    \
    do {                                                                                                     \
        long long given_[] = {__VA_ARGS__};                                                                  \
        call.number = SYS_##NUMBER;                                                                          \
        memset(call.arguments, 0, sizeof call.arguments);                                                    \
        memcpy(call.arguments, given_, sizeof given_);                                                       \
    } while (0)
#define AT(what) ((long long)(size_t)&shared->what)

static void by_itself(void) {}
static void by_writing(void) { write(call.ends[1], "12345678", 8); }
static void by_reading(void) {
    fcntl(call.ends[0], F_SETFL, O_NONBLOCK);
    while (read(call.ends[0], shared->room, sizeof shared->room) > 0)
        ;
}
static void by_waking(void) {
    shared->cell = 1;
    syscall(SYS_futex, &shared->cell, FUTEX_WAKE, 1, NULL, NULL, 0);
}
static void by_helper(void) { write(call.others[1], "x", 1); }
static void by_unlocking(void) {
    flock(call.ends[0], LOCK_UN);
    fcntl(call.ends[0], F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK});
}
static void by_signal(void) { kill(call.caller, SIGRTMIN); }
static void by_handler(void) { kill(call.caller, SIGUSR2); }
static void by_connecting(void) {
    connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&shared->name, sizeof shared->name);
}
static void by_accepting(void) { close(accept(call.ends[0], NULL, NULL)); }
static void by_opening(void) { open(shared->path, O_RDWR | O_NONBLOCK); }
static void by_making(void) { close(open("made", O_RDWR | O_CREAT | O_TRUNC, 0600)), unlink("made"); }
static void by_timer(void) {
    timerfd_settime(call.ends[0], 0, &(struct itimerspec){.it_value = {0, 1}}, NULL);
}
static void by_sending(void) { msgsnd(call.id, &shared->message, 1, 0); }
static void by_receiving(void) { msgrcv(call.id, shared->room, 8000, 0, IPC_NOWAIT); }
static void by_raising(void) { semctl(call.id, 0, SETVAL, 1); }
static void by_queueing(void) { mq_send(call.id, "x", 1, 0); }
static void by_taking(void) { mq_receive(call.id, shared->room, 8, NULL); }

static void data(void) { pipe(call.ends), call.release = by_writing; }
static void streams(void) { socketpair(AF_UNIX, SOCK_STREAM, 0, call.ends), call.release = by_writing; }
static void full(void) {
    fcntl(call.ends[1], F_SETFL, O_NONBLOCK);
    while (write(call.ends[1], shared->room, sizeof shared->room) > 0)
        ;
    while (write(call.ends[1], shared->room, 1) > 0)
        ;
    fcntl(call.ends[1], F_SETFL, 0);
    call.release = by_reading;
}
static void vectors(void) {
    shared->vector = (struct iovec){&shared->byte, 1};
    shared->header = (struct msghdr){.msg_iov = &shared->vector, .msg_iovlen = 1};
    shared->batch = (struct mmsghdr){.msg_hdr = shared->header};
}
static void timed(void) {
    shared->time = (struct timespec){0, 300000000};
    shared->later = (struct timespec){20, 0};
    shared->timeval = (struct timeval){20, 0};
    clock_gettime(CLOCK_MONOTONIC, &shared->until);
    shared->until.tv_sec += 20;
    shared->pair[0] = (uint64_t)(size_t)&shared->mask, shared->pair[1] = 8;
}
static void soon(void) {
    timed();
    shared->until.tv_sec -= 19;
}
static void ready(void) {
    data(), timed();
    shared->one = (struct pollfd){.fd = call.ends[0], .events = POLLIN};
    FD_SET(call.ends[0], &shared->set);
    call.id = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(call.id, EPOLL_CTL_ADD, call.ends[0], &event);
}
static void waker(void) { timed(), call.release = by_waking; }
static void sleeper(void) { timed(), call.release = by_itself; }
static void waits_in_vector(void) {
    waker();
    shared->waiter.address = (uint64_t)(size_t)&shared->cell;
    shared->waiter.flags = 2;
}

/* A process that has taken something, and holds it until it is released. */
static void held_by_helper(void (*take)(void)) {
    pipe(call.others);
    call.release = by_helper;
    call.helper = fork();
    if (call.helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take();
        shared->cell = 1;
        read(call.others[0], shared->room, 1);
        if (shared->owned != 0)
            syscall(SYS_futex, &shared->owned, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
        _exit(7);
    }
    while (shared->cell == 0)
        poll(NULL, 0, 1);
}
static void takes_cell(void) { shared->owned = getpid(); }
static void takes_record(void) { fcntl(open("lock", O_RDWR), F_SETLK, &shared->lock); }
static void owned(void) { timed(), held_by_helper(takes_cell); }
static void file(void) {
    unlink("lock");
    call.ends[0] = open("lock", O_RDWR | O_CREAT, 0600);
    call.ends[1] = open("lock", O_RDWR);
    call.release = by_unlocking;
    shared->lock = (struct flock){.l_type = F_WRLCK};
}
static void of_file(void) { file(), flock(call.ends[0], LOCK_EX); }
static void of_record(void) { file(), held_by_helper(takes_record); }
static void of_description(void) { file(), fcntl(call.ends[0], F_OFD_SETLK, &shared->lock); }
static void child_in_caller(void) {
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        read(call.others[0], shared->room, 1);
        _exit(7);
    }
}
static void child(void) { pipe(call.others), call.release = by_helper, call.inside = child_in_caller; }
static void listening(int backlog) {
    shared->name = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "socket"};
    unlink("socket");
    call.ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(call.ends[0], (struct sockaddr *)&shared->name, sizeof shared->name);
    listen(call.ends[0], backlog);
    call.release = by_connecting;
}
static void crowded(void) {
    listening(0);
    by_connecting();
    call.release = by_accepting;
    call.others[0] = socket(AF_UNIX, SOCK_STREAM, 0);
}
static void semaphore(void) {
    timed();
    call.id = semget(IPC_PRIVATE, 1, 0600);
    shared->operation = (struct sembuf){0, -1, 0};
    call.release = by_raising;
}
static void messages(int taken) {
    call.id = msgget(IPC_PRIVATE, 0600);
    shared->message.type = 1;
    while (taken && msgsnd(call.id, &shared->message, 8, IPC_NOWAIT) == 0)
        ;
    call.release = taken ? by_receiving : by_sending;
}
static void queue(int taken) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mq_unlink("/blocking");
    call.id = mq_open("/blocking", O_RDWR | O_CREAT, 0600, &attributes);
    timed();
    clock_gettime(CLOCK_REALTIME, &shared->until);
    shared->until.tv_sec += 20;
    if (taken)
        by_queueing();
    call.release = taken ? by_taking : by_queueing;
}
static void named(void) {
    strcpy(shared->path, "fifo");
    unlink("fifo");
    mkfifo("fifo", 0600);
    call.release = by_opening;
}
static void terminal(void) {
    struct termios raw;
    call.ends[1] = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(call.ends[1]), unlockpt(call.ends[1]);
    call.ends[0] = open(ptsname(call.ends[1]), O_RDWR | O_NOCTTY);
    tcgetattr(call.ends[0], &raw);
    cfmakeraw(&raw);
    tcsetattr(call.ends[0], TCSANOW, &raw);
    call.release = by_writing;
}
static void event(void) { call.ends[0] = call.ends[1] = eventfd(0, 0), call.release = by_writing; }
static void timer(void) { call.ends[0] = timerfd_create(CLOCK_MONOTONIC, 0), call.release = by_timer; }
static void notified(void) {
    call.ends[0] = inotify_init1(0);
    inotify_add_watch(call.ends[0], ".", IN_CREATE);
    call.release = by_making;
}
static void blocks_signal(void) { sigprocmask(SIG_BLOCK, &shared->mask, NULL); }
static void signalled(void) {
    timed();
    sigaddset(&shared->mask, SIGRTMIN);
    call.inside = blocks_signal, call.release = by_signal;
}
static void suspended(void) { timed(), call.release = by_handler; }
static void two_pipes(void) { data(), pipe(call.others); }
static void file_to_pipe(void) {
    call.id = open("lock", O_RDWR | O_CREAT, 0600);
    write(call.id, "x", 1);
    data(), full();
}
/* A poll of the pipe, in a context of the caller's own. */
static void submits(void) {
    static struct iocb request;
    struct iocb *requests[] = {&request};
    request = (struct iocb){.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = call.ends[0], .aio_buf = POLLIN};
    shared->context = 0;
    syscall(SYS_io_setup, 4, &shared->context);
    syscall(SYS_io_submit, shared->context, 1, requests);
    call.arguments[0] = shared->context;
}
static void asynchronous(void) { data(), timed(), call.inside = submits; }

/* name; what is prepared; the call */
#define CALLS                                                                                                \
    ROW(read_pipe, data(), CALL(read, call.ends[0], AT(byte), 1))                                            \
    ROW(readv_pipe, (data(), vectors()), CALL(readv, call.ends[0], AT(vector), 1))                           \
    ROW(preadv2_pipe, (data(), vectors()), CALL(preadv2, call.ends[0], AT(vector), 1, -1))                   \
    ROW(write_pipe, (data(), full()), CALL(write, call.ends[1], AT(byte), 1))                                \
    ROW(writev_pipe, (data(), full(), vectors()), CALL(writev, call.ends[1], AT(vector), 1))                 \
    ROW(pwritev2_pipe, (data(), full(), vectors()), CALL(pwritev2, call.ends[1], AT(vector), 1, -1))         \
    ROW(read_tty, terminal(), CALL(read, call.ends[0], AT(byte), 1))                                         \
    ROW(readv_tty, (terminal(), vectors()), CALL(readv, call.ends[0], AT(vector), 1))                        \
    ROW(read_socket, streams(), CALL(read, call.ends[0], AT(byte), 1))                                       \
    ROW(write_socket, (streams(), full()), CALL(write, call.ends[1], AT(byte), 1))                           \
    ROW(recvfrom, streams(), CALL(recvfrom, call.ends[0], AT(byte), 1))                                      \
    ROW(recvmsg, (streams(), vectors()), CALL(recvmsg, call.ends[0], AT(header)))                            \
    ROW(recvmmsg, (streams(), vectors()), CALL(recvmmsg, call.ends[0], AT(batch), 1))                        \
    ROW(sendto, (streams(), full()), CALL(sendto, call.ends[1], AT(byte), 1))                                \
    ROW(sendmsg, (streams(), full(), vectors()), CALL(sendmsg, call.ends[1], AT(header)))                    \
    ROW(sendmmsg, (streams(), full(), vectors()), CALL(sendmmsg, call.ends[1], AT(batch), 1))                \
    ROW(accept, listening(1), CALL(accept, call.ends[0]))                                                    \
    ROW(accept4, listening(1), CALL(accept4, call.ends[0]))                                                  \
    ROW(connect, crowded(), CALL(connect, call.others[0], AT(name), sizeof shared->name))                    \
    ROW(poll, ready(), CALL(poll, AT(one), 1, 20000))                                                        \
    ROW(poll_forever, ready(), CALL(poll, AT(one), 1, -1))                                                   \
    ROW(ppoll, ready(), CALL(ppoll, AT(one), 1, AT(later), AT(mask), 8))                                     \
    ROW(select, ready(), CALL(select, call.ends[0] + 1, AT(set), 0, 0, AT(timeval)))                         \
    ROW(pselect6, ready(), CALL(pselect6, call.ends[0] + 1, AT(set), 0, 0, AT(later), AT(pair)))             \
    ROW(epoll_wait, ready(), CALL(epoll_wait, call.id, AT(event), 1, 20000))                                 \
    ROW(epoll_pwait, ready(), CALL(epoll_pwait, call.id, AT(event), 1, 20000, AT(mask), 8))                  \
    ROW(epoll_pwait2, ready(), CALL(epoll_pwait2, call.id, AT(event), 1, AT(later), AT(mask), 8))            \
    ROW(futex_wait, waker(), CALL(futex, AT(cell), FUTEX_WAIT))                                              \
    ROW(futex_wait_timed, waker(), CALL(futex, AT(cell), FUTEX_WAIT, 0, AT(later)))                          \
    ROW(futex_wait_bitset, waker(), CALL(futex, AT(cell), FUTEX_WAIT_BITSET, 0, AT(until), 0, -1))           \
    ROW(futex_lock_pi, owned(), CALL(futex, AT(owned), FUTEX_LOCK_PI))                                       \
    ROW(futex_waitv, waits_in_vector(), CALL(futex_waitv, AT(waiter), 1, 0, AT(until), CLOCK_MONOTONIC))     \
    ROW(nanosleep, sleeper(), CALL(nanosleep, AT(time), AT(later)))                                          \
    ROW(clock_nanosleep, sleeper(), CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, AT(time)))                     \
    ROW(clock_nanosleep_until, (soon(), call.release = by_itself),                                           \
        CALL(clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, AT(until)))                                    \
    ROW(wait4, child(), CALL(wait4, -1))                                                                     \
    ROW(waitid, child(), CALL(waitid, P_ALL, 0, AT(room), WEXITED))                                          \
    ROW(semop, semaphore(), CALL(semop, call.id, AT(operation), 1))                                          \
    ROW(semtimedop, semaphore(), CALL(semtimedop, call.id, AT(operation), 1, AT(later)))                     \
    ROW(msgrcv, messages(0), CALL(msgrcv, call.id, AT(room), 8))                                             \
    ROW(msgsnd, messages(1), CALL(msgsnd, call.id, AT(message), 8))                                          \
    ROW(mq_timedreceive, queue(0), CALL(mq_timedreceive, call.id, AT(room), 8, 0, AT(until)))                \
    ROW(mq_timedsend, queue(1), CALL(mq_timedsend, call.id, AT(room), 1, 0, AT(until)))                      \
    ROW(flock, of_file(), CALL(flock, call.ends[1], LOCK_EX))                                                \
    ROW(lock_of_record, of_record(), CALL(fcntl, call.ends[1], F_SETLKW, AT(lock)))                          \
    ROW(lock_of_description, of_description(), CALL(fcntl, call.ends[1], F_OFD_SETLKW, AT(lock)))            \
    ROW(open_fifo, named(), CALL(open, AT(path), O_RDONLY))                                                  \
    ROW(openat_fifo, named(), CALL(openat, AT_FDCWD, AT(path), O_WRONLY))                                    \
    ROW(eventfd, event(), CALL(read, call.ends[0], AT(room), 8))                                             \
    ROW(timerfd, timer(), CALL(read, call.ends[0], AT(room), 8))                                             \
    ROW(inotify, notified(), CALL(read, call.ends[0], AT(room), 4096))                                       \
    ROW(rt_sigtimedwait, signalled(), CALL(rt_sigtimedwait, AT(mask), 0, AT(later), 8))                      \
    ROW(pause, call.release = by_handler, CALL(pause, 0))                                                    \
    ROW(rt_sigsuspend, suspended(), CALL(rt_sigsuspend, AT(mask), 8))                                        \
    ROW(splice, two_pipes(), CALL(splice, call.ends[0], 0, call.others[1], 0, 1, 0))                         \
    ROW(tee, two_pipes(), CALL(tee, call.ends[0], call.others[1], 1, 0))                                     \
    ROW(vmsplice, (data(), full(), vectors()), CALL(vmsplice, call.ends[1], AT(vector), 1, 0))               \
    ROW(sendfile, file_to_pipe(), CALL(sendfile, call.ends[1], call.id, AT(offset), 1))                      \
    ROW(io_getevents, asynchronous(), CALL(io_getevents, 0, 1, 1, AT(completion), AT(later)))                \
    ROW(io_pgetevents, asynchronous(), CALL(io_pgetevents, 0, 1, 1, AT(completion), AT(later), AT(pair)))

#define ROW(name, prepared, made)                                                                            \
    static void prepare_##name(void) {                                                                       \
        prepared;                                                                                            \
        made;                                                                                                \
    }
CALLS
#undef ROW
#define ROW(name, prepared, made) {#name, prepare_##name},
static const struct row {
    const char *name;
    void (*prepare)(void);
} rows[] = {CALLS};

/* A function that makes the call of one number. */
typedef long long function(long long, long long, long long, long long, long long, long long);
enum { FRESH, MOVED, COMPARED, PLACES };
static function *place(int kind) {
    unsigned char code[] = {0x49, 0x89, 0xca, 0xb8, 0,    0,    0,    0,    0xeb, 0,
                            0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0xc3};
    memcpy(code + 4, &(uint32_t){call.number}, 4);
    if (kind != COMPARED)
        memcpy(code + 8, (unsigned char[]){0x0f, 0x05, 0xc3}, 3);
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + 64, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    return (function *)(page + 64);
}

enum { RESTARTED, INTERRUPTED, KILLED, STOPPED, WAYS };

static void handler(int number) { shared->handled += number == SIGUSR1; }

/* Calls that are errors, or are interrupted at once, before the one that blocks: then its place is a known
 * one. */
static void known(function *made) {
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, NULL);
    for (int i = 0; i < 16; i++)
        made(-1, -1, -1, -1, -1, -1);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static void caller(int way, int kind) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    action.sa_flags = way == RESTARTED ? SA_RESTART : 0;
    if (way <= INTERRUPTED)
        sigaction(SIGUSR1, &action, NULL);
    if (call.inside)
        call.inside();
    function *made = place(kind);
    if (kind != FRESH)
        known(made);
    const long long *with = call.arguments;
    shared->ready = 1;
    long long result = made(with[0], with[1], with[2], with[3], with[4], with[5]);
    shared->error = result < 0 && result > -4096 ? -result : 0;
    shared->done = 1;
    _exit(0);
}

static int state(void) {
    char path[32], line[400] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", call.caller);
    int fd = open(path, O_RDONLY);
    read(fd, line, sizeof line - 1);
    close(fd);
    char *end = strrchr(line, ')');
    return end ? end[2] : 'Z';
}
/* Until it is in that state, or has ended, three times in a row. */
static void until(char wanted) {
    for (int seen = 0, now; seen < 3; seen = now == wanted || now == 'Z' ? seen + 1 : 0) {
        poll(NULL, 0, 1);
        now = state();
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A sleep ends by itself, on a busy machine before it is looked at. Only one that is stopped has to end; the
 * others take as long as can be. Returns when it may have ended. */
static double end_of_sleep(int way) {
    if (call.release == by_itself && way == STOPPED)
        return seconds() + (double)shared->time.tv_nsec * 1e-9;
    if (call.release == by_itself) {
        shared->time = shared->later;
        shared->until.tv_sec += 19;
    }
    return seconds() + 1e9;
}

/* One call, once: in its own process, which tells on `out`. */
static void scene(const struct row *row, int way, int kind, int out) {
    char text[64];
    row->prepare();
    shared->cell = 0;
    double may_end = end_of_sleep(way);
    call.caller = fork();
    if (call.caller == 0)
        caller(way, kind);
    while (!shared->ready)
        poll(NULL, 0, 1);
    until('S');
    kill(call.caller, way == KILLED ? SIGTERM : way == STOPPED ? SIGSTOP : SIGUSR1);
    if (way == STOPPED) {
        until('T');
        kill(call.caller, SIGCONT);
    }
    while (way <= INTERRUPTED && !shared->handled && !shared->done)
        poll(NULL, 0, 1);
    until('S');
    int early = shared->done && seconds() < may_end, status;
    if (way != KILLED)
        call.release();
    waitpid(call.caller, &status, 0);
    int size = WIFSIGNALED(status) ? snprintf(text, sizeof text, "SIG%s", sigabbrev_np(WTERMSIG(status)))
                                   : snprintf(text, sizeof text, "%s%s", early ? "" : "goes on, ",
                                              shared->error ? error_name(shared->error) : "done");
    write(out, text, size + 1);
    if (call.number == SYS_semop || call.number == SYS_semtimedop)
        semctl(call.id, 0, IPC_RMID);
    if (call.number == SYS_msgrcv || call.number == SYS_msgsnd)
        msgctl(call.id, IPC_RMID, NULL);
    _exit(0);
}

static void outcome(const struct row *row, int way, int kind, char text[64]) {
    int out[2], status;
    memset(shared, 0, sizeof *shared);
    pipe(out);
    strcpy(text, "none");
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        scene(row, way, kind, out[1]);
    }
    waitpid(child, &status, 0);
    close(out[1]);
    read(out[0], text, 64);
    close(out[0]);
}

int main(int count, char **words) {
    static const char *const ways[] = {"SA_RESTART", "without", "killed", "stopped"};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
        char line[400] = "";
        if (count > 1 && strcmp(words[1], row->name) != 0)
            continue;
        for (int way = 0; way < WAYS; way++) {
            char text[PLACES][64];
            for (int kind = 0; kind < PLACES; kind++)
                outcome(row, way, kind, text[kind]);
            sprintf(line + strlen(line), "; %s: %s", ways[way], text[FRESH]);
            for (int kind = MOVED; kind < PLACES; kind++)
                if (strcmp(text[kind], text[FRESH]) != 0)
                    sprintf(line + strlen(line), " (but %s)", text[kind]);
        }
        say("%s%s", row->name, line);
    }
    mq_unlink("/blocking");
    return 0;
}
