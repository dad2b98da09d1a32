/*
 * Robust mutexes (row 530) whose owner is killed: in memory that became shared after the list was set, by a
 * mapping of a file, by System V, by a second process in the same memory, before and after there were
 * threads.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/shm.h>

static int file;
static pthread_mutex_t *mutex;

static void make(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
}

static void map_file(void) { mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); }

static void *kills(void *how) {
    pthread_mutex_lock(mutex);
    if (how)
        pthread_exit(NULL);
    raise(SIGKILL);
    return NULL;
}

static void *nothing(void *argument) { return argument; }

static void alone(void) {
    map_file();
    kills(NULL);
}

static void by_a_thread(void) {
    pthread_t thread;
    map_file();
    pthread_create(&thread, NULL, kills, NULL);
    pthread_join(thread, NULL);
}

static void first_thread_of_two(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    map_file();
    kills(NULL);
}

static void after_threads(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    map_file();
    kills(NULL);
}

static void thread_ends(void) {
    pthread_t thread;
    map_file();
    pthread_create(&thread, NULL, kills, "by ending");
    pthread_join(thread, NULL);
    _exit(pthread_mutex_lock(mutex) == EOWNERDEAD ? 1 : 2);
}

static void copy_of_it(void) {
    map_file();
    pid_t child = fork();
    if (child == 0)
        kills(NULL);
    waitpid(child, NULL, 0);
}

static int segment;
static void attach(void) { mutex = shmat(segment, NULL, 0); }
static void by_segment(void) {
    attach();
    kills(NULL);
}

static void (*share)(void);
static void initialises(void) {
    share();
    make();
}
static void recovers(void) {
    share();
    _exit(pthread_mutex_trylock(mutex) == EOWNERDEAD ? 1 : 2);
}

/* Each in a process of its own: this one shares nothing, so that no child begins with a shared mapping. */
static void in_child(const char *what, void (*act)(void)) {
    pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    ended(what, child);
}

static void tried(const char *what, void (*act)(void)) {
    in_child("mutex", initialises);
    in_child(what, act);
    in_child("recovered", recovers);
}

/* A process that has the same memory is killed: only the kernel can walk its list. */
static char stack[65536] __attribute__((aligned(64)));
static struct {
    struct robust_list entry;
    unsigned futex;
} held;
static struct robust_list_head head;
static int beside(void *argument) {
    (void)argument;
    head.list.next = &held.entry;
    held.entry.next = &head.list;
    head.futex_offset = (char *)&held.futex - (char *)&held.entry;
    held.futex = getpid();
    syscall(SYS_set_robust_list, &head, sizeof head);
    kill(getpid(), SIGKILL);
    return 0;
}

int main(void) {
    /* Before anything of this process is shared. */
    pid_t child = clone(beside, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    ended("beside", child);
    HEX(held.futex);

    file = open("mutex", O_RDWR | O_CREAT | O_EXCL, 0600);
    ftruncate(file, 4096);
    share = map_file;
    tried("alone", alone);
    tried("by a thread", by_a_thread);
    tried("first thread of two", first_thread_of_two);
    tried("after threads", after_threads);
    tried("thread ends", thread_ends);
    tried("copy of it", copy_of_it);
    share = attach;
    segment = shmget(IPC_PRIVATE, 4096, 0600);
    tried("by segment", by_segment);
    shmctl(segment, IPC_RMID, NULL);
    return 0;
}
