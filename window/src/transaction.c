/* Begin, commit, abort. */
#include <errno.h>
#include <unistd.h>

#include "store.h"

static int has_transaction(struct ww_store *store, unsigned mode) {
    if (!store)
        return ww_fail(EINVAL, "the store is NULL");
    if (ww_check_session(store))
        return -1;
    if (store->mode == 0)
        return ww_fail(EINVAL, "%s: no transaction is under way; call ww_begin first", store->backend.path);
    if (mode == WW_WRITE && store->mode != WW_WRITE)
        return ww_fail(EROFS, "%s: the transaction only reads; begin one with WW_WRITE", store->backend.path);
    return 0;
}

int ww_has_transaction(struct ww_store *store, unsigned mode) { return has_transaction(store, mode); }

/* A session that has waited for so long takes LOCK_NEXT_WRITER, and is not overtaken any more. If it took it
 * at once, sessions would take turns, and each commit would cost a wait. */
#define PATIENCE_MS 20

static int lock_writer(struct ww_store *store, uint32_t wait_ms) {
    bool is_next = false;
    int result = -1;
    for (uint32_t waited = 0;; waited = ww_pause(waited)) {
        if (!is_next && waited >= PATIENCE_MS)
            is_next = !ww_lock(store, LOCK_NEXT_WRITER, true, 0);
        errno = EBUSY;
        if (is_next || !ww_is_locked(store, LOCK_NEXT_WRITER))
            result = ww_lock(store, LOCK_WRITER, true, 0);
        if (!result || errno != EBUSY || waited >= wait_ms)
            break;
    }
    const int error = errno;
    if (is_next)
        ww_unlock(store, LOCK_NEXT_WRITER);
    if (!result || error != EBUSY)
        return result;
    const uint32_t process = __atomic_load_n(&store->shared->writer, __ATOMIC_SEQ_CST);
    return process
               ? ww_fail(EBUSY, "%s: the store is locked: process %u writes", store->backend.path, process)
               : ww_fail(EBUSY, "%s: the store is locked: another session is about to write",
                         store->backend.path);
}

static void writing(struct ww_store *store, bool is) {
    __atomic_store_n(&store->shared->writer, is ? (uint32_t)getpid() : 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&store->shared->writing, is, __ATOMIC_SEQ_CST);
}

static void unlock_writer(struct ww_store *store) {
    if (!store->broken)
        writing(store, false);
    ww_unlock(store, LOCK_WRITER);
}

/* The writer's lock; if the writer before was killed, what it left is brought in order. */
static int begin_writing(struct ww_store *store, uint32_t wait_ms) {
    if (lock_writer(store, wait_ms))
        return -1;
    if (__atomic_load_n(&store->shared->writing, __ATOMIC_SEQ_CST)) {
        struct state state, published;
        if (ww_recover(store, &state)) {
            ww_unlock(store, LOCK_WRITER);
            return -1;
        }
        ww_shared_read(store, &published);
        if (published.epoch == state.epoch && published.backfilled > state.backfilled)
            state.backfilled = published.backfilled;
        ww_shared_publish(store, &state);
    }
    writing(store, true);
    return 0;
}

static int begin_snapshot(struct ww_store *store, unsigned mode) {
    ww_slot_snapshot(store);
    if (ww_pages_update(store)) {
        ww_slot_release(store);
        return -1;
    }
    store->first_frame = (uint32_t)store->state.tail;
    store->undo_count = 0;
    store->mode = mode;
    atomic_store(&store->usable, store->super.tag);
    return 0;
}

/* Readers that never pause keep the log from beginning anew, until somebody waits for them. If it is nearly
 * full, that may take longer, but once for each snapshot: it may be there to stay. What fails is tried again.
 */
static void make_place(struct ww_store *store, const struct state *state, unsigned mode) {
    uint32_t wait_ms = mode & WW_NO_WAIT || store->wait_ms < 100 ? 0 : 100;
    uint64_t oldest = store->kept_by;
    if (wait_ms && state->tail > ww_log_frames(store) / 8 * 7) {
        bool from_log;
        uint32_t process;
        oldest = ww_oldest_snapshot(store, &from_log, &process);
        if (oldest != store->kept_by)
            wait_ms = store->wait_ms;
    }
    if (ww_checkpoint_log(store, wait_ms))
        store->kept_by = oldest;
}

/* What was read of the shared pages is not theirs if these are gone: nothing stays taken. */
static int check_begin(struct ww_store *store) {
    if (!atomic_load(&store->fault))
        return 0;
    ww_abort_now(store);
    return ww_check_session(store);
}

