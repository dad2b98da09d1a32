/* A session, and what its parts offer each other; each file uses only parts that are declared before its own.
 */
#ifndef WIDTHWISE_WINDOW_STORE_H
#define WIDTHWISE_WINDOW_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"
#include "widthwise/window.h"

/* error.c */
__attribute__((format(printf, 2, 3))) int ww_fail(int error, const char *format, ...);
__attribute__((format(printf, 2, 3))) int ww_fail_errno(int error, const char *format, ...);

/* checksum.c: of any length, so that the parts of a whole can be added. */
struct checksum {
    uint32_t lanes[4];
    uint64_t length;
};
void ww_checksum_begin(struct checksum *sum);
void ww_checksum_add(struct checksum *sum, const void *bytes, size_t length); /* a multiple of 4 */
uint64_t ww_checksum_end(const struct checksum *sum);
uint64_t ww_checksum(const void *bytes, size_t length);

/* backend.c, segments.c: where the bytes are. Offsets are those of the store. */
struct attachment { /* of a whole System V segment */
    uint32_t segment;
    char *address;
};
#define MOST_ATTACHMENTS 8
struct backend {
    int fd;
    enum ww_kind kind;
    char *path;
    uint64_t segment_bytes;
    uint32_t segments;
    int32_t *identifiers; /* of System V segments */
    struct attachment *attachments;
    bool no_sync; /* nothing of it survives the system */
};
int ww_backend_read(const struct backend *backend, void *bytes, size_t length, uint64_t offset);
int ww_backend_write(const struct backend *backend, const void *bytes, size_t length, uint64_t offset);
int ww_backend_copy(const struct backend *backend, uint64_t from, uint64_t to, uint64_t length);
int ww_backend_zero(const struct backend *backend, uint64_t offset, uint64_t length);
int ww_backend_sync(const struct backend *backend);
/* Maps over what is at the address. */
int ww_backend_map(const struct backend *backend, char *address, size_t length, uint64_t offset,
                   bool writable);
/* The next range with data at or after offset, up to end: 1, or 0. */
int ww_backend_extent(const struct backend *backend, uint64_t offset, uint64_t end, uint64_t *begin,
                      uint64_t *stop);

int ww_segments_create(struct backend *backend, uint64_t bytes);
int ww_segments_read(struct backend *backend, const struct superblock *super); /* which they are */
int ww_segments_open(struct backend *backend, const struct superblock *super);
void ww_segments_remove(const struct backend *backend);
void ww_segments_close(struct backend *backend);
int ww_segments_map(const struct backend *backend, char *address, size_t length, uint64_t offset,
                    bool writable);
int ww_segments_copy(const struct backend *backend, void *bytes, size_t length, uint64_t offset, bool write);

/* index.c: which frame of the log has a page. */
struct index {
    struct run *cells; /* count is 1 for a cell in use; frame may be NO_FRAME: the page is in the data */
    uint32_t size, used;
    uint32_t *sorted; /* the pages that are in the log, or NULL: not known */
    uint32_t sorted_count;
};
uint32_t ww_index_find(const struct index *index, uint32_t page);
int ww_index_reserve(struct index *index, uint32_t pages);
void ww_index_put(struct index *index, uint32_t page, uint32_t frame); /* after a reserve */
void ww_index_clear(struct index *index);
void ww_index_free(struct index *index);
/* The pages in the log, in order: 0, and they stay until the index changes. */
int ww_index_sort(struct index *index);

enum window_kind { WINDOW_FREE, WINDOW_GRID, WINDOW_SPAN, WINDOW_COPY };
struct place { /* reserved address space */
    char *address;
    uint32_t guard;
};
struct window {
    struct place place;
    char *address;
    uint64_t offset; /* of the first byte, in the data */
    uint64_t length; /* whole pages */
    uint32_t pins;
    uint32_t generation;   /* how often this place was used */
    uint32_t newer, older; /* in the order of use */
    uint32_t overlays;     /* mappings of frames over the data's */
    uint8_t kind;
    bool attached; /* by ww_attach, at the byte `skip` of its first page */
    uint16_t skip;
    bool writable; /* some of it */
};

struct ww_store {
    /* What ww_pin looks at. */
    _Atomic uint32_t usable; /* the tag of its handles, or 0: handles are not usable now */
    uint32_t mode;           /* WW_READ, WW_WRITE, or 0: no transaction */
    unsigned window_bits;
    uint64_t capacity;
    uint32_t *directory; /* window + 1 of each piece of 1 << window_bits bytes */
    struct window *windows;

    uint32_t newest, oldest; /* window + 1 */
    uint32_t windows_size, windows_used, free_window;
    uint32_t pins; /* in all */
    uint64_t directory_size;
    uint64_t address_bytes, reserved_bytes;
    struct place *free_places; /* of grid windows */
    uint32_t free_count, free_size;
    uint32_t free_copy; /* window + 1: copies whose memory can be used again */
    uint32_t spans;     /* windows of kind WINDOW_SPAN */
    uint32_t random;
    uint64_t missed; /* the piece of the last pin without a window, and how many in sequence */
    uint32_t misses;

