/*
 * The launcher: starts runs of programs, one at a time.
 *
 * It is a process of its own, freestanding and a few pages large, for three reasons:
 *
 *  1. Linux folds the peak resident size of the old image into the new one's ru_maxrss at execve
 *     (fs/exec.c, exec_mmap: setmax_mm_hiwater_rss). Started from a large process, a small program would be
 *     reported as large as its parent. This parent is smaller than any program.
 *  2. It is the child subreaper (prctl(2)): it becomes the parent of a daemonised grandchild, waits for it,
 *     counts its resources, and kills it when the run is over.
 *  3. It outlives a killed `widthwise`: at the end of file on its socket it kills all processes of the run,
 *     restores the system's THP setting, and exits.
 *
 * protocol.h describes how requests come in and replies go out.
 */
#include <stdint.h>

#include "exit_stops.h"
#include "kernel.h"
#include "proc.h"
#include "protocol.h"

static char buffer[MOST_REQUEST_BYTES] __attribute__((aligned(16)));
static char *pointers[MOST_STRINGS];
static char child_stack[64 << 10] __attribute__((aligned(16)));

/* Shared with the child, which runs in this memory until its execve. */
static volatile struct {
    uint64_t step, error, began_ns;
    int released; /* 0 while the launcher still has to attach to it (EXIT_STOP) */
} child;

/* The cgroup in which programs are started, and whether cgroup.kill has killed it. */
static const char *group_parent;
static char group_path[4096 + 64];
static int group_fd = -1, group_kill_fd = -1, group_killed;
/* cpu.stat of the campaign's group, and pids.events of it and of its sibling in a v1 hierarchy. */
static int group_usage_fd = -1, group_event_fds[2] = {-1, -1};
/* Runs up to this number that have not begun are skipped. */
static uint64_t skip_up_to;
/* The affinity of this process. It changes when a run asks for other CPUs than the run before. */
static uint64_t affinity[CPU_WORDS];
static const char *thp_original;
/* /proc/self/clear_refs. */
static int clear_refs_fd = -1;

/* Makes a cgroup for later runs, below the campaign's. A new one after each kill: the kernel (6.12
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

/* Exits. widthwise, which made the campaign's cgroup, may be gone, so the launcher removes the cgroup. */
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
        long n = sys_send(REQUEST_SOCKET, at, size);
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
    const char *file, *directory, *in, *out, *err, *warmed;
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
    if ((request->flags & NO_ASLR) && (n = sys_personality(ADDR_NO_RANDOMIZE)) < 0)
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

static uint64_t cpu_us(const struct rusage *usage) {
    return (uint64_t)(usage->user.seconds + usage->system.seconds) * 1000000 +
           (uint64_t)(usage->user.microseconds + usage->system.microseconds);
}

static void account(struct reply *reply, const struct rusage *usage) {
    reply->user_us += (uint64_t)usage->user.seconds * 1000000 + (uint64_t)usage->user.microseconds;
    reply->system_us += (uint64_t)usage->system.seconds * 1000000 + (uint64_t)usage->system.microseconds;
    reply->minor_faults += (uint64_t)usage->minor_faults;
    reply->major_faults += (uint64_t)usage->major_faults;
    reply->voluntary_switches += (uint64_t)usage->voluntary_switches;
    reply->involuntary_switches += (uint64_t)usage->involuntary_switches;
    if ((uint64_t)usage->peak_resident_kib > reply->max_rss_kib)
        reply->max_rss_kib = (uint64_t)usage->peak_resident_kib;
    reply->reaped++;
}

/* Kills every process of the run: its process group in one call (no fork can escape: kernel/signal.c and
 * copy_process), its cgroup if there is one, and every orphan that the launcher has become the parent of. */
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

/* A run in flight. */
struct flight {
    struct reply *reply;
    uint64_t number;
    long root;                /* the program's process */
    int traced, find_parents; /* as the request asks */
    int root_ended, killing, widthwise_gone;
    uint64_t deadline;
    /* Of what the program left running: CPU time of the run's group at the program's end, whether it was
     * read, and what the group has used since. */
    uint64_t used_at_end_us, used_since_us;
    int used_is_read;
};

enum { GRACE_MS = 100, PATIENCE_MS = 5000 };

