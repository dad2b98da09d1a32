/*
 * The launcher: starts runs of programs, one at a time, with nothing of ours in it.
 *
 * It is a process of its own, freestanding and a few pages large, for three reasons:
 *
 *  1. Linux folds the peak resident size of the old image into the new one's ru_maxrss at execve
 *     (fs/exec.c, exec_mmap: setmax_mm_hiwater_rss). Started from a large process, a small program would be
 *     reported as large as its parent. This parent is smaller than any program.
 *  2. It is the child subreaper (prctl(2)), so that a daemonised grandchild comes back to it, is waited for,
 *     accounted for, and killed when the run is over.
 *  3. It outlives a killed `widthwise`: at the end of file on its socket it kills what still runs, puts the
 *     system's THP setting back, and leaves.
 *
 * Protocol (native byte order, 64-bit words). Over the stream socket that is file descriptor 3 come requests:
 * a `struct request` and its strings. Each is answered, when the run and all it left behind are gone, by one
 * `struct reply`. Several requests may lie there: their runs are made one after the other, without anybody
 * being woken in between. Over the socket that is file descriptor 4 comes a `struct order` now and then: it
 * ends the run that is going on, or passes over runs that have not begun. The end of file there says that
 * widthwise is gone. crates/measure/src/launcher.rs speaks the other side.
 */
#include <stdint.h>

#include "kernel.h"

enum { SOCKET = 3, ORDERS = 4 };

/* Bits of request.flags. */
enum { FIXED_ADDRESSES = 1, THP_NEVER = 2, EXIT_STOP = 4, FIND_PARENTS = 8 };

/* What could not be done: reply.failed_step. Numbers are shared with launcher.rs. */
enum step {
    STEP_NONE,
    STEP_CLONE,
    STEP_AFFINITY,
    STEP_DIRECTORY,
    STEP_STDIN,
    STEP_STDOUT,
    STEP_STDERR,
    STEP_PERSONALITY,
    STEP_THP,
    STEP_EXEC,
    STEP_REQUEST,
    STEP_TRACE,
    STEP_PASSED_OVER,
};

struct request {
    uint64_t size;   /* of the whole request, strings included */
    uint64_t number; /* counts up */
    uint64_t flags;
    uint64_t thp;       /* 0: leave; 1: always; 2: madvise, written to the system's setting */
    uint64_t arguments; /* number of strings after the first five: argv */
    uint64_t variables; /* number of strings after those: envp */
    uint64_t
        not_before_ns; /* CLOCK_MONOTONIC: no execve before then, so that several launchers start as one */
    uint64_t cpus[CPU_WORDS]; /* all zero: leave the affinity alone */
    /* strings, each with its NUL: file, directory, stdin, stdout, stderr, argv…, envp… */
};

struct order {
    uint64_t end;       /* the run of this number, if it is going on */
    uint64_t pass_over; /* runs up to this number that have not begun */
};

struct reply {
    uint64_t failed_step;
    uint64_t error;
    uint64_t pid;
    uint64_t status;             /* as wait4 gives it */
    uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC: just before execve, just after the end was seen */
    uint64_t user_us, system_us;
    uint64_t minor_faults, major_faults;
    uint64_t voluntary_switches, involuntary_switches;
    uint64_t peak_resident_kib; /* the largest ru_maxrss among the processes reaped */
    uint64_t reaped;            /* processes that were waited for here: the program and orphans */
    uint64_t left_over;         /* of these: still running when the program had ended, and killed */
    uint64_t cut_off;           /* the run was ended early, by an order */
    uint64_t escaped;           /* processes that could not be killed in five seconds */
    uint64_t parents; /* FIND_PARENTS: of those reaped, the ones that had waited for children of theirs */
    uint64_t exit_peak_resident_kib, exit_peak_virtual_kib; /* EXIT_STOP: of the largest process */
    uint64_t exit_peak_resident_sum_kib, exit_processes;
    /* Of the campaign's group since it was made, where there is one: CPU time, and forks refused. */
    uint64_t group_user_us, group_system_us, refused_forks;
};

