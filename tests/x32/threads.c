/*
 * built: static, dynamic
 * seconds: 120
 *
 * Threads: made and joined by the hundred, everything they share, and how they end.
 */
#include "transcript.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int counter, turn;
static atomic_int atomic, serial;
static __thread int own = 5;
static __thread char own_big[3000];

static void *returns(void *argument) { return (void *)((uintptr_t)argument + 1); }
static void *counts(void *argument) {
    own += (int)(uintptr_t)argument;
    memset(own_big, own, sizeof own_big);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        atomic++;
        if (i % 100 == 0) {
            pthread_rwlock_rdlock(&lock);
            pthread_rwlock_unlock(&lock);
            pthread_rwlock_wrlock(&lock);
            pthread_rwlock_unlock(&lock);
        }
    }
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        serial++;
    return (void *)(uintptr_t)(own == 5 + (int)(uintptr_t)argument && own_big[2999] == (char)own);
}
static void *takes_turns(void *argument) {
    int mine = (int)(uintptr_t)argument;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != mine)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}
static volatile int cleaned, destroyed;
static void clean(void *by) { cleaned += (int)(uintptr_t)by; }
static pthread_key_t key;
static void destroy(void *value) { destroyed += (int)(uintptr_t)value; }
static void *is_cancelled(void *nothing) {
    pthread_setspecific(key, (void *)4);
    pthread_cleanup_push(clean, (void *)1);
    pthread_cleanup_push(clean, (void *)10);
    sem_post(&semaphore);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return nothing;
}
static void *cancelled_at_once(void *nothing) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&semaphore);
    for (;;)
        ;
    return nothing;
}
static volatile pthread_t handled_by;
static void handler(int number) {
    (void)number;
    handled_by = pthread_self();
    sem_post(&semaphore);
}
static void *waits(void *over) {
    while (!*(volatile int *)over)
        usleep(1000);
    return NULL;
}
static void *exits(void *nothing) {
    pthread_exit((void *)0x77);
    return nothing;
}
static void *goes_on_alone(void *nothing) {
    usleep(30000);
    /* Calls that look at the process's own memory and files, with and without every signal blocked. */
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    say("a file: %s", access("/", F_OK) == 0 ? "yes" : "no");
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("a page: %s", page != MAP_FAILED ? "yes" : "no");
    struct iovec parts[2] = {{"wri", 3}, {"tten\n", 5}};
    writev(1, parts, 2);
    char path[512];
    snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
    execl(path, "x", "exit", "24", NULL);
    say("execl: %s", error_name(errno));
    return nothing;
}
static void *leaves_all(void *nothing) {
    exit(21);
    return nothing;
}

int main(void) {
    uintptr_t sum = 0;
    pthread_t thread;
    for (uintptr_t i = 0; i < 1000; i++) {
        void *result = NULL;
        if (pthread_create(&thread, NULL, returns, (void *)i) != 0 || pthread_join(thread, &result) != 0)
            say("thread %d failed", (int)i);
        sum += (uintptr_t)result;
    }
    VALUE(sum);
    enum { MANY = 16 };
    pthread_t many[MANY];
    pthread_barrier_init(&barrier, NULL, MANY);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < MANY; i++)
        pthread_create(&many[i], NULL, counts, (void *)i);
    int right = 0;
    for (int i = 0; i < MANY; i++) {
        void *result;
        pthread_join(many[i], &result);
        right += (int)(uintptr_t)result;
    }
    say("counter %d, atomic %d, own storage right %d, serial %d", counter, atomic, right, serial);
    VALUE(own);
    for (int i = 0; i < 2; i++)
        pthread_create(&many[i], NULL, takes_turns, (void *)i);
    pthread_join(many[0], NULL), pthread_join(many[1], NULL);
    VALUE(turn);

    say("cancellation");
    pthread_key_create(&key, destroy);
    void *result;
    pthread_create(&thread, NULL, is_cancelled, NULL);
    sem_wait(&semaphore);
    NUMBER(pthread_cancel(thread));
    NUMBER(pthread_join(thread, &result));
    IS(result == PTHREAD_CANCELED);
    say("cleaned %d, destroyed %d", cleaned, destroyed);
    pthread_create(&thread, NULL, cancelled_at_once, NULL);
    sem_wait(&semaphore);
    NUMBER(pthread_cancel(thread));
    NUMBER(pthread_join(thread, &result));
    IS(result == PTHREAD_CANCELED);
    pthread_create(&thread, NULL, exits, NULL);
    pthread_join(thread, &result);
    HEX((uintptr_t)result);

    say("signals to a thread");
    signal(SIGUSR1, handler);
    volatile int over = 0;
    pthread_create(&thread, NULL, waits, (void *)&over);
    NUMBER(pthread_kill(thread, SIGUSR1));
    sem_wait(&semaphore);
    IS(pthread_equal(handled_by, thread));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    sem_wait(&semaphore);
    IS(pthread_equal(handled_by, thread));
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    over = 1;
    pthread_join(thread, NULL);

    say("stacks and limits");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    NUMBER(pthread_attr_setstacksize(&attributes, 16384));
    NUMBER(pthread_create(&thread, &attributes, returns, (void *)5));
    pthread_join(thread, &result);
    VALUE((uintptr_t)result);
    void *room = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NUMBER(pthread_attr_setstack(&attributes, room, 1 << 20));
    NUMBER(pthread_create(&thread, &attributes, returns, (void *)6));
    pthread_join(thread, &result);
    VALUE((uintptr_t)result);
    size_t size;
    void *base;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &base, &size);
    IS((char *)&size > (char *)base && (char *)&size < (char *)base + size);
    NUMBER(pthread_setname_np(pthread_self(), "renamed"));
    char name[16];
    NUMBER(pthread_getname_np(pthread_self(), name, sizeof name));
    TEXT(name);
    struct timespec past = {1, 0};
    pthread_mutex_lock(&mutex);
    NUMBER(pthread_cond_timedwait(&condition, &mutex, &past));
    NUMBER(pthread_mutex_trylock(&mutex));
    NUMBER(pthread_mutex_timedlock(&mutex, &past));
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, leaves_all, NULL);
        for (;;)
            pause();
    }
    ended("exit of a thread", child);
    child = fork();
    if (child == 0) {
        over = 0;
        pthread_create(&thread, NULL, waits, (void *)&over);
        pthread_exit(NULL);
    }
    poll(NULL, 0, 100);
    IS(waitpid(child, NULL, WNOHANG) == 0);
    kill(child, SIGTERM);
    ended("main thread gone", child);
    child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, goes_on_alone, NULL);
        pthread_exit(NULL);
    }
    ended("main thread gone, and another program", child);
    return 0;
}