int ww_begin(ww_store *store, unsigned mode) {
    if (!store)
        return ww_fail(EINVAL, "the store is NULL");
    if (ww_check_session(store))
        return -1;
    const unsigned access = mode & (WW_READ | WW_WRITE);
    if ((access != WW_READ && access != WW_WRITE) || mode & ~(unsigned)(WW_READ | WW_WRITE | WW_NO_WAIT))
        return ww_fail(EINVAL, "mode %u is neither WW_READ nor WW_WRITE, with WW_NO_WAIT or without", mode);
    if (store->mode)
        return ww_fail(EINVAL, "%s: a transaction is under way; commit or abort it first",
                       store->backend.path);
    if (access == WW_READ)
        return begin_snapshot(store, WW_READ) ? -1 : check_begin(store);
    if (begin_writing(store, mode & WW_NO_WAIT ? 0 : store->wait_ms))
        return -1;
    struct state state;
    ww_shared_read(store, &state);
    if (state.tail > ww_log_frames(store) / 4 * 3)
        make_place(store, &state, mode);
    if (store->broken || begin_snapshot(store, WW_WRITE)) {
        unlock_writer(store);
        return store->broken ? ww_check_session(store) : -1;
    }
    store->wrote = true;
    return check_begin(store);
}

static void end(struct ww_store *store) {
    store->mode = 0;
    atomic_store(&store->usable, 0);
    ww_slot_release(store);
}

static int has_no_pins(const struct ww_store *store) {
    if (store->pins)
        return ww_fail(EBUSY, "%s: %u pins are not ended; a transaction ends after its pins",
                       store->backend.path, store->pins);
    return 0;
}

/* One sync: checksums tell whether the frames, the record and the root that it names all arrived. */
static int publish(struct ww_store *store, struct state *state) {
    if (ww_log_append(store, state))
        return -1;
    if (store->flags & WW_NO_SYNC) {
        if (ww_log_write_root(store, VOLATILE_ROOT, state))
            return -1;
    } else {
        state->slot ^= 1;
        state->durable = state->version;
        if (ww_log_write_root(store, (unsigned)state->slot, state))
            return -1;
        if (ww_backend_sync(&store->backend)) {
            store->broken = true;
            return -1;
        }
    }
    ww_shared_publish(store, state);
    return ww_check_fault(store);
}

int ww_commit(ww_store *store) {
    if (has_transaction(store, WW_READ) || has_no_pins(store))
        return -1;
    if (store->mode == WW_READ) {
        end(store);
        return ww_check_fault(store);
    }
    struct state before, after = store->state;
    ww_shared_read(store, &before);
    if (ww_check_fault(store))
        return -1;
    if (store->undo_count || after.top != before.top || after.root != before.root) {
        if (publish(store, &after))
            return -1;
        if (ww_windows_protect(store))
            store->broken = true; /* the commit is complete, but this session could write into it */
        store->index_version = after.version;
        store->undo_count = 0;
    }
    end(store);
    if (after.tail << PAGE_BITS >= store->checkpoint_bytes)
        ww_checkpoint_log(store, 0); /* what fails now is tried again after the next commit */
    unlock_writer(store);
    return 0; /* a SIGBUS since the publication shows in the next call */
}

/* Also without a look at pins, for ww_close. */
int ww_abort_now(struct ww_store *store) {
    int result = 0;
    if (store->mode == WW_WRITE) {
        result = ww_pages_undo(store, 0);
        if (store->broken)
            store->index_epoch = UINT64_MAX;
    }
    const bool wrote = store->mode == WW_WRITE;
    end(store);
    if (wrote)
        unlock_writer(store);
    return result;
}

int ww_abort(ww_store *store) {
    if (has_transaction(store, WW_READ) || has_no_pins(store))
        return -1;
    return ww_abort_now(store);
}

static int has_none(struct ww_store *store) {
    if (!store)
        return ww_fail(EINVAL, "the store is NULL");
    if (ww_check_session(store))
        return -1;
    if (store->mode)
        return ww_fail(EINVAL, "%s: a transaction is under way; commit or abort it first",
                       store->backend.path);
    return 0;
}

int ww_sync(ww_store *store) {
    if (has_none(store) || begin_writing(store, store->wait_ms))
        return -1;
    struct state state;
    ww_shared_read(store, &state);
    int result = ww_check_fault(store);
    if (!result && state.durable < state.version)
        result = ww_sync_log(store, &state);
    unlock_writer(store);
    return result;
}

int ww_checkpoint_within(struct ww_store *store, uint32_t wait_ms) {
    if (begin_writing(store, wait_ms))
        return -1;
    const int result = ww_checkpoint_log(store, wait_ms);
    unlock_writer(store);
    return result;
}

int ww_checkpoint(ww_store *store) {
    return has_none(store) ? -1 : ww_checkpoint_within(store, store->wait_ms);
}

uint64_t ww_version(const ww_store *store) { return store && store->mode ? store->state.version : 0; }
