/*
 * Calls of the last years, which the recorded kernel has not: built for x32 and for x86-64, both say the same
 * on one kernel, which may have a call or not. Numbers are those of all ABIs; x32's carry bit 30.
 */
#include "../transcript.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#ifdef __ILP32__
#define NUMBER_OF(number) (0x40000000 + (number))
#else
#define NUMBER_OF(number) (number)
#endif

static long long result_of(const char *what, long number, long long a, long long b, long long c, long long d,
                           long long e, long long f) {
    long long result;
    register long long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long long)NUMBER_OF(number)), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    say("%s: %s", what, result < 0 && result > -4096 ? error_name((int)-result) : "ok");
    return result;
}
#define MADE(number, a, b, c, d, e, f)                                                                       \
    result_of(#number " " #a " " #b " " #c " " #d, number, (long long)(a), (long long)(b), (long long)(c),   \
              (long long)(d), (long long)(e), (long long)(f))
#define AT(object) ((size_t)(object))

enum {
    FACCESSAT2 = 439,
    PROCESS_MRELEASE = 448,
    MEMFD_SECRET = 447,
    FUTEX_WAITV = 449,
    SET_HOME_NODE = 450,
    CACHESTAT = 451,
    FCHMODAT2 = 452,
    MAP_SHADOW_STACK = 453,
    FUTEX_WAKE2 = 454,
    FUTEX_WAIT2 = 455,
    FUTEX_REQUEUE2 = 456,
    STATMOUNT = 457,
    LISTMOUNT = 458,
    LSM_GET = 459,
    LSM_SET = 460,
    LSM_LIST = 461,
    MSEAL = 462,
    SETXATTRAT = 463,
    GETXATTRAT = 464,
    LISTXATTRAT = 465,
    REMOVEXATTRAT = 466,
    OPEN_TREE_ATTR = 467,
    FILE_GETATTR = 468,
    FILE_SETATTR = 469,
    LISTNS = 470,
    RSEQ_SLICE_YIELD = 471,
    QUOTACTL_FD = 443,
    MOUNT_SETATTR = 442,
    ARCH_PRCTL = 158,
    ARCH_SHSTK_ENABLE = 0x5001
};

static volatile uint32_t cell, other;
static void *waker(void *nothing) {
    usleep(50000);
    cell = 1;
    syscall(SYS_futex, &cell, FUTEX_WAKE, 8, NULL, NULL, 0);
    return nothing;
}

static void futexes(void) {
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } waiters[2] = {{0, AT(&other), 2, 0}, {0, AT(&cell), 2, 0}};
    struct timespec until;
    pthread_t thread;
    clock_gettime(CLOCK_MONOTONIC, &until);
    MADE(FUTEX_WAITV, AT(waiters), 2, 0, AT(&until), CLOCK_MONOTONIC, 0);
    until.tv_sec += 20;
    pthread_create(&thread, NULL, waker, NULL);
    VALUE(MADE(FUTEX_WAITV, AT(waiters), 2, 0, AT(&until), CLOCK_MONOTONIC, 0));
    pthread_join(thread, NULL);
    MADE(FUTEX_WAITV, AT(waiters), 2, 0, AT(&until), CLOCK_MONOTONIC, 0);
    MADE(FUTEX_WAITV, AT(waiters), 200, 0, 0, 0, 0);
    MADE(FUTEX_WAITV, 8, 1, 0, 0, 0, 0);
    cell = 0;
    pthread_create(&thread, NULL, waker, NULL);
    MADE(FUTEX_WAIT2, AT(&cell), 0, 0xffffffff, 2, AT(&until), CLOCK_MONOTONIC);
    pthread_join(thread, NULL);
    VALUE(MADE(FUTEX_WAKE2, AT(&cell), 0xffffffff, 1, 2, 0, 0));
    MADE(FUTEX_REQUEUE2, AT(waiters), 0, 0, 0, 0, 0);
}

