/* What happens to a session from outside: forks of its process, and SIGBUS below its windows. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "store.h"

static _Atomic uint32_t generation = 1;
static pthread_once_t watches_forks = PTHREAD_ONCE_INIT;

/* Address ranges that sessions reserved. The signal handler reads the table, so it has no lock. */
#define MOST_RANGES 65536
#define NO_RANGE UINT32_MAX
static struct range {
    _Atomic(struct ww_store *) store; /* NULL: not in use */
    _Atomic uintptr_t begin, end;
} ranges[MOST_RANGES];
static _Atomic uint32_t ranges_used;
static uint32_t first_free;
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

/* The child's copies of sessions: ww_pin must not find their windows. The lock may be that of a thread that
 * the child has not; the table is whole at every moment. */
static void forked(void) {
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&ranges_lock, &unlocked, sizeof unlocked);
    atomic_fetch_add(&generation, 1);
    const uint32_t used = atomic_load(&ranges_used);
    for (uint32_t at = 0; at < used; at++) {
        struct ww_store *store = atomic_load(&ranges[at].store);
        if (store)
            atomic_store(&store->usable, 0);
    }
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forked); }

uint32_t ww_process_generation(void) {
    pthread_once(&watches_forks, watch_forks);
    return atomic_load(&generation);
}

uint32_t ww_guard_add(struct ww_store *store, const char *address, uint64_t length) {
    pthread_mutex_lock(&ranges_lock);
    uint32_t at = first_free;
    while (at < MOST_RANGES && atomic_load(&ranges[at].store))
        at++;
    if (at < MOST_RANGES) {
        atomic_store(&ranges[at].begin, (uintptr_t)address);
        atomic_store(&ranges[at].end, (uintptr_t)(address + length));
        atomic_store(&ranges[at].store, store);
        first_free = at + 1;
        if (first_free > atomic_load(&ranges_used))
            atomic_store(&ranges_used, first_free);
    } else {
        at = NO_RANGE; /* a SIGBUS there goes to the program */
    }
    pthread_mutex_unlock(&ranges_lock);
    return at;
}

void ww_guard_remove(uint32_t guard) {
    if (guard == NO_RANGE)
        return;
    pthread_mutex_lock(&ranges_lock);
    atomic_store(&ranges[guard].store, NULL);
    if (guard < first_free)
        first_free = guard;
    pthread_mutex_unlock(&ranges_lock);
}

static struct ww_store *owner(uintptr_t address) {
    const uint32_t used = atomic_load(&ranges_used);
    for (uint32_t at = 0; at < used; at++) {
        struct ww_store *store = atomic_load(&ranges[at].store);
        if (store && address >= atomic_load(&ranges[at].begin) && address < atomic_load(&ranges[at].end))
            return store;
    }
    return NULL;
}

const ww_store *ww_owner(const void *address) { return owner((uintptr_t)address); }

static struct sigaction programs_own;

/* Only system calls that are safe in a signal handler. */
static void caught(int signal, siginfo_t *information, void *context) {
    const int error = errno;
    const bool is_sent = information->si_code <= 0; /* by kill(2) and the like: there is no address */
    const uintptr_t address = is_sent ? 0 : (uintptr_t)information->si_addr;
    struct ww_store *store = is_sent ? NULL : owner(address);
    if (store) {
        char *page = (char *)(address & ~(uintptr_t)(PAGE_BYTES - 1));
        if (mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            MAP_FAILED) {
            atomic_store(&store->fault, address);
            atomic_store(&store->usable, 0);
            errno = error;
            return;
        }
    }
    if (programs_own.sa_flags & SA_SIGINFO) {
        programs_own.sa_sigaction(signal, information, context);
    } else if (programs_own.sa_handler != SIG_DFL && programs_own.sa_handler != SIG_IGN) {
        programs_own.sa_handler(signal);
    } else if (!is_sent || programs_own.sa_handler == SIG_DFL) {
        /* The access is made again, and ends the program as it would have; a sent signal is sent again. */
        struct sigaction usual;
        memset(&usual, 0, sizeof usual);
        usual.sa_handler = SIG_DFL;
        sigaction(SIGBUS, &usual, NULL);
        if (is_sent)
            raise(SIGBUS);
    }
    errno = error;
}

int ww_catch_sigbus(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct sigaction ours, before;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = caught;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    int result = sigaction(SIGBUS, NULL, &before);
    if (!result && !(before.sa_flags & SA_SIGINFO && before.sa_sigaction == caught)) {
        programs_own = before;
        ours.sa_flags |= before.sa_flags & SA_NODEFER;
        ours.sa_mask = before.sa_mask;
        result = sigaction(SIGBUS, &ours, NULL);
    }
    const int error = errno;
    pthread_mutex_unlock(&lock);
    return result ? ww_fail_errno(error, "the handler of SIGBUS cannot be installed") : 0;
}

int ww_check_session(struct ww_store *store) {
    if (store->generation != ww_process_generation())
        return ww_fail(EPERM, "%s: a session cannot be used after fork; the child opens the store for itself",
                       store->backend.path);
    const uintptr_t fault = atomic_load(&store->fault);
    if (fault) {
        for (uint32_t i = 0; i < store->windows_used; i++) {
            const struct window *window = &store->windows[i];
            if (window->kind != WINDOW_FREE && fault >= (uintptr_t)window->address &&
                fault - (uintptr_t)window->address < window->length)
                return ww_fail(
                    EIO,
                    "%s: SIGBUS at byte %llu of the data: the file was truncated, or its disk or memory is "
                    "full or failed; close the store",
                    store->backend.path,
                    (unsigned long long)(window->offset + (fault - (uintptr_t)window->address)));
        }
        return ww_fail(
            EIO, "%s: SIGBUS below a window: the file was truncated, or its disk failed; close the store",
            store->backend.path);
    }
    if (store->broken)
        return ww_fail(EIO, "%s: an earlier write to the disk failed; close the store, and open it again",
                       store->backend.path);
    return 0;
}

int ww_check_fault(struct ww_store *store) {
    return atomic_load(&store->fault) ? ww_check_session(store) : 0;
}