static char buffer[4 << 20] __attribute__((aligned(16)));
static char *pointers[1 << 16];
static char child_stack[64 << 10] __attribute__((aligned(16)));

/* Shared with the child, which runs in this memory until its execve. */
static volatile struct {
    uint64_t step, error, began_ns;
    int released; /* 0 while the launcher still has to attach to it (EXIT_STOP) */
} child;

/* The group in which programs are started, and whether everything in it has been killed at one stroke. */
static const char *group_parent;
static char group_path[4096 + 64];
static int group_fd = -1, group_kill_fd = -1, group_killed;
/* cpu.stat of the campaign's group, and pids.events of it and of its sibling in a v1 hierarchy. */
static int group_usage_fd = -1, group_event_fds[2] = {-1, -1};
/* Runs up to this number are not to be begun any more. */
static uint64_t pass_over;
/* Where this process may run. It is set when a run asks for another place than the one before. */
static uint64_t place[CPU_WORDS];
static const char *thp_original;

/* Makes a group for the runs to come, below the campaign's. A new one after each kill: the kernel (6.12
 * to 6.18 at least) kills every later child that is cloned into a group with CLONE_INTO_CGROUP once the group
 * has been killed, since it compares the group's kill count with that of the parent's own group
 * (cgroup_css_set_fork). */