static void files(void) {
    struct stat data;
    struct {
        uint64_t offset, length;
    } range = {0, 4096};
    uint64_t cached[5] = {0}, attributes[4] = {0};
    struct {
        uint64_t value;
        uint32_t size, flags;
    } extended = {AT("text"), 4, 0};
    char room[64] = "";
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(file, room, sizeof room);
    MADE(FACCESSAT2, AT_FDCWD, AT("file"), R_OK | W_OK, AT_EACCESS, 0, 0);
    MADE(FACCESSAT2, file, AT(""), R_OK, AT_EMPTY_PATH, 0, 0);
    MADE(FACCESSAT2, AT_FDCWD, AT("none"), R_OK, 0, 0, 0);
    MADE(FACCESSAT2, AT_FDCWD, AT("file"), R_OK, 1 << 30, 0, 0);
    MADE(FACCESSAT2, AT_FDCWD, 8, R_OK, 0, 0, 0);
    MADE(FCHMODAT2, AT_FDCWD, AT("file"), 0640, AT_SYMLINK_NOFOLLOW, 0, 0);
    stat("file", &data);
    say("mode %o", data.st_mode & 0777);
    MADE(FCHMODAT2, file, AT(""), 0600, AT_EMPTY_PATH, 0, 0);
    MADE(FCHMODAT2, AT_FDCWD, AT("none"), 0600, 0, 0, 0);
    MADE(CACHESTAT, file, AT(&range), AT(cached), 0, 0, 0);
    say("pages of it in memory: %llu", (unsigned long long)cached[0]);
    MADE(CACHESTAT, file, 8, AT(cached), 0, 0, 0);
    MADE(CACHESTAT, -1, AT(&range), AT(cached), 0, 0, 0);
    MADE(SETXATTRAT, AT_FDCWD, AT("file"), 0, AT("user.name"), AT(&extended), sizeof extended);
    extended.value = AT(room), extended.size = sizeof room;
    MADE(GETXATTRAT, AT_FDCWD, AT("file"), 0, AT("user.name"), AT(&extended), sizeof extended);
    TEXT(room);
    MADE(LISTXATTRAT, AT_FDCWD, AT("file"), 0, AT(room), sizeof room, 0);
    MADE(REMOVEXATTRAT, AT_FDCWD, AT("file"), 0, AT("user.name"), 0, 0);
    MADE(FILE_GETATTR, AT_FDCWD, AT("file"), AT(attributes), 24, 0, 0);
    MADE(FILE_SETATTR, AT_FDCWD, AT("none"), AT(attributes), 24, 0, 0);
    MADE(OPEN_TREE_ATTR, AT_FDCWD, AT("none"), 0, 0, 0, 0);
    MADE(MOUNT_SETATTR, AT_FDCWD, AT("none"), 0, AT(attributes), 32, 0);
    MADE(QUOTACTL_FD, -1, 0, 0, 0, 0, 0);
    close(file);
    unlink("file");
}

static void mounts_and_modules(void) {
    struct {
        uint32_t size, spare;
        uint64_t id, parameter;
    } request = {24, 0, ~0ULL, 0};
    uint64_t found[64] = {0}, ids[8];
    uint32_t size = sizeof found;
    MADE(LISTMOUNT, AT(&request), AT(found), 8, 0, 0, 0);
    request.id = found[0], request.parameter = 2;
    MADE(STATMOUNT, AT(&request), AT(found), sizeof found, 0, 0, 0);
    MADE(STATMOUNT, AT(&request), 8, sizeof found, 0, 0, 0);
    MADE(STATMOUNT, 8, AT(found), sizeof found, 0, 0, 0);
    MADE(LSM_LIST, AT(ids), AT(&size), 0, 0, 0, 0);
    MADE(LSM_GET, 100, AT(found), AT(&size), 0, 0, 0);
    MADE(LSM_SET, 100, AT(found), 8, 0, 0, 0);
    MADE(LISTNS, 8, 8, 1, 0, 0, 0);
    MADE(RSEQ_SLICE_YIELD, 0, 0, 0, 0, 0, 0);
    MADE(PROCESS_MRELEASE, -1, 0, 0, 0, 0, 0);
    MADE(SET_HOME_NODE, 0x10000, 4096, 0, 0, 0, 0);
}

static int call(unsigned char *at) { return ((int (*)(void))at)(); }

