/* Pages of a write transaction: each gets a frame of the log of its own, with the content it had. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static int log_is_full(const struct ww_store *store) {
    return ww_fail(
        ENOSPC,
        "%s: the log of %llu bytes is full; commit in smaller parts, end old snapshots, or create the store "
        "with larger log_bytes",
        store->backend.path, (unsigned long long)store->super.log_bytes);
}

static int reserve(struct ww_store *store, uint32_t count) {
    const uint64_t most = (uint64_t)store->undo_count + count;
    if (store->state.tail + count + ww_log_record_pages(most) > ww_log_frames(store))
        return log_is_full(store);
    if (most > store->undo_size) {
        uint64_t size = store->undo_size ? store->undo_size : 64;
        while (size < most)
            size *= 2;
        struct run *larger =
            size < SIZE_MAX / 64 ? realloc(store->undo, (size_t)size * sizeof *larger) : NULL;
        if (!larger)
            return ww_fail_errno(ENOMEM, "%s: %llu pages in a transaction", store->backend.path,
                                 (unsigned long long)size);
        store->undo = larger;
        store->undo_size = (uint32_t)size;
    }
    return ww_index_reserve(&store->index, count);
}

/* The content of pages that lie together, in the log or in the data. */
static int copy_pages(struct ww_store *store, uint32_t page, uint32_t count, uint64_t to, bool fresh) {
    if (fresh)
        return ww_backend_zero(&store->backend, to, (uint64_t)count << PAGE_BITS);
    for (uint32_t done = 0; done < count;) {
        const uint32_t frame = store->from_log ? ww_index_find(&store->index, page + done) : NO_FRAME;
        uint32_t part = 1;
        while (done + part < count) {
            const uint32_t next =
                store->from_log ? ww_index_find(&store->index, page + done + part) : NO_FRAME;
            if (next != (frame == NO_FRAME ? NO_FRAME : frame + part))
                break;
            part++;
        }
        const uint64_t from = frame == NO_FRAME ? data_offset(store, (uint64_t)(page + done) << PAGE_BITS)
                                                : frame_offset(frame);
        if (ww_backend_copy(&store->backend, from, to + ((uint64_t)done << PAGE_BITS),
                            (uint64_t)part << PAGE_BITS))
            return -1;
        done += part;
    }
    return 0;
}

/* Pages that have no frame of this transaction yet. */
static int add_pages(struct ww_store *store, uint32_t page, uint32_t count, bool fresh) {
    const uint32_t frame = (uint32_t)store->state.tail;
    if (reserve(store, count) || copy_pages(store, page, count, frame_offset(frame), fresh))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t before = store->from_log ? ww_index_find(&store->index, page + i) : NO_FRAME;
        store->undo[store->undo_count++] = (struct run){page + i, before, 1};
        ww_index_put(&store->index, page + i, frame + i);
    }
    store->from_log = true;
    store->state.tail += count;
    return ww_windows_overlay(store, (struct run){page, frame, count}, true);
}

static bool is_own(const struct ww_store *store, uint32_t page) {
    const uint32_t frame = ww_index_find(&store->index, page);
    return frame != NO_FRAME && frame >= store->first_frame && store->undo_count > 0;
}

static int add_missing(struct ww_store *store, uint64_t offset, uint64_t length, bool fresh) {
    const uint32_t first = (uint32_t)(offset >> PAGE_BITS);
    const uint32_t end = (uint32_t)((offset + length + PAGE_BYTES - 1) >> PAGE_BITS);
    for (uint32_t page = first; page < end;) {
        if (is_own(store, page)) {
            page++;
            continue;
        }
        uint32_t count = 1;
        while (page + count < end && !is_own(store, page + count))
            count++;
        /* Of pages at the ends, other bytes stay. */
        const bool whole_first = (uint64_t)page << PAGE_BITS >= offset;
        const bool whole_last = (uint64_t)(page + count) << PAGE_BITS <= offset + length;
        if (fresh && !whole_first)
            count = 1;
        else if (fresh && !whole_last && count > 1)
            count--;
        const bool is_fresh =
            fresh && whole_first && (uint64_t)(page + count) << PAGE_BITS <= offset + length;
        if (add_pages(store, page, count, is_fresh))
            return -1;
        page += count;
    }
    return 0;
}