static void make_group(void) {
    static uint64_t number;
    if (!group_parent)
        return;
    if (group_fd >= 0) {
        sys_close(group_fd);
        sys_close(group_kill_fd);
        sys_rmdir(group_path);
        group_fd = group_kill_fd = -1;
    }
    append_number(append(append(group_path, group_parent), "/runs"), number++);
    if (sys_mkdir(group_path, 0755) < 0)
        return;
    group_fd = (int)sys_open(group_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    static char path[sizeof group_path + 16];
    append(append(path, group_path), "/cgroup.kill");
    group_kill_fd = (int)sys_open(path, O_WRONLY | O_CLOEXEC, 0);
}

/* The end: whoever made the campaign's group may be gone already, so it is removed from here. */
__attribute__((noreturn)) static void leave(int status) {
    if (group_fd >= 0) {
        sys_rmdir(group_path);
        sys_rmdir(group_parent);
    }
    sys_exit_group(status);
}

static void send_all(const void *data, uint64_t size) {
    const char *at = data;
    while (size > 0) {
        long n = sys_send(SOCKET, at, size);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            leave(1);
        at += n;
        size -= (uint64_t)n;
    }
}

/* Returns 0 at the end of file. */
static int receive_all(int fd, void *data, uint64_t size) {
    char *at = data;
    while (size > 0) {
        long n = sys_read(fd, at, size);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return 0;
        at += n;
        size -= (uint64_t)n;
    }
    return 1;
}

static const char THP_FILE[] = "/sys/kernel/mm/transparent_hugepage/enabled";

static long thp_write(const char *word) {
    long fd = sys_open(THP_FILE, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long n = sys_write((int)fd, word, length(word));
    sys_close((int)fd);
    return n < 0 ? n : 0;
}

/* The word in brackets: `always [madvise] never`. */
static const char *thp_read(void) {
    static char text[64];
    long fd = sys_open(THP_FILE, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long n = sys_read((int)fd, text, sizeof text - 1);
    sys_close((int)fd);
    for (long i = 0; i < n; i++)
        if (text[i] == '[')
            for (long j = i + 1; j < n; j++)
                if (text[j] == ']') {
                    text[j] = 0;
                    return text + i + 1;
                }
    return 0;
}

static void thp_restore(void) {
    if (thp_original) {
        thp_write(thp_original);
        thp_original = 0;
    }
}

struct plan {
    const struct request *request;
    const char *file, *directory, *in, *out, *err;
    char **argv, **envp;
};

static void fail(enum step step, long error) {
    child.step = step;
    child.error = (uint64_t)-error;
    sys_exit_group(127);
}

static void redirect(const char *path, int flags, int fd, enum step step) {
    long opened = sys_open(path, flags, 0666);
    if (opened < 0)
        fail(step, opened);
    /* The launcher's own 0, 1 and 2 are open, so `opened` is never `fd`. dup2 clears close-on-exec. */
    long n = sys_dup2((int)opened, fd);
    if (n < 0)
        fail(step, n);
}

/* Runs in the launcher's memory, on its own stack, until execve; the launcher is suspended meanwhile
 * (CLONE_VFORK), or waits for its end (EXIT_STOP). */
static int start(void *argument) {
    const struct plan *plan = argument;
    const struct request *request = plan->request;
    long n;

    sys_setsid(); /* its own process group: killed as one, and out of reach of the terminal's Ctrl-C */
    if ((n = sys_chdir(plan->directory)) < 0)
        fail(STEP_DIRECTORY, n);
    redirect(plan->in, O_RDONLY | O_CLOEXEC, 0, STEP_STDIN);
    redirect(plan->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 1, STEP_STDOUT);
    redirect(plan->err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 2, STEP_STDERR);
    if ((request->flags & FIXED_ADDRESSES) && (n = sys_personality(ADDR_NO_RANDOMIZE)) < 0)
        fail(STEP_PERSONALITY, n);
    if ((request->flags & THP_NEVER) && (n = sys_prctl(PR_SET_THP_DISABLE, 1)) < 0)
        fail(STEP_THP, n);
    while (!child.released)
        sys_sched_yield();
    sys_no_core_files();
    sys_unblock_all_signals();
    if (request->not_before_ns)
        sleep_until(request->not_before_ns);
    child.began_ns = now_ns();
    n = sys_execve(plan->file, plan->argv, plan->envp);
    fail(STEP_EXEC, n);
    return 127;
}

static void account(struct reply *reply, const struct rusage *usage) {
    reply->user_us += (uint64_t)usage->user.seconds * 1000000 + (uint64_t)usage->user.microseconds;
    reply->system_us += (uint64_t)usage->system.seconds * 1000000 + (uint64_t)usage->system.microseconds;
    reply->minor_faults += (uint64_t)usage->minor_faults;
    reply->major_faults += (uint64_t)usage->major_faults;
    reply->voluntary_switches += (uint64_t)usage->voluntary_switches;
    reply->involuntary_switches += (uint64_t)usage->involuntary_switches;
    if ((uint64_t)usage->peak_resident_kib > reply->peak_resident_kib)
        reply->peak_resident_kib = (uint64_t)usage->peak_resident_kib;
    reply->reaped++;
}

/* The decimal after `key` at the beginning of a line, as in /proc/PID/status or cpu.stat; 0 if there is none.
 */
static uint64_t field(const char *text, const char *key) {
    for (const char *line = text; *line; line++) {
        if (line == text || line[-1] == '\n') {
            const char *a = line, *b = key;
            while (*b && *a == *b)
                a++, b++;
            if (!*b) {
                uint64_t value = 0;
                for (; *a && *a != '\n'; a++)
                    if (*a >= '0' && *a <= '9')
                        value = value * 10 + (uint64_t)(*a - '0');
                return value;
            }
        }
    }
    return 0;
}

/* Whether a process that has ended had waited for a child: every child has page faults (cminflt in
 * /proc/PID/stat, which stays until the process is reaped; its command name may hold anything). */
static int is_parent(long pid) {
    static char path[64], text[1024];
    char *at = append_number(append(path, "/proc/"), (uint64_t)pid);
    append(at, "/stat");
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, text, sizeof text - 1);
    if (fd >= 0)
        sys_close((int)fd);
    long end = n;
    while (end > 0 && text[end - 1] != ')')
        end--;
    int fields = 0;
    for (; end < n; end++)
        if (text[end] == ' ' && ++fields == 9)
            return end + 1 < n && text[end + 1] != '0';
    return 1; /* nothing is known */
}

/* A traced process stands at its exit with its memory still mapped: /proc/PID/status gives VmHWM and VmPeak
 * exactly, where the accounting at exit reads per-CPU counters that lag by up to 31 pages each. */
static void read_peaks(struct reply *reply, long pid) {
    static char path[64], text[8192];
    char *at = append(path, "/proc/");
    at = append_number(at, (uint64_t)pid);
    append(at, "/status");
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long n = sys_read((int)fd, text, sizeof text - 1);
    sys_close((int)fd);
    if (n <= 0)
        return;
    text[n] = 0;
    uint64_t resident = field(text, "VmHWM:"), virtual_ = field(text, "VmPeak:");
    if (resident == 0 && virtual_ == 0)
        return; /* another thread of the process was the last to hold the memory */
    if (resident > reply->exit_peak_resident_kib)
        reply->exit_peak_resident_kib = resident;
    if (virtual_ > reply->exit_peak_virtual_kib)
        reply->exit_peak_virtual_kib = virtual_;
    /* Threads share the memory: only the thread group's leader stands for the process. */
    if (field(text, "Tgid:") == (uint64_t)pid) {
        reply->exit_peak_resident_sum_kib += resident;
        reply->exit_processes++;
    }
}

enum {
    TRACE_OPTIONS = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                    PTRACE_O_EXITKILL
};

/* One stop of a traced process: let it go on as if nobody had looked. */
static void pass_stop(struct reply *reply, long pid, int status) {
    int signal = (status >> 8) & 0xff, event = status >> 16;
    if (event == PTRACE_EVENT_EXIT) {
        read_peaks(reply, pid);
        signal = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        /* A group stop, or a new child's first stop. */
        if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
            sys_ptrace(PTRACE_LISTEN, pid, 0, 0);
            return;
        }
        signal = 0;
    } else if (event != 0) {
        signal = 0;
    }
    sys_ptrace(PTRACE_CONT, pid, 0, signal);
}

/* Kills every process of the run: those of its group at once (a fork cannot slip through, kernel/signal.c
 * and copy_process), the cgroup's where we have one, and every orphan that came to us. */
static void kill_all(long root) {
    if (group_kill_fd >= 0) {
        sys_write(group_kill_fd, "1", 1);
        group_killed = 1;
    }
    if (root > 0) {
        sys_kill(-root, SIGKILL);
        sys_kill(root, SIGKILL);
    }
    static char text[4096];
    long fd = sys_open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long n;
    uint64_t pid = 0;
    while ((n = sys_read((int)fd, text, sizeof text)) > 0)
        for (long i = 0; i < n; i++)
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (uint64_t)(text[i] - '0');
            } else if (pid > 0) {
                sys_kill(-(long)pid,
                         SIGKILL); /* fails unless it leads a group: then one call ends them all */
                sys_kill((long)pid, SIGKILL);
                pid = 0;
            }
    sys_close((int)fd);
}