static void memory(void) {
    enum { SIZE = 4096 };
    const int number = NUMBER_OF(110);
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
    int right = 0, parent = getppid();
    memcpy(code + 1, &number, sizeof number);
    long long secret = MADE(MEMFD_SECRET, 0, 0, 0, 0, 0, 0);
    if (secret >= 0) {
        ftruncate((int)secret, SIZE);
        char *text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)secret, 0);
        IS(text != MAP_FAILED);
        strcpy(text, "secret");
        /* A call whose text the runtime reads, and one that it hands on. */
        IS(open(text, O_RDONLY) == -1);
        say("open: %s", error_name(errno));
        IS(write(-1, text, 1) == -1);
    }
    MADE(MEMFD_SECRET, 1 << 30, 0, 0, 0, 0, 0);
    /* Sealed text: it cannot be made writable any more, by whomever. */
    unsigned char *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8; i++)
        memcpy(page + 64 * i, code, sizeof code);
    mprotect(page, SIZE, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 20; i++)
        right += call(page + i % 4 * 64) == parent;
    MADE(MSEAL, AT(page), SIZE, 0, 0, 0, 0);
    RESULT(mprotect(page, SIZE, PROT_READ | PROT_WRITE));
    RESULT(munmap(page, SIZE));
    for (int i = 0; i < 40; i++)
        right += call(page + i % 8 * 64) == parent;
    MADE(MSEAL, 1, SIZE, 0, 0, 0, 0);
    /* More sites, for which the places of those would be used again. */
    for (int i = 0; i < 5000; i++) {
        unsigned char *more = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const int other_number = NUMBER_OF(39);
        memcpy(code + 1, &other_number, sizeof other_number);
        unsigned char *place = more + 64 + i % 3000;
        memcpy(place, code, sizeof code);
        mprotect(more, SIZE, PROT_READ | PROT_EXEC);
        for (int again = 0; again < 3; again++)
            right += call(place) == getpid();
        munmap(more, SIZE);
    }
    for (int i = 0; i < 40; i++)
        right += call(page + i % 8 * 64) == parent;
    VALUE(right);
}

/* A descriptor of the sender comes with each message (Linux 6.5), if its control message has room. */
static void descriptors_of_senders(void) {
    enum { PASS_PIDFD = 76, PIDFD = 4 };
    const int rooms[] = {CMSG_SPACE(12) + sizeof(int),
                         CMSG_SPACE(12) + CMSG_LEN(0) - 1,
                         CMSG_SPACE(12) + CMSG_LEN(0),
                         CMSG_SPACE(12) + CMSG_LEN(0) + 3,
                         CMSG_SPACE(12) + CMSG_SPACE(sizeof(int)),
                         CMSG_LEN(0),
                         CMSG_LEN(sizeof(int)) - 1};
    int ends[2], yes = 1;
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    RESULT(setsockopt(ends[1], SOL_SOCKET, PASS_PIDFD, &yes, sizeof yes));
    for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        char byte = 'x', room[128] __attribute__((aligned(8)));
        struct iovec part = {&byte, 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = rooms[i]};
        int credentials = rooms[i] >= (int)CMSG_SPACE(12), before = dup(0);
        setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &credentials, sizeof credentials);
        close(before);
        send(ends[0], &byte, 1, 0);
        RESULT(recvmsg(ends[1], &message, 0));
        say("room %u: flags %#x", i, message.msg_flags);
        for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
            say("  type %d, %d bytes", one->cmsg_type, (int)(one->cmsg_len - CMSG_LEN(0)));
            if (one->cmsg_type == PIDFD && one->cmsg_len >= CMSG_LEN(sizeof(int)))
                close(*(int *)CMSG_DATA(one));
        }
        int after = dup(0);
        IS(after == before);
        close(after);
    }
    close(ends[0]);
    close(ends[1]);
}

/* Where no control message comes, none is cut off, whatever the socket asks for. And a pidfd that cannot be
 * written is none. */