/* Of a fresh pin: what its pages had in this transaction, and parts of pages at its ends. Whole pages that
 * were added from the frame `added` on are zeros already. */
static void zero_others(const struct ww_store *store, uint64_t offset, uint64_t length, char *data,
                        uint32_t added) {
    const uint64_t end = offset + length;
    for (uint64_t begin = offset; begin < end;) {
        const uint32_t page = (uint32_t)(begin >> PAGE_BITS);
        const uint64_t next = ((uint64_t)page + 1) << PAGE_BITS, stop = next < end ? next : end;
        if (stop - begin < PAGE_BYTES || ww_index_find(&store->index, page) < added)
            memset(data + (begin - offset), 0, (size_t)(stop - begin));
        begin = stop;
    }
}

/* Before the pin at `data` is written. What fails changes nothing. */
int ww_pages_write(struct ww_store *store, uint64_t offset, uint64_t length, char *data, bool fresh) {
    const uint32_t count = store->undo_count, added = (uint32_t)store->state.tail;
    if (add_missing(store, offset, length, fresh)) {
        const int error = errno;
        ww_pages_undo(store, count);
        store->state.tail = added;
        errno = error;
        return -1;
    }
    if (fresh)
        zero_others(store, offset, length, data, added);
    return 0;
}

int ww_pages_undo(struct ww_store *store, uint32_t first) {
    int result = 0;
    for (uint32_t i = first; i < store->undo_count;) {
        const struct run *undo = &store->undo[i];
        uint32_t count = 1;
        while (i + count < store->undo_count && undo[count].page == undo->page + count &&
               undo[count].frame == (undo->frame == NO_FRAME ? NO_FRAME : undo->frame + count))
            count++;
        for (uint32_t k = 0; k < count; k++)
            ww_index_put(&store->index, undo[k].page, undo[k].frame);
        if (ww_windows_overlay(store, (struct run){undo->page, undo->frame, count}, false))
            result = -1;
        i += count;
    }
    store->undo_count = first;
    return result;
}

static int forget_log(struct ww_store *store) {
    ww_index_clear(&store->index);
    return ww_windows_rebase(store);
}

static int apply_records(struct ww_store *store, const struct chain *chain) {
    for (uint32_t i = chain->count; i-- > 0;) {
        struct record record;
        struct run *runs;
        if (ww_log_read_record(store, chain->records[i], &record, &runs))
            return -1;
        int result = ww_index_reserve(&store->index, record.frames);
        for (uint32_t r = 0; !result && r < record.runs; r++) {
            for (uint32_t k = 0; k < runs[r].count; k++)
                ww_index_put(&store->index, runs[r].page + k, runs[r].frame + k);
            result = ww_windows_overlay(store, runs[r], false);
        }
        free(runs);
        if (result)
            return -1;
    }
    return 0;
}

/* Brings the index and the windows to the snapshot in store->state. */
int ww_pages_update(struct ww_store *store) {
    const struct state *state = &store->state;
    int result = 0;
    if (!store->from_log || store->index_epoch != state->epoch) {
        result = forget_log(store);
        store->index_version = 0;
    }
    if (!result && store->from_log) {
        struct chain chain;
        result = ww_log_chain(store, state, store->index_version, &chain);
        if (!result)
            result = apply_records(store, &chain);
        free(chain.records);
    }
    store->index_epoch = result ? UINT64_MAX : state->epoch;
    store->index_version = state->version;
    return result;
}

/* Bytes of the snapshot, without a mapping. */
int ww_pages_read(struct ww_store *store, void *bytes, size_t length, uint64_t offset) {
    if (!store->from_log || store->index.used == 0)
        return ww_backend_read(&store->backend, bytes, length, data_offset(store, offset));
    for (char *next = bytes; length > 0;) {
        const uint32_t page = (uint32_t)(offset >> PAGE_BITS);
        const size_t within = (size_t)(offset % PAGE_BYTES), left = PAGE_BYTES - within;
        const size_t part = length < left ? length : left;
        const uint32_t frame = ww_index_find(&store->index, page);
        const uint64_t from = frame == NO_FRAME ? data_offset(store, offset) : frame_offset(frame) + within;
        if (ww_backend_read(&store->backend, next, part, from))
            return -1;
        next += part;
        offset += part;
        length -= part;
    }
    return 0;
}
