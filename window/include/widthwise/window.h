/*
 * Windows beyond 4 GiB: a store of up to 16 TiB (a file, a memfd or System V segments), of which a program of
 * any width maps pieces. docs/window.md explains each function. All offsets, lengths and sizes are in bytes.
 *
 * Results: 0 (or a count) if all is well; -1 with errno and ww_error() if not. A failed call changes nothing.
 * Threads: a ww_store is a session of one thread at a time; each thread and process opens the store for
 * itself.
 *
 * Pointers: valid until their pin ends. One that is kept longer cannot be detected: it reads other bytes, or
 * faults. WW_STRICT, the default of a debug build, unmaps at the end of the last pin, so that it always
 * faults.
 */
#ifndef WIDTHWISE_WINDOW_H
#define WIDTHWISE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ww_store ww_store;
typedef uint64_t ww_handle; /* a place in one store, the same in every ABI, to be kept there; 0 is none */
typedef uint64_t ww_window; /* an attached window, until it is detached */

enum ww_kind { WW_FILE, WW_MEMFD, WW_SYSV };
enum ww_flag {
    WW_NO_SYNC = 1, /* commits survive kill -9, but a power cut may undo those since the last ww_sync */
    WW_STRICT = 2,  /* unmap at the end of the last pin */
    WW_LENIENT = 4, /* not even in a debug build */
};
typedef struct ww_options {    /* zero means the default */
    enum ww_kind kind;         /* of a new store */
    unsigned flags;            /* of enum ww_flag */
    uint64_t log_bytes;        /* of a new store: the most that a transaction writes [64 MiB to 64 GiB] */
    uint64_t segment_bytes;    /* of a new store of System V segments [64 MiB] */
    uint64_t window_bytes;     /* a power of two [1 MiB; 64-bit programs: 256 MiB] */
    uint64_t address_bytes;    /* of address space for windows [2 GiB; 64-bit programs: 64 TiB] */
    uint64_t checkpoint_bytes; /* of the log, after which a commit copies it into the data [64 MiB] */
    uint32_t wait_ms;          /* for another writer, or for readers [10 000] */
} ww_options;

/* Stores. A path /proc/PID/fd/N opens a memfd of another process. */
int ww_create(const char *path, uint64_t capacity, const ww_options *options, ww_store **store);
int ww_open(const char *path, const ww_options *options, ww_store **store);
int ww_open_fd(int fd, const ww_options *options, ww_store **store);
int ww_close(ww_store *store);    /* ends its transaction without a commit */
int ww_remove(const char *path);  /* the file and its System V segments */
int ww_fd(const ww_store *store); /* the descriptor, for a child's ww_open_fd */
uint64_t ww_capacity(const ww_store *store);
const char *ww_error(void); /* what failed last in this thread, in one sentence */

/* Transactions: a snapshot, or the one writer of all processes. Pins belong to one. */
enum ww_mode { WW_READ = 1, WW_WRITE = 2, WW_NO_WAIT = 4, WW_FRESH = 8 };
int ww_begin(ww_store *store, unsigned mode); /* WW_READ or WW_WRITE, with WW_NO_WAIT: EBUSY at once */
int ww_commit(ww_store *store);               /* durable on return, unless WW_NO_SYNC; ends a read as well */
int ww_abort(ww_store *store);
int ww_sync(ww_store *store);               /* makes earlier commits durable */
int ww_checkpoint(ww_store *store);         /* copies the log into the data, waiting for readers */
uint64_t ww_version(const ww_store *store); /* of the snapshot: the number of commits before it */

/* Handles. A store uses ww_handle_at or ww_allocate: an allocation begins where the last one ended, whatever
 * was written there through ww_handle_at, and has those bytes. */
int ww_handle_at(const ww_store *store, uint64_t offset, ww_handle *handle);
int ww_offset(const ww_store *store, ww_handle handle, uint64_t *offset);
int ww_allocate(ww_store *store, uint64_t bytes, uint64_t alignment,
                ww_handle *handle); /* zeros, if nothing was written there; never freed */
/* The one that the last ww_set_root stored, or 0; needs a transaction. */
int ww_root(const ww_store *store, ww_handle *handle);
int ww_set_root(ww_store *store, ww_handle handle);

/* Pins: the bytes at a handle, in contiguous memory. WW_WRITE | WW_FRESH: they are zeros,
 * and none is read. */
typedef struct ww_pinned {
    void *data;
    uint32_t window, generation; /* the library's */
} ww_pinned;
int ww_pin(ww_store *store, ww_handle handle, size_t length, unsigned mode, ww_pinned *pinned);
int ww_unpin(ww_store *store, ww_pinned *pinned);

/* Windows that stay mapped until they are detached, whatever else is pinned, across transactions. */
int ww_attach(ww_store *store, ww_handle handle, size_t length, ww_window *window);
int ww_window_data(ww_store *store, ww_window window,
                   const void **data); /* in a transaction, until its end */
int ww_detach(ww_store *store, ww_window window);

/* The bytes from a handle on, window by window: 1 with data and length, 0 at the end. WW_ALLOCATED leaves out
 * holes. */
enum { WW_ALLOCATED = 1 };
typedef struct ww_iterator {
    ww_handle handle; /* of data */
    const void *data;
    size_t length;
    uint64_t next, end, extent_end; /* the library's, as are the others */
    unsigned flags;
    ww_pinned pinned;
} ww_iterator;
int ww_iterate(ww_store *store, ww_handle handle, uint64_t length, unsigned flags, ww_iterator *iterator);
int ww_next(ww_store *store, ww_iterator *iterator);
int ww_iterator_end(ww_store *store, ww_iterator *iterator); /* before the end is reached */
int ww_extent(ww_store *store, uint64_t from, uint64_t *begin,
              uint64_t *end); /* the next allocated extent: 1 or 0 */

/* Needs a transaction that reads. Checks every page of the log against its checksums: 0, or -1 with
 * EBADMSG. */
int ww_verify(ww_store *store);
typedef struct ww_statistics {
    uint64_t mapped_bytes, attached, overlays, log_bytes; /* now */
    uint64_t evicted, copied, mappings; /* since it was opened: windows, reads without one, mmaps */
} ww_statistics;
void ww_statistics_of(const ww_store *store, ww_statistics *statistics);

/* SIGBUS below a window: bytes that are gone read as zeros, and every later call of the session fails with
 * EIO. ww_commit fails if it was caught before the changes were published; caught later, it shows in the
 * next call. The handler calls the program's own for other addresses. ww_owner: the session whose window has
 * the address, or NULL. */
int ww_catch_sigbus(void);
const ww_store *ww_owner(const void *address);

#ifdef __cplusplus
}
#endif
#endif