static void room_of_messages(void) {
    enum { PASS_PIDFD = 76 };
    int ends[2], yes = 1;
    char byte = 'x';
    struct iovec part = {&byte, 1};
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    setsockopt(ends[1], SOL_SOCKET, SO_PASSSEC, &yes, sizeof yes);
    for (int i = 0; i < 4; i++) {
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = i == 0 ? NULL : (void *)8,
                                 .msg_controllen = i < 2 ? 0 : 100};
        if (i == 3)
            setsockopt(ends[1], SOL_SOCKET, PASS_PIDFD, &yes, sizeof yes);
        send(ends[0], &byte, 1, 0);
        int before = dup(0);
        close(before);
        RESULT(recvmsg(ends[1], &message, 0));
        int after = dup(0);
        say("%d: flags %#x, %d bytes, %d new", i, message.msg_flags, (int)message.msg_controllen,
            after - before);
        close(after);
    }
    close(ends[0]);
    close(ends[1]);
}

/* AT_EXECVE_CHECK: the words count. */
static void checks_of_programs(const char *path) {
    enum { CHECK = 0x10000, LONG = 120000, MANY = 80 };
    static char word[LONG + 1], *many[MANY + 1];
    char *few[] = {"x", NULL}, *lost[] = {(char *)8, NULL};
    memset(word, 'a', LONG);
    for (int i = 0; i < MANY; i++)
        many[i] = word;
    RESULT(syscall(SYS_execveat, AT_FDCWD, path, few, few, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, path, many, few, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, path, few, many, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, path, lost, few, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, path, few, (char **)8, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", many, few, CHECK));
    RESULT(syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", few, few, CHECK));
}

enum { SITES = 64, ROUNDS = 40, BETWEEN = 64 };

static double time_of_calls(unsigned char *page) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < SITES * ROUNDS; i++)
        ((int (*)(void))(page + i % SITES * BETWEEN))();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}

/* Calls of a page that cannot be rewritten cost no more than those of one that is never tried. */
static int cost_no_more(unsigned char *page, unsigned char *never) {
    double least[2] = {1e18, 1e18};
    /* The least time of several: the machine has other work. */
    for (int i = 0; i < 10 || (i < 400 && least[1] >= 8 * least[0]); i++) {
        double time = time_of_calls(i % 2 ? page : never);
        least[i % 2] = time < least[i % 2] ? time : least[i % 2];
    }
    return least[1] < 8 * least[0];
}

/* Writable text; sealed text; and text of a process that may make none writable. That cannot be undone. */
static void text_that_stays(void) {
    enum { PAGE = 4096, SEAL = 462, MDWE = 65 };
    unsigned char code[] = {0xb8, SYS_getppid & 0xff, 0, 0, SYS_getppid >> 24, 0x0f, 0x05, 0xc3};
    unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3 * SITES; i++)
        memcpy(pages + i * BETWEEN, code, sizeof code);
    mprotect(pages, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_EXEC);
    syscall(NUMBER_OF(SEAL), pages + PAGE, PAGE, 0);
    IS(cost_no_more(pages + PAGE, pages));
    prctl(MDWE, 1, 0, 0, 0);
    IS(cost_no_more(pages + 2 * PAGE, pages));
}

/* The name of a process whose program is a file in memory: since Linux 6.14 that file's. */
static void name_of_program_in_memory(const char *path) {
    static char content[1 << 22];
    struct utsname machine;
    int major = 0, minor = 0, from = open(path, O_RDONLY), memory = memfd_create("program", MFD_CLOEXEC);
    ssize_t size = read(from, content, sizeof content);
    close(from);
    uname(&machine);
    sscanf(machine.release, "%d.%d", &major, &minor);
    if (major < 6 || (major == 6 && minor < 14) || write(memory, content, size) != size)
        return;
    pid_t child = fork();
    if (child == 0) {
        fexecve(memory, (char *[]){"x", "name", NULL}, environ);
        _exit(1);
    }
    ended("in memory", child);
    close(memory);
}

int main(int count, char **words) {
    if (count > 1) {
        char name[17] = "";
        prctl(PR_GET_NAME, name);
        TEXT(name);
        return 0;
    }
    name_of_program_in_memory(words[0]);
    futexes();
    files();
    mounts_and_modules();
    memory();
    descriptors_of_senders();
    room_of_messages();
    checks_of_programs(words[0]);
    MADE(ARCH_PRCTL, ARCH_SHSTK_ENABLE, 1, 0, 0, 0, 0);
    MADE(472, 0, 0, 0, 0, 0, 0);
    text_that_stays();
    return 0;
}