    struct backend backend;
    struct superblock super;
    struct shared *shared;
    uint32_t shared_guard;
    struct slot *slots;
    uint32_t slot;
    unsigned flags;
    uint32_t wait_ms;
    uint64_t checkpoint_bytes;
    uint32_t generation;       /* of the process: a fork makes it stale */
    uint32_t first_generation; /* of its windows: another session's have others */
    _Atomic uintptr_t fault;   /* where a SIGBUS was caught */
    bool broken;               /* a sync failed: what is on the disk is not known */
    bool wrote;
    uint64_t kept_by; /* the snapshot for which the log stayed when a writer last waited for it */

    struct state state; /* of the snapshot; in a write transaction what it will publish */
    bool from_log;      /* the index counts */
    uint64_t index_epoch, index_version;
    struct index index;

    uint32_t first_frame; /* of the write transaction */
    struct run *undo;     /* page and the frame it had before, for each page of the transaction */
    uint32_t undo_count, undo_size;
    struct ww_statistics statistics;
};

static inline uint64_t frame_offset(uint64_t frame) { return LOG_OFFSET + (frame << PAGE_BITS); }
static inline uint64_t data_offset(const struct ww_store *store, uint64_t at) {
    return store->super.data_offset + at;
}

/* guard.c: forks and SIGBUS. */
uint32_t ww_process_generation(void);
uint32_t ww_guard_add(struct ww_store *store, const char *address, uint64_t length);
void ww_guard_remove(uint32_t guard);
int ww_check_session(struct ww_store *store); /* 0 if it may be used */
/* After a look at the shared pages: a file that was truncated has none, and zeros were read. */
int ww_check_fault(struct ww_store *store);

/* locks.c */
int ww_lock(const struct ww_store *store, int byte, bool exclusive, uint32_t wait_ms);
void ww_unlock(const struct ww_store *store, int byte);
void ww_unlock_all(const struct ww_store *store);
bool ww_is_locked(const struct ww_store *store, int byte);
uint32_t ww_pause(uint32_t waited); /* sleeps a moment; the new sum in ms */

/* shared.c: what sessions know of each other. */
int ww_shared_map(struct ww_store *store);
void ww_shared_unmap(struct ww_store *store);
int ww_shared_begin(struct ww_store *store, const struct state *state); /* by the first session */
void ww_shared_read(const struct ww_store *store, struct state *state);
void ww_shared_publish(struct ww_store *store, const struct state *state);
int ww_slot_take(struct ww_store *store);
void ww_slot_snapshot(struct ww_store *store); /* the newest state, and protects it */
void ww_slot_release(struct ww_store *store);
/* The oldest snapshot that others read, or UINT64_MAX; whether anybody reads from the log. */
uint64_t ww_oldest_snapshot(struct ww_store *store, bool *from_log, uint32_t *process);

/* windows.c: mappings. Windows are named by their number. */
int ww_windows_open(struct ww_store *store, const ww_options *options);
void ww_windows_close(struct ww_store *store);
int ww_window_grid(struct ww_store *store, uint64_t piece, uint32_t *window);
int ww_window_span(struct ww_store *store, uint64_t offset, uint64_t length, uint32_t *window);
int ww_window_copy(struct ww_store *store, uint64_t offset, size_t length, uint32_t *window);
bool ww_window_admits(struct ww_store *store, uint64_t piece); /* whether it should be attached */
void ww_window_used(struct ww_store *store, uint32_t window);
void ww_window_drop(struct ww_store *store, uint32_t window); /* unpinned: unmaps it */
/* A run of pages has other frames now: maps these in every window. */
int ww_windows_overlay(struct ww_store *store, struct run run, bool writable);
int ww_windows_rebase(struct ww_store *store);  /* no page is in the log any more */
int ww_windows_protect(struct ww_store *store); /* those with pages of the transaction */

/* log.c: records and roots. */
uint64_t ww_log_frames(const struct ww_store *store);
uint64_t ww_log_record_pages(uint64_t runs);
struct chain {
    uint32_t *records; /* frames where they begin, the newest first */
    uint32_t count, size;
};
int ww_log_read_root(const struct ww_store *store, unsigned slot, struct root *root);
int ww_log_write_root(struct ww_store *store, unsigned slot, const struct state *state);
int ww_log_append(struct ww_store *store, struct state *state);
int ww_log_read_record(const struct ww_store *store, uint32_t frame, struct record *record,
                       struct run **runs);
int ww_log_chain(const struct ww_store *store, const struct state *state, uint64_t after,
                 struct chain *chain);
int ww_log_verify_frames(const struct ww_store *store, const struct record *record);

/* transaction.c: whether one is under way, of at least that mode. */
int ww_has_transaction(struct ww_store *store, unsigned mode);
int ww_abort_now(struct ww_store *store);
int ww_checkpoint_within(struct ww_store *store,
                         uint32_t wait_ms); /* waits for other sessions at most so long */

/* superblock.c */
int ww_check_super(const struct ww_store *store, struct superblock *super);

/* recovery.c */
int ww_recover(struct ww_store *store, struct state *state);

/* checkpoint.c */
int ww_checkpoint_log(struct ww_store *store, uint32_t wait_ms);

/* pages.c: pages of a write transaction. */
int ww_pages_write(struct ww_store *store, uint64_t offset, uint64_t length, char *data, bool fresh);
int ww_pages_undo(struct ww_store *store, uint32_t first); /* of the transaction's pages, from that on */
int ww_pages_update(struct ww_store *store);               /* the index and windows, to the snapshot */
int ww_pages_read(struct ww_store *store, void *bytes, size_t length, uint64_t offset);
int ww_sync_log(struct ww_store *store, struct state *state);

#endif