/* The CPU time of the campaign's group, which holds nothing but the run. */
static uint64_t group_used(void) {
    static char text[1024];
    if (group_usage_fd < 0)
        return 0;
    long n = sys_pread(group_usage_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return field(text, "usage_usec ");
}

static void begin_killing(struct flight *flight) {
    if (flight->used_is_read)
        flight->used_since_us = group_used() - flight->used_at_end_us;
    flight->killing = 1;
    flight->deadline = now_ns() + (uint64_t)PATIENCE_MS * 1000000;
}

/* Reaps the processes that have ended. 0: none is left. */
static int reap(struct flight *flight) {
    struct reply *reply = flight->reply;
    /* Before the reaping, so that the accounting of one process is not in another's time. */
    uint64_t woken = now_ns();
    for (;;) {
        int status, is_counted = 1;
        struct rusage usage;
        long next = -1;
        if (flight->find_parents || flight->traced) {
            struct ended ended;
            clear(&ended, sizeof ended);
            long error = sys_wait_without_reaping(&ended);
            if (error == 0 && ended.pid > 0) {
                next = ended.pid;
                int has_stopped = ended.code == CLD_TRAPPED || ended.code == CLD_STOPPED;
                if (flight->find_parents && !has_stopped)
                    reply->parents += (uint64_t)is_parent(next);
                is_counted = !flight->traced || has_stopped || is_own_child(next);
            } else if (error == 0 && flight->traced) {
                return 1; /* wait4 might reap one that has ended since */
            }
        }
        long pid = sys_wait4(next, &status, WNOHANG | WALL, &usage);
        if (pid == -EINTR)
            continue;
        if (pid == -ECHILD)
            return 0;
        if (pid <= 0)
            return 1;
        if ((status & 0xff) == 0x7f) { /* stopped: only ever reported of traced processes */
            if (flight->traced)
                exit_stops_pass(reply, pid, status);
            continue;
        }
        if (!is_counted)
            continue;
        account(reply, &usage);
        if (pid == flight->root) {
            flight->root_ended = 1;
            reply->status = (uint64_t)(unsigned)status;
            reply->ended_ns = woken;
            if (!flight->killing)
                flight->deadline = woken + (uint64_t)GRACE_MS * 1000000;
        } else if (flight->killing && flight->root_ended) {
            reply->left_over++;
            reply->left_over_us += cpu_us(&usage);
        }
    }
}

/* Takes an order, or the end of file. */
static void obey(struct flight *flight) {
    struct order order;
    if (!receive_all(ORDER_SOCKET, &order, sizeof order)) {
        flight->widthwise_gone = 1; /* the reply has no reader */
        begin_killing(flight);
        return;
    }
    if (order.skip_up_to > skip_up_to)
        skip_up_to = order.skip_up_to;
    if (order.cancel == flight->number) { /* otherwise that run ended before the order came */
        flight->reply->cancelled = 1;
        begin_killing(flight);
    }
}

/* Waits until the program has ended and no process that it started is left. */
static void watch(struct flight *flight) {
    for (;;) {
        if (!reap(flight)) {
            if (flight->widthwise_gone) {
                thp_restore();
                leave(1);
            }
            /* A process may have worked before the program's end and slept since: the smaller figure counts.
             */
            if (flight->used_is_read && flight->used_since_us < flight->reply->left_over_us)
                flight->reply->left_over_us = flight->used_since_us;
            return;
        }
        if (flight->root_ended && !flight->killing && !flight->used_is_read && group_usage_fd >= 0) {
            flight->used_is_read = 1;
            flight->used_at_end_us = group_used();
        }

        long wait_ms = flight->killing || flight->root_ended ? 5 : -1;
        if (flight->killing) {
            if (now_ns() > flight->deadline) {
                flight->reply->escaped = 1;
                return;
            }
            kill_all(flight->root_ended ? 0 : flight->root);
        } else if (flight->root_ended && now_ns() > flight->deadline) {
            /* What the program left behind has had a moment to end by itself, as the end of a pipeline does.
             */
            begin_killing(flight);
            continue;
        }

        struct pollfd poll = {ORDER_SOCKET, POLLIN, 0};
        if (sys_ppoll_with_sigchld(flight->widthwise_gone ? 0 : &poll, wait_ms) > 0)
            obey(flight);
    }
}

/* Fills in the plan's strings; 0 if the request's counts do not fit its size. */
static int unpack(struct plan *plan, const struct request *request) {
    char *at = buffer + sizeof *request, *end = buffer + request->size;
    uint64_t strings = NAMED + request->arguments + request->variables;
    if (strings + 2 > sizeof pointers / sizeof *pointers || request->arguments == 0)
        return 0;
    const char **named[NAMED] = {&plan->file, &plan->directory, &plan->in,
                                 &plan->out,  &plan->err,       &plan->warmed};
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
        if (i < NAMED) {
            *named[i] = string;
            continue;
        }
        pointers[next++] = string;
        if (i + 1 == NAMED + request->arguments) {
            pointers[next++] = 0;
            plan->envp = pointers + next;
        }
    }
    pointers[next] = 0;
    return 1;
}

/* Sets the affinity of the launcher, which every later program inherits. */
static long set_affinity(const uint64_t *cpus) {
    int pinned = 0, unchanged = 1;
    for (int i = 0; i < CPU_WORDS; i++) {
        pinned |= cpus[i] != 0;
        unchanged &= cpus[i] == affinity[i];
    }
    if (!pinned || unchanged)
        return 0;
    long n = sys_sched_setaffinity(0, sizeof affinity, cpus);
    for (int i = 0; i < CPU_WORDS && n >= 0; i++)
        affinity[i] = cpus[i];
    return n;
}

/* Reads what the campaign's cgroup has used so far: it holds nothing but runs. */
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

