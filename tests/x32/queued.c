/*
 * Real-time signals are queued: each comes, with its value, in the order in which they were sent, also when
 * another signal comes at the same moment, and when the queue is full.
 */
#include "transcript.h"

#include <sys/resource.h>

#define MANY 20
#define LIMIT 200

static volatile int values[2 * LIMIT], caught, raises;

static void receive(int signal, siginfo_t *info, void *context) {
    (void)context;
    if (caught < 2 * LIMIT)
        values[caught++] = signal == SIGSYS ? -1 : info->si_value.sival_int;
    if (signal != SIGSYS && raises-- > 0)
        raise(SIGSYS);
}

static int queue_to_thread(int value) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGRTMIN, info.si_code = SI_QUEUE, info.si_pid = getpid();
    info.si_value.sival_int = value;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGRTMIN, &info);
}

static int queue_to_process(int value) {
    return sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = value});
}

static void block(int how) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMIN);
    sigprocmask(how, &mask, NULL);
}

/* How many of those that came are the next one after the last that did; SIGSYS is left out. */
static int in_order(void) {
    int next = 0;
    for (int i = 0; i < caught; i++)
        next += values[i] == next;
    return next;
}

static int place_of_sys(void) {
    for (int i = 0; i < caught; i++)
        if (values[i] == -1)
            return i;
    return -1;
}

/* `often`: in how many of the first handlers SIGSYS is raised, which each of them blocks. */
static void many(const char *what, int (*queue)(int), int often) {
    int sent = 0;
    block(SIG_BLOCK);
    while (sent < MANY && queue(sent) == 0)
        sent++;
    caught = 0, raises = often;
    block(SIG_UNBLOCK);
    say("%s, SIGSYS %d times: sent %d, caught %d, in order %d", what, often, sent, caught, in_order());
}

/* Until there is room for no more; each handler then makes room for one. */
static void full(const char *what, int (*queue)(int), int often) {
    int sent = 0;
    block(SIG_BLOCK);
    while (sent < LIMIT && queue(sent) == 0)
        sent++;
    say("%s, full: %s", what, sent < LIMIT ? error_name(errno) : "no");
    caught = 0, raises = often;
    block(SIG_UNBLOCK);
    say("%s, full: lost %d, in order %d", what, sent - (caught - (place_of_sys() >= 0)), in_order() == sent);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = receive, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    sigaddset(&action.sa_mask, SIGSYS);
    sigaction(SIGRTMIN, &action, NULL);
    for (int often = 0; often <= MANY; often += often == 0 ? 1 : MANY - 1) {
        many("to the thread", queue_to_thread, often);
        say("SIGSYS after %d", place_of_sys());
        many("to the process", queue_to_process, often);
        say("SIGSYS after %d", place_of_sys());
    }

    struct rlimit limit = {LIMIT / 2, LIMIT / 2};
    RESULT(setrlimit(RLIMIT_SIGPENDING, &limit));
    full("to the thread", queue_to_thread, 0);
    full("to the process", queue_to_process, 0);
    full("to the thread", queue_to_thread, 1);
    full("to the process", queue_to_process, 1);

    /* SIGSYS whose handler lets none of the others in. When it comes is not printed: the runtime lets those
     * that are held already come first. */
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGRTMIN);
    sigaction(SIGSYS, &action, NULL);
    many("kept out, to the thread", queue_to_thread, 1);
    many("kept out, to the process", queue_to_process, 1);
    return 0;
}