/* Waits until the program has ended and nothing it started is left. */
static void watch(struct reply *reply, uint64_t number, long root, int traced, int find_parents) {
    enum { GRACE_MS = 100, PATIENCE_MS = 5000 };
    int root_ended = 0, killing = 0, orphaned = 0;
    uint64_t deadline = 0;
    for (;;) {
        /* Taken before the reaping, so that the accounting of one process is not in another's time. */
        uint64_t woken = now_ns();
        for (;;) {
            int status;
            struct rusage usage;
            long next = -1;
            if (find_parents) {
                struct ended ended;
                clear(&ended, sizeof ended);
                if (sys_wait_without_reaping(&ended) == 0 && ended.pid > 0) {
                    next = ended.pid;
                    reply->parents += (uint64_t)is_parent(next);
                }
            }
            long pid = sys_wait4(next, &status, WNOHANG | WALL, &usage);
            if (pid == -EINTR)
                continue;
            if (pid == -ECHILD) {
                if (orphaned) {
                    thp_restore();
                    leave(1);
                }
                return;
            }
            if (pid <= 0)
                break;
            if ((status & 0xff) == 0x7f) { /* stopped: only ever reported of traced processes */
                if (traced)
                    pass_stop(reply, pid, status);
                continue;
            }
            account(reply, &usage);
            if (pid == root) {
                root_ended = 1;
                reply->status = (uint64_t)(unsigned)status;
                reply->ended_ns = woken;
                if (!killing)
                    deadline = woken + (uint64_t)GRACE_MS * 1000000;
            } else if (killing && root_ended) {
                reply->left_over++;
            }
        }

        long wait_ms = -1;
        if (killing) {
            if (now_ns() > deadline) {
                reply->escaped = 1;
                return;
            }
            kill_all(root_ended ? 0 : root);
            wait_ms = 5;
        } else if (root_ended) {
            /* What the program leaves behind has a moment to end by itself, as the end of a pipeline does. */
            if (now_ns() > deadline) {
                killing = 1;
                deadline = now_ns() + (uint64_t)PATIENCE_MS * 1000000;
                continue;
            }
            wait_ms = 5;
        }

        struct pollfd poll = {ORDERS, POLLIN, 0};
        if (sys_ppoll_with_sigchld(orphaned ? 0 : &poll, wait_ms) > 0) {
            struct order order;
            if (!receive_all(ORDERS, &order, sizeof order)) {
                orphaned = 1; /* widthwise is gone: nobody will read the reply */
            } else {
                if (order.pass_over > pass_over)
                    pass_over = order.pass_over;
                if (order.end != number)
                    continue; /* it had ended before the order came */
                reply->cut_off = 1;
            }
            killing = 1;
            deadline = now_ns() + (uint64_t)PATIENCE_MS * 1000000;
        }
    }
}

