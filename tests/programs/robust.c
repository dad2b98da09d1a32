/*
 * Robust mutexes whose owner ends: a thread by exit, a process by exit_group and by execve, all its threads;
 * by hand, at what the list points to.
 */
#include "robust_mutex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t *mutex;

static void *takes_it(void *nothing) {
    pthread_mutex_lock(mutex);
    return nothing;
}
static void *takes_it_and_stays(void *ready) {
    pthread_mutex_lock(mutex);
    write(*(int *)ready, "", 1);
    pause();
    return NULL;
}
static void main_thread_takes_it(int *ready) {
    pthread_mutex_lock(mutex);
    write(*ready, "", 1);
}
static void other_thread_takes_it(int *ready) {
    pthread_t thread;
    pthread_create(&thread, NULL, takes_it_and_stays, ready);
}

static void tell(const char *what) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 5;
    int answer = pthread_mutex_timedlock(mutex, &end);
    printf("%s: %s\n", what, strerror(answer));
    fflush(stdout);
    if (answer != 0)
        pthread_mutex_consistent(mutex);
    pthread_mutex_unlock(mutex);
}

/* The mutex is taken while another waits for it. */
static void wait_beside(void (*take)(int *), void (*end)(void), const char *what) {
    int ends[2];
    char byte;
    pipe(ends);
    pid_t child = fork();
    if (child == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL); /* faults too: the list must be read all the same */
        take(&ends[1]);
        usleep(100000);
        end();
    }
    read(ends[0], &byte, 1);
    tell(what);
    waitpid(child, NULL, 0);
}

static void by_exit(void) { exit(0); }
static void by_call(void) { syscall(SYS_exit, 0); }
static void by_exec(void) {
    char *words[] = {"robust", "end", NULL};
    execv("/proc/self/exe", words);
}
static void by_hand(void) {
    struct {
        struct robust_list entry;
        unsigned futex;
    } *held = (void *)((char *)mutex + 1024);
    struct robust_list_head *own = (void *)((char *)mutex + 2048);
    for (int kind = 0; kind < 4; kind++) {
        pid_t child = fork();
        if (child == 0) {
            own->list.next = kind == 2 ? (void *)8 : &held->entry;
            held->entry.next = kind == 3 ? &held->entry : &own->list;
            own->futex_offset = (char *)&held->futex - (char *)&held->entry;
            own->list_op_pending = NULL;
            held->futex = (kind == 1 ? getppid() : getpid()) | FUTEX_WAITERS;
            syscall(SYS_set_robust_list, own, sizeof *own);
            syscall(SYS_exit, 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        const char *is = held->futex == (FUTEX_WAITERS | FUTEX_OWNER_DIED) ? "owner died" : "the same";
        printf("by hand, %d: %s, status %d\n", kind, is, status);
    }
}

static void *tries(void *wanted) {
    int answer = pthread_mutex_trylock(wanted);
    printf("after an execve that failed: %s\n", strerror(answer));
    return NULL;
}
/* What the process holds it still holds: of another process, and of its own threads. */
static void fail_to_execute(void) {
    static char longer_than_a_word_may_be[200000];
    static pthread_mutex_t own;
    char *words[] = {"robust", longer_than_a_word_may_be, NULL};
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&own, &attributes);
    memset(longer_than_a_word_may_be, 'a', sizeof longer_than_a_word_may_be - 1);
    pthread_mutex_lock(mutex);
    pthread_mutex_lock(&own);
    printf("execve: %d\n", execv("/proc/self/exe", words));
    pid_t child = fork();
    if (child == 0) {
        tries(mutex);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_create(&thread, NULL, tries, &own);
    pthread_join(thread, NULL);
    int answers[2] = {pthread_mutex_unlock(&own), pthread_mutex_unlock(mutex)};
    printf("given up: %d %d\n", answers[0], answers[1]);
}

int main(int count, char **words) {
    (void)words;
    if (count > 1)
        return 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    mutex = robust_mutex();
    pthread_t thread;
    fail_to_execute();
    pthread_create(&thread, NULL, takes_it, NULL);
    pthread_join(thread, NULL);
    tell("a thread's end");
    wait_beside(main_thread_takes_it, by_exit, "exit_group");
    wait_beside(main_thread_takes_it, by_call, "exit");
    wait_beside(main_thread_takes_it, by_exec, "execve");
    wait_beside(other_thread_takes_it, by_exit, "exit_group of another thread");
    by_hand();
    return 0;
}
