/* A lock among the program's threads. Held for microseconds, and never while a signal handler of the program
 * runs. */
#ifndef X32_LOCK_H
#define X32_LOCK_H

#include "kernel.h"

/* 0 free, 1 held, 2 held and a thread sleeps. U. Drepper, "Futexes Are Tricky", 2011. */
static inline void lock_take(u32 *lock) {
    u32 state = 0;
    if (__atomic_compare_exchange_n(lock, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return;
    }
    while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0) {
        KERNEL_4(__NR_futex, lock, 128 /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */, 2, 0);
    }
}

static inline void lock_release(u32 *lock) {
    if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2) {
        KERNEL_3(__NR_futex, lock, 129 /* FUTEX_WAKE | FUTEX_PRIVATE_FLAG */, 1);
    }
}

#endif
