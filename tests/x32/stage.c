/*
 * The stage: starts one x32 program after the other in surroundings that are the same everywhere, and tells
 * what each printed and how it ended. It is the only program of ours on the oracle machine (process 1 of a
 * kernel that has x32), and the same code starts the programs through the runtime, so that nothing but the
 * runtime differs.
 *
 * One program's report is a line `@@ NAME exit STATUS BYTES` (or `signal NUMBER`, or `timeout 0`), then BYTES
 * bytes.
 *
 *   stage FOLDER SECONDS PROGRAMS NAME COMMAND...   runs one command in FOLDER; the report goes to standard
 * output /init                                           runs every line `NAME SECONDS` of /list; the report
 * goes to the second serial line
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void fail(const char *what) {
    fprintf(stderr, "stage: %s: %s\n", what, strerror(errno));
    _exit(125);
}

static void limit(int resource, rlim_t soft) {
    struct rlimit now;
    getrlimit(resource, &now);
    now.rlim_cur = now.rlim_max == RLIM_INFINITY || soft <= now.rlim_max ? soft : now.rlim_max;
    setrlimit(resource, &now);
}

/* What a program may see of who started it: made the same on every machine, then COMMAND is started. */
static void perform(const char *folder, const char *programs, int output, char *const *command) {
    if (chdir(folder) != 0)
        fail(folder);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(output, 1);
    dup2(output, 2);
    close_range(3, ~0U, 0);
    setsid();
    umask(022);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_STACK, 8 << 20);
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_MEMLOCK, 64 << 10);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (geteuid() == 0) {
        if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) != 0)
            fail("setresuid");
    }
    static char names[4096];
    snprintf(names, sizeof names, "PROGRAMS=%s", programs);
    char *environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", names, NULL};
    execve(command[0], command, environment);
    fail(command[0]);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void write_all(int to, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t wrote = write(to, bytes, count);
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            fail("write");
        if (wrote > 0)
            bytes += wrote, count -= wrote;
    }
}

/* Whatever a program left behind has come to us, its subreaper (or process 1). */
static void kill_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    for (;;) {
        FILE *children = fopen(path, "re");
        int child, found = 0;
        while (children && fscanf(children, "%d", &child) == 1) {
            kill(child, SIGKILL);
            found++;
        }
        if (children)
            fclose(children);
        if (waitpid(-1, NULL, found ? 0 : WNOHANG) <= 0)
            return;
    }
}

/* Runs one command, kills what it leaves behind, and reports. */
static void run(int report, const char *name, double seconds, const char *folder, const char *programs,
                char *const *command) {
    int output = memfd_create("output", MFD_CLOEXEC);
    fcntl(output, F_SETFL, O_APPEND);
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        perform(folder, programs, output, command);
    int wait_for = syscall(SYS_pidfd_open, pid, 0);
    double end = now() + seconds;
    struct pollfd ended = {.fd = wait_for, .events = POLLIN};
    const char *how = "timeout";
    int number = 0, status = 0;
    double left;
    while ((left = end - now()) > 0 && poll(&ended, 1, (int)(left * 1000) + 1) <= 0)
        ;
    if (waitpid(pid, &status, WNOHANG) == pid) {
        how = WIFEXITED(status) ? "exit" : "signal";
        number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    } else {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    /* It leads a session and a process group, both named by its number. */
    kill(-pid, SIGKILL);
    kill_children();
    close(wait_for);
    struct stat file;
    fstat(output, &file);
    char *text = malloc(file.st_size + 1);
    ssize_t count = pread(output, text, file.st_size, 0);
    char head[512];
    int length = snprintf(head, sizeof head, "@@ %s %s %d %zd\n", name, how, number, count);
    write_all(report, head, length);
    write_all(report, text, count);
    free(text);
    close(output);
}

static void mounted(const char *type, const char *where, const char *options) {
    mkdir(where, 0755);
    if (mount(type, where, type, 0, options) != 0)
        fail(where);
}

static void machine(void) {
    mounted("devtmpfs", "/dev", "");
    int console = open("/dev/console", O_RDWR);
    dup2(console, 0);
    dup2(console, 1);
    dup2(console, 2);
    mounted("proc", "/proc", "");
    mounted("sysfs", "/sys", "");
    mounted("tmpfs", "/tmp", "mode=1777");
    mounted("tmpfs", "/dev/shm", "mode=1777");
    mounted("mqueue", "/dev/mqueue", "");
    mounted("devpts", "/dev/pts", "mode=620,ptmxmode=666");
    int network = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq loopback = {.ifr_name = "lo"};
    ioctl(network, SIOCGIFFLAGS, &loopback);
    loopback.ifr_flags |= IFF_UP;
    if (ioctl(network, SIOCSIFFLAGS, &loopback) != 0)
        fail("lo");
    close(network);
    int report = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (report < 0)
        fail("/dev/ttyS1");
    struct termios raw;
    tcgetattr(report, &raw);
    cfmakeraw(&raw);
    cfsetspeed(&raw, B115200);
    tcsetattr(report, TCSANOW, &raw);
    FILE *list = fopen("/list", "re");
    if (list == NULL)
        fail("/list");
    char name[256];
    double seconds;
    while (fscanf(list, "%255s %lf", name, &seconds) == 2) {
        char folder[300], path[300];
        snprintf(folder, sizeof folder, "/tmp/%s", name);
        snprintf(path, sizeof path, "/programs/%s", name);
        mkdir(folder, 0777);
        chmod(folder, 0777);
        char *command[] = {path, NULL};
        run(report, name, seconds, folder, "/programs", command);
    }
    write_all(report, "@@@\n", 4);
    tcdrain(report);
    reboot(RB_AUTOBOOT);
}

int main(int count, char **words) {
    if (getpid() == 1) {
        machine();
        return 0;
    }
    if (count < 6) {
        fprintf(stderr, "usage: stage FOLDER SECONDS PROGRAMS NAME COMMAND...\n");
        return 2;
    }
    /* Whatever a program leaves behind comes to us and is killed with it. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run(1, words[4], atof(words[2]), words[1], words[3], words + 5);
    return 0;
}
