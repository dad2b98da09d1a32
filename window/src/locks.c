/* Byte-range locks of the store's file. They belong to the session's open file, so that two sessions of a
 * process exclude each other as those of two processes do, and the kernel releases them when a process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "store.h"

static int lock_command(const struct ww_store *store, int command, int byte, short type, struct flock *lock) {
    *lock = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do
        result = fcntl(store->backend.fd, command, lock);
    while (result < 0 && errno == EINTR);
    return result;
}

uint32_t ww_pause(uint32_t waited) {
    const uint32_t now = waited < 10 ? 1 : 5;
    const struct timespec moment = {.tv_nsec = (long)now * 1000000};
    nanosleep(&moment, NULL);
    return waited + now;
}

int ww_lock(const struct ww_store *store, int byte, bool exclusive, uint32_t wait_ms) {
    for (uint32_t waited = 0;;) {
        struct flock lock;
        if (!lock_command(store, F_OFD_SETLK, byte, exclusive ? F_WRLCK : F_RDLCK, &lock))
            return 0;
        if (errno != EAGAIN && errno != EACCES)
            return ww_fail_errno(errno, "%s: it cannot be locked", store->backend.path);
        if (waited >= wait_ms) {
            errno = EBUSY;
            return -1;
        }
        waited = ww_pause(waited);
    }
}

void ww_unlock(const struct ww_store *store, int byte) {
    struct flock lock;
    lock_command(store, F_OFD_SETLK, byte, F_UNLCK, &lock);
}

void ww_unlock_all(const struct ww_store *store) {
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(store->backend.fd, F_OFD_SETLK, &all);
}

/* By another session. */
bool ww_is_locked(const struct ww_store *store, int byte) {
    struct flock lock;
    return lock_command(store, F_OFD_GETLK, byte, F_WRLCK, &lock) == 0 && lock.l_type != F_UNLCK;
}
