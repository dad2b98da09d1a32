/* Creating, opening and closing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h> /* memfd_create */
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_DIGITS 32

/* Names this process's IPC namespace: the 32 digits of the boot's ID, and 8 of the namespace's inode. */
static int read_ipc_namespace(char name[BOOT_DIGITS + 8]) {
    char text[64];
    const int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t got = read(fd, text, sizeof text);
    close(fd);
    size_t digits = 0;
    for (ssize_t i = 0; i < got && digits < BOOT_DIGITS; i++)
        if (text[i] != '-' && text[i] != '\n')
            name[digits++] = text[i];
    if (digits < BOOT_DIGITS) {
        errno = EIO;
        return -1;
    }
    struct stat status;
    if (stat("/proc/self/ns/ipc", &status))
        status.st_ino = 0; /* a kernel without IPC namespaces */
    snprintf(text, sizeof text, "%08lx", (unsigned long)(status.st_ino & UINT32_MAX));
    memcpy(name + BOOT_DIGITS, text, 8);
    return 0;
}

/* Identifiers of segments of another boot or namespace may be those of other programs here. */
static int check_ipc_namespace(const struct ww_store *store) {
    char name[sizeof store->super.ipc_namespace];
    const char *own = store->super.ipc_namespace;
    if (read_ipc_namespace(name))
        return ww_fail_errno(errno, "%s: the store has System V segments, and %s cannot be read",
                             store->backend.path, BOOT_ID);
    if (memcmp(name, own, BOOT_DIGITS))
        return ww_fail(EIDRM, "%s: the store's System V segments ended with the system that made them",
                       store->backend.path);
    if (memcmp(name, own, sizeof name))
        return ww_fail(EIDRM,
                       "%s: the store's System V segments are those of another IPC namespace (a container); "
                       "use the store there, or delete the file if it has ended",
                       store->backend.path);
    return 0;
}

/* Whether there may still be segments. */
static bool is_of_this_boot(const struct ww_store *store) {
    char name[sizeof store->super.ipc_namespace];
    return read_ipc_namespace(name) || !memcmp(name, store->super.ipc_namespace, BOOT_DIGITS);
}

static uint64_t clamped(uint64_t value, uint64_t least, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

static uint64_t in_pages(uint64_t bytes) { return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1); }

static struct ww_store *store_new(const char *path, const ww_options *options) {
    struct ww_store *store = calloc(1, sizeof *store);
    char *copy = strdup(path);
    if (!store || !copy) {
        free(store);
        free(copy);
        ww_fail_errno(ENOMEM, "%s", path);
        return NULL;
    }
    store->backend.path = copy;
    store->backend.fd = -1;
    store->flags = options->flags;
#ifndef NDEBUG
    if (!(store->flags & WW_LENIENT))
        store->flags |= WW_STRICT;
#endif
    store->wait_ms = options->wait_ms ? options->wait_ms : 10000;
    store->checkpoint_bytes = options->checkpoint_bytes ? options->checkpoint_bytes : 64u << 20;
    store->generation = ww_process_generation();
    store->slot = MOST_SESSIONS;
    store->index_epoch = UINT64_MAX;
    store->kept_by = UINT64_MAX;
    /* Far apart: a window or a pin of one session is none of another. */
    static _Atomic uint32_t sessions;
    store->first_generation = atomic_fetch_add(&sessions, 1) * 2654435769u;
    return store;
}

/* Keeps errno. */
static void store_free(struct ww_store *store) {
    const int error = errno;
    ww_windows_close(store);
    ww_index_free(&store->index);
    ww_shared_unmap(store);
    if (store->backend.fd >= 0) {
        /* A child of a fork has the descriptor as well: close alone would not end the locks. */
        if (store->generation == ww_process_generation())
            ww_unlock_all(store);
        close(store->backend.fd);
    }
    ww_segments_close(&store->backend);
    free(store->backend.path);
    free(store->undo);
    free(store);
    errno = error;
}

static int lock_setup(struct ww_store *store) {
    if (!ww_lock(store, LOCK_SETUP, true, store->wait_ms))
        return 0;
    if (errno == EBUSY)
        ww_fail(EBUSY, "%s: the store is locked by a process that opens or removes it", store->backend.path);
    return -1;
}

/* The first session recovers the store; others wait for it. LOCK_SETUP stays. */
static int join(struct ww_store *store) {
    if (lock_setup(store) || ww_check_super(store, &store->super))
        return -1;
    store->capacity = store->super.capacity;
    struct backend *backend = &store->backend;
    backend->kind = (enum ww_kind)store->super.kind;
    backend->no_sync = backend->kind != WW_FILE;
    if (backend->kind == WW_SYSV && !backend->identifiers) {
        if (check_ipc_namespace(store) || ww_segments_open(backend, &store->super))
            return -1;
    }
    if (ww_shared_map(store))
        return -1;
    if (!ww_lock(store, LOCK_OPEN, true, 0)) {
        struct state state;
        if (ww_recover(store, &state))
            return -1;
        if (ww_shared_begin(store, &state))
            return -1;
    } else if (errno != EBUSY) {
        return -1;
    }
    if (ww_lock(store, LOCK_OPEN, false, 0)) {
        if (errno == EBUSY)
            ww_fail(EBUSY, "%s: another program has locked a part of the store", backend->path);
        return -1;
    }
    if (store->shared->magic != SHARED_MAGIC)
        return ww_fail(EBADMSG, "%s: the shared pages are damaged", backend->path);
    return ww_slot_take(store);
}

