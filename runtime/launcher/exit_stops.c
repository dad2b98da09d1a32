#include "exit_stops.h"

#include "kernel.h"
#include "proc.h"

/* Processes whose first thread was read at its exit. If another thread calls execve, the kernel first ends
 * that one, and the process goes on under its number: it is then read once more. */
static struct counted {
    long pid;
    uint64_t resident_kib;
    int goes_on;
} counted[64];
static unsigned last_counted;

enum {
    TRACE_OPTIONS = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                    PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL
};

void exit_stops_begin(void) { clear(counted, sizeof counted); }

long exit_stops_attach(long pid) { return sys_ptrace(PTRACE_SEIZE, pid, 0, TRACE_OPTIONS); }

static struct counted *find_counted(long pid, int goes_on) {
    for (unsigned i = 0; i < sizeof counted / sizeof *counted; i++)
        if (counted[i].pid == pid && counted[i].goes_on == goes_on)
            return &counted[i];
    return 0;
}

/* Adds a process that ends, by its largest image. */
static void count_process(struct reply *reply, long pid, uint64_t resident_kib) {
    struct counted *known = find_counted(pid, 1);
    if (known) {
        known->goes_on = 0;
        if (resident_kib > known->resident_kib) {
            reply->exit_max_rss_sum_kib += resident_kib - known->resident_kib;
            known->resident_kib = resident_kib;
        }
        return;
    }
    reply->exit_max_rss_sum_kib += resident_kib;
    reply->exit_processes++;
    enum { PLACES = sizeof counted / sizeof *counted };
    for (unsigned i = 0; i < PLACES; i++) {
        struct counted *place = &counted[++last_counted % PLACES];
        if (!place->goes_on) {
            place->pid = pid;
            place->resident_kib = resident_kib;
            return;
        }
    }
}

/* A traced process stands at its exit with its memory still mapped: /proc/PID/status gives VmHWM and VmPeak
 * exactly, where the accounting at exit reads per-CPU counters that lag by up to 31 pages each. */
static void read_peaks(struct reply *reply, long pid) {
    const char *text = status_of(pid);
    uint64_t resident = field(text, "VmHWM:"), virtual_ = field(text, "VmPeak:");
    if (resident == 0 && virtual_ == 0)
        return; /* another thread of the process was the last to hold the memory */
    if (resident > reply->exit_max_rss_kib)
        reply->exit_max_rss_kib = resident;
    if (virtual_ > reply->exit_peak_virtual_kib)
        reply->exit_peak_virtual_kib = virtual_;
    /* Threads share the memory: only the thread group's leader stands for the process. */
    if (field(text, "Tgid:") == (uint64_t)pid)
        count_process(reply, pid, resident);
}

void exit_stops_pass(struct reply *reply, long pid, int status) {
    int signal = (status >> 8) & 0xff, event = status >> 16;
    if (event == PTRACE_EVENT_EXIT) {
        read_peaks(reply, pid);
        signal = 0;
    } else if (event == PTRACE_EVENT_EXEC) {
        /* ptrace(2): the thread has the number of its process now, and the message is the one it had. */
        unsigned long former = 0;
        sys_ptrace(PTRACE_GETEVENTMSG, pid, 0, (long)&former);
        struct counted *known = find_counted(pid, 0);
        if (former != (unsigned long)pid && known)
            known->goes_on = 1;
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
