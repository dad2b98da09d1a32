/*
 * futex: waiting, waking, requeueing, bit sets, priority inheritance, timeouts and errors.
 */
#include "transcript.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

static int cell, other;
static volatile int woken, entered;

static long futex(void *at, int operation, int value, void *time, void *second, int third) {
    return syscall(SYS_futex, at, operation, value, time, second, third);
}
static void *waits(void *operation) {
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
    long result =
        futex(&cell, (int)(uintptr_t)operation, 0, NULL, NULL, operation == (void *)FUTEX_WAIT ? 0 : 2);
    if (result != 0)
        say("wait: %s", error_name(errno));
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void start(pthread_t *threads, int count, int operation) {
    entered = woken = 0;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, waits, (void *)(uintptr_t)operation);
    while (entered < count)
        usleep(1000);
    usleep(200000);
}

int main(void) {
    pthread_t threads[5];
    struct timespec soon = {0, 20000000}, bad = {0, -1}, now;
    RESULT(futex(&cell, FUTEX_WAIT, 1, NULL, NULL, 0));
    RESULT(futex(&cell, FUTEX_WAIT, 0, &soon, NULL, 0));
    RESULT(futex(&cell, FUTEX_WAIT, 0, &bad, NULL, 0));
    RESULT(futex(&cell, FUTEX_WAKE, 1, NULL, NULL, 0));
    RESULT(futex((char *)&cell + 1, FUTEX_WAIT, 0, NULL, NULL, 0));
    RESULT(futex((void *)8, FUTEX_WAIT, 0, NULL, NULL, 0));
    RESULT(futex(&cell, FUTEX_WAIT, 0, (void *)8, NULL, 0));
    RESULT(futex(&cell, 99, 0, NULL, NULL, 0));
    clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_nsec += 20000000;
    if (now.tv_nsec >= 1000000000)
        now.tv_sec++, now.tv_nsec -= 1000000000;
    RESULT(futex(&cell, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &now, NULL, -1));
    RESULT(futex(&cell, FUTEX_WAIT_BITSET, 0, &now, NULL, 0));
    clock_gettime(CLOCK_REALTIME, &now);
    RESULT(futex(&cell, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &now, NULL, -1));

    say("threads");
    start(threads, 5, FUTEX_WAIT);
    RESULT(futex(&cell, FUTEX_WAKE, 2, NULL, NULL, 0));
    RESULT(futex(&cell, FUTEX_CMP_REQUEUE, 1, (void *)1, &other, 5));
    RESULT(futex(&cell, FUTEX_CMP_REQUEUE, 1, (void *)1, &other, 0));
    RESULT(futex(&other, FUTEX_WAKE, 9, NULL, NULL, 0));
    RESULT(futex(&cell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0));
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    VALUE(woken);
    start(threads, 2, FUTEX_WAIT_BITSET);
    RESULT(futex(&cell, FUTEX_WAKE_BITSET, 5, NULL, NULL, 1));
    RESULT(futex(&cell, FUTEX_WAKE_BITSET, 5, NULL, NULL, 6));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    start(threads, 3, FUTEX_WAIT);
    other = 7;
    RESULT(futex(&cell, FUTEX_WAKE_OP, 1, (void *)1, &other, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 7)));
    VALUE(other);
    RESULT(futex(&cell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);

    say("priority inheritance");
    int owned = 0;
    RESULT(futex(&owned, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    IS((owned & FUTEX_TID_MASK) == gettid());
    RESULT(futex(&owned, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    RESULT(futex(&owned, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
    RESULT(futex(&owned, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    VALUE(owned);
    RESULT(futex(&owned, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    NUMBER(pthread_mutex_lock(&mutex));
    NUMBER(pthread_mutex_unlock(&mutex));

    say("between processes, and many at once");
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        while (*shared == 0)
            futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(*shared);
    }
    usleep(20000);
    *shared = 15;
    futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0);
    ended("child", child);
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } many[2] = {{0, (uintptr_t)&cell, 2, 0}, {1, (uintptr_t)&other, 2, 0}};
    RESULT(syscall(__NR_futex - 202 + 449, many, 2, 0, NULL, CLOCK_MONOTONIC));
    RESULT(syscall(__NR_futex - 202 + 449, many, 0, 0, NULL, CLOCK_MONOTONIC));
    clock_gettime(CLOCK_MONOTONIC, &now);
    many[1].value = other;
    RESULT(syscall(__NR_futex - 202 + 449, many, 2, 0, &now, CLOCK_MONOTONIC));
    return 0;
}