static int begin_session(struct ww_store *store, const ww_options *options, ww_store **result) {
    if (join(store) || ww_windows_open(store, options))
        return -1;
    ww_unlock(store, LOCK_SETUP);
    *result = store;
    return 0;
}

static const ww_options defaults;

static struct ww_store *store_for(const char *path, const ww_options **options, ww_store **result) {
    if (!path || !result) {
        ww_fail(EINVAL, "the path or the result is NULL");
        return NULL;
    }
    if (!*options)
        *options = &defaults;
    const unsigned flags = (*options)->flags;
    if (flags & ~(unsigned)(WW_NO_SYNC | WW_STRICT | WW_LENIENT) ||
        (flags & WW_STRICT && flags & WW_LENIENT)) {
        ww_fail(EINVAL, "%s: flags %u are none of enum ww_flag, or WW_STRICT with WW_LENIENT", path, flags);
        return NULL;
    }
    return store_new(path, *options);
}

int ww_open(const char *path, const ww_options *options, ww_store **result) {
    struct ww_store *store = store_for(path, &options, result);
    if (!store)
        return -1;
    store->backend.fd = open(path, O_RDWR | O_CLOEXEC);
    if (store->backend.fd < 0)
        ww_fail_errno(errno, "%s cannot be opened for reading and writing, which readers need as well", path);
    else if (!begin_session(store, options, result))
        return 0;
    store_free(store);
    return -1;
}

/* A descriptor that came from another process shares that one's locks: the file is opened anew. */
int ww_open_fd(int fd, const ww_options *options, ww_store **result) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return ww_open(path, options, result);
}

static int describe(struct ww_store *store, uint64_t capacity, const ww_options *options) {
    struct superblock *super = &store->super;
    const char *path = store->backend.path;
    if (capacity == 0 || capacity > OFFSET_MASK)
        return ww_fail(EINVAL, "%s: a capacity of %llu bytes; it must be from 1 to 16 TiB less the log", path,
                       (unsigned long long)capacity);
    if (options->kind > WW_SYSV)
        return ww_fail(EINVAL, "%s: kind %d is none of enum ww_kind", path, (int)options->kind);
    *super = (struct superblock){.magic = MAGIC,
                                 .byte_order = BYTE_ORDER_MARK,
                                 .version = FORMAT_VERSION,
                                 .page_bytes = PAGE_BYTES,
                                 .kind = options->kind,
                                 .capacity = in_pages(capacity)};
    const uint64_t log =
        options->log_bytes ? options->log_bytes : clamped(capacity, 64ull << 20, 64ull << 30);
    if (log > OFFSET_MASK)
        return ww_fail(EINVAL, "%s: log_bytes is %llu, more than 16 TiB", path, (unsigned long long)log);
    super->log_bytes = in_pages(clamped(log, 16 * PAGE_BYTES, OFFSET_MASK));
    super->data_offset =
        (LOG_OFFSET + super->log_bytes + DATA_ALIGNMENT - 1) & ~(uint64_t)(DATA_ALIGNMENT - 1);
    if (super->data_offset + super->capacity > OFFSET_MASK)
        return ww_fail(EINVAL, "%s: capacity and log need %llu bytes, and 16 TiB are the most", path,
                       (unsigned long long)(super->data_offset + super->capacity));
    if (options->kind == WW_SYSV) {
        super->segment_bytes = in_pages(options->segment_bytes ? options->segment_bytes : 64u << 20);
        if (super->segment_bytes > 1u << 30)
            return ww_fail(EINVAL,
                           "%s: segment_bytes is %llu; 1 GiB is the most that a 32-bit program attaches",
                           path, (unsigned long long)super->segment_bytes);
        if (read_ipc_namespace(super->ipc_namespace))
            return ww_fail_errno(errno, "%s: System V segments need %s, which cannot be read", path, BOOT_ID);
    }
    uint32_t tag = 0;
    if (getrandom(&tag, sizeof tag, 0) != sizeof tag)
        return ww_fail_errno(errno, "%s: no random number", path);
    super->tag = tag % ((1u << 20) - 1) + 1;
    return 0;
}

static int sync_folder(const char *path) {
    char *folder = strdup(path);
    if (!folder)
        return ww_fail_errno(ENOMEM, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0 || fsync(fd)) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        return ww_fail_errno(error, "%s: its folder cannot be synced", path);
    }
    close(fd);
    return 0;
}

