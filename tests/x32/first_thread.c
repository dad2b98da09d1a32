/*
 * A signal to the process comes in its first thread, if that does not block it, whatever the thread that
 * sends it does next. The other thread calls from memory that it may write and execute, where no call is
 * rewritten: each traps.
 */
#include "transcript.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>

#define TIMES 50

static pid_t first;
static atomic_int in_first, codes_right, is_ready, stop;
/* Shared with the other process. */
static atomic_int *caught;
static int expected_code;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    in_first += gettid() == first;
    codes_right += info->si_code == expected_code && (expected_code == SI_KERNEL || info->si_pid == getpid());
    ++*caught;
}

/* A function that makes this call with the arguments that it is given. */
static long (*make_call(long number))(long, long, long) {
    unsigned char *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char text[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
    memcpy(text + 1, &number, 4);
    memcpy(code, text, sizeof text);
    return (long (*)(long, long, long))code;
}

static long (*call_kill)(long, long, long), (*call_queue)(long, long, long),
    (*call_getppid)(long, long, long);

static void wait_for(int count) {
    for (int i = 0; *caught < count && i < 20000; i++) {
        call_getppid(0, 0, 0);
        usleep(100);
    }
}

/* pthread_create() blocks signals in the first thread for a moment. */
static void let_the_first_wait(void) {
    while (!is_ready)
        usleep(1000);
    usleep(20000);
}

static void *at_the_end(void) {
    stop = 1;
    call_kill(getpid(), SIGUSR2, 0);
    return NULL;
}

/* By kill, or with what it carries. */
static void *sends(void *info) {
    let_the_first_wait();
    for (int i = 0; i < TIMES; i++) {
        info ? call_queue(getpid(), SIGUSR1, (long)info) : call_kill(getpid(), SIGUSR1, 0);
        call_getppid(0, 0, 0);
        wait_for(i + 1);
    }
    return at_the_end();
}

/* The timer runs while this one makes nothing but calls that trap. */
static void *calls(void *unused) {
    struct itimerval time = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    let_the_first_wait();
    setitimer(ITIMER_REAL, &time, NULL);
    while (*caught < TIMES)
        call_getppid(0, 0, 0);
    setitimer(ITIMER_REAL, &off, NULL);
    (void)unused;
    return at_the_end();
}

/* Another process sends to this thread alone. It waits for each: one that comes while the one before it is
 * pending is lost. */
static void *is_sent_to(void *unused) {
    pid_t process = getpid(), thread = gettid(), other = fork();
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    if (other == 0) {
        for (int i = 0; i < TIMES; i++) {
            syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGUSR1, &info);
            for (int waits = 0; *caught <= i && waits < 20000; waits++)
                usleep(100);
        }
        _exit(0);
    }
    while (waitpid(other, NULL, WNOHANG) == 0)
        call_getppid(0, 0, 0);
    return unused;
}

static void on_end(int signal) { (void)signal; }

static void measure(const char *what, void *(*thread)(void *), void *argument, int code) {
    pthread_t other;
    sigset_t end, none;
    *caught = in_first = codes_right = is_ready = stop = 0;
    expected_code = code;
    sigemptyset(&none);
    sigemptyset(&end);
    sigaddset(&end, SIGUSR2);
    sigprocmask(SIG_BLOCK, &end, NULL);
    pthread_create(&other, NULL, thread, argument);
    is_ready = 1;
    while (!stop)
        sigsuspend(&none);
    pthread_join(other, NULL);
    sigprocmask(SIG_UNBLOCK, &end, NULL);
    /* While the first thread has yet to run for one signal, the kernel gives the next to another. */
    say("%s: caught %s, in the first thread %s, with their code %s", what,
        *caught >= TIMES ? "all" : "not all", 10 * in_first >= 9 * *caught ? "nearly all" : "not all",
        codes_right == *caught ? "all" : "not all");
}

static sem_t may_send, has_sent;

static void *sends_and_posts(void *unused) {
    let_the_first_wait();
    for (int i = 0; i < TIMES; i++) {
        while (sem_wait(&may_send))
            ;
        call_kill(getpid(), SIGUSR1, 0);
        sem_post(&has_sent);
        for (int calls = 0; calls < 20; calls++)
            call_getppid(0, 0, 0);
    }
    return unused;
}

/* What the sender does after the call, the first thread sees when its handler has run. */
static void handle_before_the_post(void) {
    pthread_t other;
    int handled_before = 0;
    *caught = is_ready = 0;
    sem_init(&may_send, 0, 0);
    sem_init(&has_sent, 0, 0);
    pthread_create(&other, NULL, sends_and_posts, NULL);
    is_ready = 1;
    for (int i = 0; i < TIMES; i++) {
        sem_post(&may_send);
        while (sem_wait(&has_sent))
            ;
        handled_before += *caught == i + 1;
    }
    pthread_join(other, NULL);
    say("sent before a post: handled before the wait for it ends: %d of %d", handled_before, *caught);
}

static void *kills_itself(void *unused) {
    for (int i = 0; i < TIMES; i++) {
        call_kill(getpid(), SIGUSR1, 0);
        call_getppid(0, 0, 0);
    }
    return unused;
}

/* A first thread that blocks it leaves it to the other, at once. */
static void leave_to_the_other(void) {
    pthread_t other;
    sigset_t all;
    *caught = in_first = codes_right = 0;
    expected_code = SI_USER;
    pthread_attr_t attributes;
    sigset_t open_to_all;
    sigemptyset(&open_to_all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &open_to_all);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    pthread_create(&other, &attributes, kills_itself, NULL);
    pthread_join(other, NULL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    say("blocked in the first thread: caught %d, in the first thread %d", *caught, in_first);
}

static void send_to_a_thread(void) {
    pthread_t other;
    *caught = in_first = 0;
    pthread_create(&other, NULL, is_sent_to, NULL);
    pthread_join(other, NULL);
    say("sent to the other thread: caught %d, in the first thread %d", *caught, in_first);
}

int main(void) {
    first = gettid();
    caught = mmap(NULL, sizeof *caught, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    call_kill = make_call(SYS_kill);
    call_queue = make_call(SYS_rt_sigqueueinfo);
    call_getppid = make_call(SYS_getppid);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    signal(SIGUSR2, on_end);
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    measure("kill", sends, NULL, SI_USER);
    measure("sigqueue", sends, &info, SI_QUEUE);
    measure("a timer", calls, NULL, SI_KERNEL);
    handle_before_the_post();
    leave_to_the_other();
    send_to_a_thread();
    return 0;
}