/* Fills in the plan's strings; 0 if the request is not what it says it is. */
static int unpack(struct plan *plan, const struct request *request) {
    char *at = buffer + sizeof *request, *end = buffer + request->size;
    uint64_t strings = 5 + request->arguments + request->variables;
    if (strings + 2 > sizeof pointers / sizeof *pointers || request->arguments == 0)
        return 0;
    const char **named[] = {&plan->file, &plan->directory, &plan->in, &plan->out, &plan->err};
    uint64_t next = 0;
    plan->argv = pointers;
    for (uint64_t i = 0; i < strings; i++) {
        char *string = at;
        if (i + 1 == strings && at < end && !end[-1])
            at = end - 1; /* the padding, which is long */
        while (at < end && *at)
            at++;
        if (at >= end)
            return 0;
        at++;
        if (i < 5) {
            *named[i] = string;
            continue;
        }
        pointers[next++] = string;
        if (i + 1 == 5 + request->arguments) {
            pointers[next++] = 0;
            plan->envp = pointers + next;
        }
    }
    pointers[next] = 0;
    return 1;
}

/* Goes to these CPUs, and with it every program to come. */
static long move_to(const uint64_t *cpus) {
    int pinned = 0, there = 1;
    for (int i = 0; i < CPU_WORDS; i++) {
        pinned |= cpus[i] != 0;
        there &= cpus[i] == place[i];
    }
    if (!pinned || there)
        return 0;
    long n = sys_sched_setaffinity(0, sizeof place, cpus);
    for (int i = 0; i < CPU_WORDS && n >= 0; i++)
        place[i] = cpus[i];
    return n;
}