/* With the file's length. */
static int sync_file(const struct backend *backend) {
    return fsync(backend->fd) ? ww_fail_errno(errno, "%s: it cannot be synced", backend->path) : 0;
}

/* The superblock last: without it the file is no store. */
static int write_store(struct ww_store *store) {
    struct superblock *super = &store->super;
    struct backend *backend = &store->backend;
    const bool is_file = super->kind == WW_FILE;
    const uint64_t bytes = super->kind == WW_SYSV ? LOG_OFFSET : super->data_offset + super->capacity;
    backend->no_sync = !is_file;
    if (ftruncate(backend->fd, (off_t)bytes))
        return ww_fail_errno(errno, "%s: it cannot have %llu bytes", backend->path,
                             (unsigned long long)bytes);
    if (super->kind == WW_SYSV) {
        backend->segment_bytes = super->segment_bytes;
        if (ww_segments_create(backend, super->data_offset - LOG_OFFSET + super->capacity))
            return -1;
        super->segments = backend->segments;
    }
    const struct state empty = {.record = NO_FRAME};
    super->checksum = ww_checksum(super, offsetof(struct superblock, checksum));
    backend->kind = WW_FILE; /* what follows is in the file */
    if (ww_log_write_root(store, 0, &empty) || (is_file && sync_file(backend)) ||
        ww_backend_write(backend, super, sizeof *super, 0) || ww_backend_sync(backend) ||
        (is_file && sync_folder(backend->path)))
        return -1;
    backend->kind = (enum ww_kind)super->kind;
    return 0;
}

/* A session that has opened the file, and waits for the lock, must find no store, unless the file has another
 * name. */
static void erase(struct ww_store *store) {
    const int error = errno;
    static const char none[sizeof store->super.magic];
    struct stat status;
    ww_segments_remove(&store->backend);
    if (!fstat(store->backend.fd, &status) && status.st_nlink == 0)
        (void)!pwrite(store->backend.fd, none, sizeof none, 0);
    errno = error;
}

int ww_create(const char *path, uint64_t capacity, const ww_options *options, ww_store **result) {
    struct ww_store *store = store_for(path, &options, result);
    if (!store)
        return -1;
    if (!describe(store, capacity, options)) {
        const bool is_memfd = options->kind == WW_MEMFD;
        store->backend.fd = is_memfd ? memfd_create(path, MFD_CLOEXEC)
                                     : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (store->backend.fd < 0) {
            ww_fail_errno(errno, "%s cannot be created", path);
        } else {
            if (!lock_setup(store) && !write_store(store) && !begin_session(store, options, result))
                return 0;
            const int error = errno;
            if (!is_memfd)
                unlink(path);
            errno = error;
            erase(store);
        }
    }
    store_free(store);
    return -1;
}

int ww_close(ww_store *store) {
    if (!store)
        return ww_fail(EINVAL, "the store is NULL");
    int result = 0;
    const bool is_own = store->generation == ww_process_generation();
    if (is_own) {
        const int fault = atomic_load(&store->fault) || store->broken ? ww_check_session(store) : 0;
        store->pins = 0;
        if (store->mode)
            ww_abort_now(store);
        if (!fault && store->wrote && store->state.tail)
            ww_checkpoint_within(store, 0); /* what fails is left to the next writer */
        ww_slot_release(store);
        result = fault;
    }
    store_free(store);
    return result;
}

/* The path may have got another file while ww_remove waited for a lock of the one that it opened. */
static int check_path(const struct ww_store *store) {
    const char *path = store->backend.path;
    struct stat named, opened;
    if (stat(path, &named) || fstat(store->backend.fd, &opened))
        return ww_fail_errno(errno, "%s cannot be removed", path);
    if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        return ww_fail(ENOENT, "%s: the path names another file by now; nothing was removed", path);
    return 0;
}

int ww_remove(const char *path) {
    if (!path)
        return ww_fail(EINVAL, "the path is NULL");
    struct ww_store *store = store_new(path, &defaults);
    if (!store)
        return -1;
    int result = 0;
    store->backend.fd = open(path, O_RDWR | O_CLOEXEC);
    if (store->backend.fd < 0)
        result = ww_fail_errno(errno, "%s cannot be removed", path);
    else if (lock_setup(store) || check_path(store) || /* locks in the order of join */
             ww_check_super(store, &store->super))
        result = -1;
    else if (ww_lock(store, LOCK_OPEN, true, 0))
        result = ww_fail(EBUSY, "%s: the store is open, perhaps in another process", path);
    if (!result && store->super.kind == WW_SYSV && is_of_this_boot(store))
        result = check_ipc_namespace(store) ? -1 : ww_segments_read(&store->backend, &store->super);
    if (!result && unlink(path))
        result = ww_fail_errno(errno, "%s cannot be removed", path);
    if (!result)
        erase(store);
    store_free(store);
    return result;
}

int ww_fd(const ww_store *store) { return store ? store->backend.fd : ww_fail(EINVAL, "the store is NULL"); }

uint64_t ww_capacity(const ww_store *store) { return store ? store->capacity : 0; }
