/*
 * core
 *
 * set_robust_list and get_robust_list (rows 530, 531), and mutexes whose owner died.
 */
#include "../programs/robust_mutex.h"

#include "transcript.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t *mutex;
static void *dies_with_it(void *nothing) {
    pthread_mutex_lock(mutex);
    return nothing;
}

int main(void) {
    VALUE(sizeof(struct robust_list_head));
    struct robust_list_head *head = NULL;
    unsigned long cells[2] = {0, 0x5a5a5a5a}, length[2] = {0, 0x5a5a5a5a};
    RESULT(syscall(SYS_get_robust_list, 0, cells, length));
    VALUE(length[0]);
    HEX(cells[1]);
    HEX(length[1]);
    IS(cells[0] != 0);
    head = (void *)cells[0];
    IS((uintptr_t)head->list.next == (uintptr_t)&head->list);
    RESULT(syscall(SYS_set_robust_list, head, 12));
    RESULT(syscall(SYS_set_robust_list, head, 24));
    RESULT(syscall(SYS_set_robust_list, head, 8));
    RESULT(syscall(SYS_get_robust_list, 1 << 30, cells, length));
    RESULT(syscall(SYS_get_robust_list, 0, (void *)8, length));
    RESULT(syscall(SYS_get_robust_list, getppid(), cells, length) == -1);

    say("dead owners");
    mutex = robust_mutex();
    pthread_t thread;
    NUMBER(pthread_create(&thread, NULL, dies_with_it, NULL));
    NUMBER(pthread_join(thread, NULL));
    NUMBER(pthread_mutex_lock(mutex));
    NUMBER(pthread_mutex_consistent(mutex));
    NUMBER(pthread_mutex_unlock(mutex));
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(mutex);
        raise(SIGKILL);
    }
    ended("child", child);
    NUMBER(pthread_mutex_lock(mutex));
    NUMBER(pthread_mutex_unlock(mutex));
    NUMBER(pthread_mutex_lock(mutex));

    say("by hand");
    struct {
        struct robust_list entry;
        unsigned futex;
    } *held = (void *)((char *)mutex + 2048);
    struct robust_list_head *own = (void *)((char *)mutex + 3072);
    child = fork();
    if (child == 0) {
        own->list.next = &held->entry;
        held->entry.next = &own->list;
        own->futex_offset = (char *)&held->futex - (char *)&held->entry;
        own->list_op_pending = NULL;
        held->futex = getpid() | FUTEX_WAITERS;
        syscall(SYS_set_robust_list, own, sizeof *own);
        syscall(SYS_exit, 0);
    }
    ended("child", child);
    HEX(held->futex);
    /* Held by an id that is not the dying thread's. */
    child = fork();
    if (child == 0) {
        held->futex = getppid();
        syscall(SYS_set_robust_list, own, sizeof *own);
        syscall(SYS_exit, 0);
    }
    ended("child", child);
    IS(held->futex == (unsigned)getpid());
    /* Dying by exec frees it as well. */
    child = fork();
    if (child == 0) {
        held->futex = getpid();
        syscall(SYS_set_robust_list, own, sizeof *own);
        char path[512];
        snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
        execl(path, "x", "exit", "4", NULL);
    }
    ended("child", child);
    HEX(held->futex);
    return 0;
}