/* What the campaign's group has used so far: nothing but runs is in it. */
static void read_group(struct reply *reply) {
    static char text[1024];
    if (group_usage_fd >= 0) {
        long n = sys_pread(group_usage_fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = 0;
        reply->group_user_us = field(text, "user_usec ");
        reply->group_system_us = field(text, "system_usec ");
    }
    for (int i = 0; i < 2; i++)
        if (group_event_fds[i] >= 0) {
            long n = sys_pread(group_event_fds[i], text, sizeof text - 1, 0);
            text[n > 0 ? n : 0] = 0;
            reply->refused_forks += field(text, "max ");
        }
}

static void refuse(struct reply *reply, enum step step, long error) {
    reply->failed_step = step;
    reply->error = (uint64_t)-error;
    read_group(reply);
    send_all(reply, sizeof *reply);
}

static void run(const struct request *request) {
    struct reply reply;
    clear(&reply, sizeof reply);
    struct plan plan;
    plan.request = request;
    int traced = (request->flags & EXIT_STOP) != 0;
    child.step = STEP_NONE;
    child.error = 0;
    child.released = !traced;

    long n;
    if (request->number <= pass_over) {
        refuse(&reply, STEP_PASSED_OVER, -ECANCELED);
        return;
    }
    if (!unpack(&plan, request)) {
        refuse(&reply, STEP_REQUEST, -EINVAL);
        return;
    }
    if ((n = move_to(request->cpus)) < 0) {
        refuse(&reply, STEP_AFFINITY, n);
        return;
    }
    if (request->thp) {
        thp_original = thp_read();
        if ((n = thp_write(request->thp == 1 ? "always" : "madvise")) < 0) {
            thp_original = 0;
            refuse(&reply, STEP_THP, n);
            return;
        }
    }

    /* The child sets it on the memory that it shares with the launcher: left there, every later run would
     * have it too. */
    int huge_pages = (request->flags & THP_NEVER) && sys_prctl(PR_GET_THP_DISABLE, 0) == 0;

    struct clone_arguments arguments;
    clear(&arguments, sizeof arguments);
    arguments.flags = CLONE_VM | (traced ? 0 : CLONE_VFORK);
    arguments.exit_signal = SIGCHLD;
    arguments.stack = (uint64_t)child_stack;
    arguments.stack_size = sizeof child_stack;
    if (group_killed) {
        group_killed = 0;
        make_group();
    }
    if (group_fd >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (uint64_t)group_fd;
    }
    long pid = sys_clone3(&arguments, start, &plan);
    if (pid == -ENOSYS || pid == -EPERM) { /* a kernel before 5.3, or a container that filters clone3 */
        arguments.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
        pid = sys_clone(&arguments, start, &plan);
    }
    if (pid < 0) {
        reply.failed_step = STEP_CLONE;
        reply.error = (uint64_t)-pid;
    } else {
        if (traced) {
            n = sys_ptrace(PTRACE_SEIZE, pid, 0, TRACE_OPTIONS);
            if (n < 0) {
                sys_kill(pid, SIGKILL);
                child.step = STEP_TRACE;
                child.error = (uint64_t)-n;
            }
            child.released = 1;
        }
        watch(&reply, request->number, pid, traced, (request->flags & FIND_PARENTS) != 0);
        reply.pid = (uint64_t)pid;
        reply.failed_step = child.step;
        reply.error = child.error;
        reply.began_ns = child.began_ns;
    }
    if (huge_pages)
        sys_prctl(PR_SET_THP_DISABLE, 0);
    thp_restore();
    read_group(&reply);
    send_all(&reply, sizeof reply);
}

/* argv: launcher CGROUP [EVENTS [EVENTS]]: a cgroup v2 folder in which programs are started, or nothing where
 * there is none; and files that say how many forks were refused. */
int main_(int argc, char **argv) {
    sys_setsid();
    sys_prctl(PR_SET_NAME,
              (long)"ww-launcher"); /* it was started from a memory file, whose number it would show */
    sys_prctl(PR_SET_CHILD_SUBREAPER, 1);
    sys_close_on_exec(SOCKET);
    sys_close_on_exec(ORDERS);
    sys_prepare_sigchld();
    if (argc > 1 && argv[1][0] && length(argv[1]) < 4096) {
        static char path[4096 + 64];
        group_parent = argv[1];
        make_group();
        append(append(path, group_parent), "/cpu.stat");
        group_usage_fd = (int)sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    }
    for (int i = 0; i < 2 && i + 2 < argc; i++)
        group_event_fds[i] = (int)sys_open(argv[i + 2], O_RDONLY | O_CLOEXEC, 0);
    struct request *request = (struct request *)buffer;
    while (receive_all(SOCKET, buffer, sizeof *request)) {
        if (request->size < sizeof *request || request->size > sizeof buffer)
            return 1;
        if (!receive_all(SOCKET, buffer + sizeof *request, request->size - sizeof *request))
            break;
        run(request);
    }
    leave(0);
}