/* Applies what the request asks of the launcher itself. Returns the step that failed, with its error. */
static enum step prepare(struct plan *plan, const struct request *request, long *error) {
    if (request->number <= skip_up_to) {
        *error = -ECANCELED;
        return STEP_SKIPPED;
    }
    if (!unpack(plan, request)) {
        *error = -EINVAL;
        return STEP_REQUEST;
    }
    if ((*error = set_affinity(request->cpus)) < 0)
        return STEP_AFFINITY;
    if (request->thp != THP_KEEP) {
        thp_original = thp_read();
        if ((*error = thp_write(request->thp == THP_ALWAYS ? "always" : "madvise")) < 0) {
            thp_original = 0;
            return STEP_THP;
        }
    }
    return STEP_NONE;
}

/* Starts the child that becomes the program; its number, or an error. */
static long clone_child(struct plan *plan, int traced) {
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
    long pid = sys_clone3(&arguments, start, plan);
    if (pid == -ENOSYS || pid == -EPERM) { /* a kernel before 5.3, or a container that filters clone3 */
        arguments.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
        pid = sys_clone(&arguments, start, plan);
    }
    return pid;
}

/* Attaches to the child, which waits for it, and releases the child. */
static void trace(long pid) {
    long n = exit_stops_attach(pid);
    if (n < 0) {
        sys_kill(pid, SIGKILL);
        child.step = STEP_TRACE;
        child.error = (uint64_t)-n;
    }
    child.released = 1;
}

/* Maps and reads a file, so that the caches hold its pages and what the kernel knows of them
 * (docs/measuring.md, "The caches at the start of a run"). The first WARMED bytes, which a core's own caches
 * hold. */
static void warm(const char *file) {
    enum { WARMED = 1 << 20 };
    static char text[8192];
    if (!file[0] || clear_refs_fd < 0)
        return;
    long fd = sys_open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    long size = sys_lseek((int)fd, 0, 2 /* SEEK_END */);
    size = size > WARMED ? WARMED : size;
    long address = size > 0 ? sys_map_populated((int)fd, (uint64_t)size) : -EINVAL;
    /* Its memory is not touched: if the file was cut off meanwhile, that would be the launcher's end. */
    for (long at = 0; at < size && sys_pread((int)fd, text, sizeof text, at) > 0;)
        at += (long)sizeof text;
    if (address > 0 || address < -4095) {
        sys_munmap(address, (uint64_t)size);
        /* Otherwise the pages count in the launcher's peak memory, which floors that of the program. */
        sys_write(clear_refs_fd, "5", 1);
    }
    sys_close((int)fd);
}

static void run(const struct request *request) {
    struct reply reply;
    clear(&reply, sizeof reply);
    struct plan plan;
    plan.request = request;
    int traced = (request->flags & EXIT_STOP) != 0;
    if (traced)
        exit_stops_begin();
    child.step = STEP_NONE;
    child.error = 0;
    child.released = !traced;

    long error = 0;
    enum step failed = prepare(&plan, request, &error);
    if (failed != STEP_NONE) {
        refuse(&reply, failed, error);
        return;
    }

    /* The child sets PR_SET_THP_DISABLE on the memory that it shares with the launcher. It is cleared
     * afterwards: later runs would inherit it. */
    int huge_pages = (request->flags & THP_NEVER) && sys_prctl(PR_GET_THP_DISABLE, 0) == 0;
    warm(plan.warmed);
    long pid = clone_child(&plan, traced);
    if (pid < 0) {
        reply.failed_step = STEP_CLONE;
        reply.error = (uint64_t)-pid;
    } else {
        if (traced)
            trace(pid);
        struct flight flight = {
            &reply, request->number, pid, traced, (request->flags & FIND_PARENTS) != 0, 0, 0, 0, 0, 0, 0, 0};
        watch(&flight);
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

/* argv: launcher CGROUP [EVENTS [EVENTS]]: the cgroup v2 folder in which programs are started, or an empty
 * word; and files that count refused forks. */
int main_(int argc, char **argv) {
    sys_setsid();
    sys_prctl(PR_SET_NAME,
              (long)"ww-launcher"); /* otherwise its name is that of the memory file's descriptor */
    sys_prctl(PR_SET_CHILD_SUBREAPER, 1);
    sys_close_on_exec(REQUEST_SOCKET);
    sys_close_on_exec(ORDER_SOCKET);
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
    clear_refs_fd = (int)sys_open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC, 0);
    if (clear_refs_fd >= 0 && sys_write(clear_refs_fd, "5", 1) < 0) /* a kernel without PROC_PAGE_MONITOR */
        clear_refs_fd = -1;
    struct request *request = (struct request *)buffer;
    while (receive_all(REQUEST_SOCKET, buffer, sizeof *request)) {
        if (request->size < sizeof *request || request->size > sizeof buffer)
            return 1;
        if (!receive_all(REQUEST_SOCKET, buffer + sizeof *request, request->size - sizeof *request))
            break;
        run(request);
    }
    leave(0);
}
