/*
 * A signal for a process that waits for its vfork's child: what kills does so at once, what has a handler
 * waits until the child is gone, and so does what is blocked.
 */
#include "transcript.h"
#include <poll.h>

static int lives[2], ends[2];

static void handler(int number) { say("handler of %s", sigabbrev_np(number)); }

/* The child of the vfork reports that it runs, and stays until it is released. */
static void parent(void) {
    char byte;
    pid_t child = vfork();
    if (child == 0) {
        write(lives[1], "x", 1);
        read(ends[0], &byte, 1);
        _exit(3);
    }
    int status;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    print_ended("child", status);
    _exit(4);
}

static int state_of(pid_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    fgets(line, sizeof line, file);
    fclose(file);
    return strrchr(line, ')')[2];
}

/* Whether the process ends before its vfork's child does, and how. */
static void sent(const char *what, int signal, int blocked, void (*action)(int)) {
    char byte;
    int status = 0;
    pipe(lives), pipe(ends);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signal);
        sigprocmask(SIG_BLOCK, blocked ? &set : NULL, NULL);
        sigaction(signal, &(struct sigaction){.sa_handler = action}, NULL);
        parent();
    }
    read(lives[0], &byte, 1);
    kill(pid, signal);
    poll(NULL, 0, 300);
    pid_t early = waitpid(pid, &status, WNOHANG);
    say("%s: %s", what, early == pid ? "ends at once" : state_of(pid) == 'T' ? "stops" : "waits");
    if (early != pid) {
        write(ends[1], "xx", 2);
        if (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
            say("stopped by %s", sigabbrev_np(WSTOPSIG(status)));
            kill(pid, SIGCONT);
            waitpid(pid, &status, 0);
        }
    } else {
        write(ends[1], "x", 1);
    }
    print_ended(what, status);
    close(lives[0]), close(lives[1]), close(ends[0]), close(ends[1]);
}

int main(void) {
    sent("SIGTERM", SIGTERM, 0, SIG_DFL);
    sent("SIGTERM, blocked", SIGTERM, 1, SIG_DFL);
    sent("SIGTERM, ignored", SIGTERM, 0, SIG_IGN);
    sent("SIGTERM, with a handler", SIGTERM, 0, handler);
    sent("SIGKILL", SIGKILL, 0, SIG_DFL);
    sent("SIGALRM", SIGALRM, 0, SIG_DFL);
    sent("SIGRTMIN", SIGRTMIN, 0, SIG_DFL);
    sent("SIGCHLD", SIGCHLD, 0, SIG_DFL);
    sent("SIGTSTP", SIGTSTP, 0, SIG_DFL);
    sent("SIGSTOP", SIGSTOP, 0, SIG_DFL);
    sent("SIGQUIT", SIGQUIT, 0, SIG_DFL);
    sent("SIGSEGV", SIGSEGV, 0, SIG_DFL);
    sent("SIGSEGV, with a handler", SIGSEGV, 0, handler);
    sent("SIGSYS, ignored", SIGSYS, 0, SIG_IGN);
    return 0;
}
