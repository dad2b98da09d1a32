/*
 * Copies pages from the log into the data, and begins the log anew. The caller holds the writer's lock.
 * Waits so long for readers of older snapshots.
 */
#include <errno.h>
#include <stdlib.h>

#include "store.h"

int ww_sync_log(struct ww_store *store, struct state *state) {
    const unsigned slot = (unsigned)state->slot ^ 1;
    struct state durable = *state;
    durable.durable = state->version;
    durable.slot = slot;
    if (ww_backend_sync(&store->backend) || ww_log_write_root(store, slot, &durable) ||
        ww_backend_sync(&store->backend)) {
        store->broken = true;
        return -1;
    }
    *state = durable;
    ww_shared_publish(store, state);
    return 0;
}

/* The newest frame of each page, of the commits above `after` up to `upto`. */
static int gather(const struct ww_store *store, const struct state *state, uint64_t after, uint64_t upto,
                  struct index *index) {
    struct chain chain;
    int result = ww_log_chain(store, state, after, &chain);
    for (uint32_t i = chain.count; !result && i-- > 0;) {
        struct record record;
        struct run *runs;
        result = ww_log_read_record(store, chain.records[i], &record, &runs);
        if (!result && record.version <= upto)
            result = ww_index_reserve(index, record.frames);
        for (uint32_t r = 0; !result && record.version <= upto && r < record.runs; r++)
            for (uint32_t k = 0; k < runs[r].count; k++)
                ww_index_put(index, runs[r].page + k, runs[r].frame + k);
        free(runs);
    }
    free(chain.records);
    return result;
}

static int copy_pages(struct ww_store *store, struct index *index) {
    if (ww_index_sort(index))
        return -1;
    for (uint32_t i = 0; i < index->sorted_count;) {
        const uint32_t page = index->sorted[i], frame = ww_index_find(index, page);
        uint32_t count = 1;
        while (i + count < index->sorted_count && index->sorted[i + count] == page + count &&
               ww_index_find(index, page + count) == frame + count)
            count++;
        if (ww_backend_copy(&store->backend, frame_offset(frame),
                            data_offset(store, (uint64_t)page << PAGE_BITS), (uint64_t)count << PAGE_BITS))
            return -1;
        i += count;
    }
    return 0;
}

/* As far as snapshots that others read allow. */
static int backfill(struct ww_store *store, struct state *state, uint32_t wait_ms) {
    uint64_t upto;
    for (uint32_t waited = 0;;) {
        bool from_log;
        uint32_t process = 0;
        const uint64_t oldest = ww_oldest_snapshot(store, &from_log, &process);
        if (ww_check_fault(store))
            return -1;
        upto = oldest < state->version ? oldest : state->version;
        if (upto == state->version || !wait_ms)
            break;
        if (waited >= wait_ms)
            return ww_fail(
                EBUSY, "%s: process %u still reads commit %llu of %llu, which keeps the log from ending",
                store->backend.path, process, (unsigned long long)oldest, (unsigned long long)state->version);
        waited = ww_pause(waited);
    }
    if (upto <= state->backfilled)
        return 0;
    if (state->durable < state->version && ww_sync_log(store, state))
        return -1;
    struct index index = {0};
    int result = gather(store, state, state->backfilled, upto, &index);
    if (!result)
        result = copy_pages(store, &index);
    ww_index_free(&index);
    if (result)
        return -1;
    state->backfilled = upto; /* not yet synced: the log stays until begin_epoch has synced the data */
    ww_shared_publish(store, state);
    return 0;
}

/*
 * New readers must not begin to read from the log: the state without a log is published before the slots are
 * looked at. If somebody does read from it, the log stays, and so does the state before.
 */
static int begin_epoch(struct ww_store *store, struct state *state, uint32_t wait_ms) {
    const struct state before = *state;
    int result = 0;
    state->epoch++;
    state->record = NO_FRAME;
    state->tail = 0;
    ww_shared_publish(store, state);
    bool from_log;
    uint32_t process;
    for (uint32_t waited = 0;; waited = ww_pause(waited)) {
        ww_oldest_snapshot(store, &from_log, &process);
        result = ww_check_fault(store);
        if (!result && !from_log)
            return ww_sync_log(store, state);
        if (result || waited >= wait_ms)
            break;
    }
    *state = before;
    ww_shared_publish(store, state);
    if (!result && wait_ms)
        result = ww_fail(EBUSY, "%s: another process still reads from the log", store->backend.path);
    return result;
}

int ww_checkpoint_log(struct ww_store *store, uint32_t wait_ms) {
    struct state state;
    ww_shared_read(store, &state);
    if (ww_check_fault(store) || backfill(store, &state, wait_ms))
        return -1;
    if (state.backfilled != state.version || state.record == NO_FRAME)
        return 0;
    return begin_epoch(store, &state, wait_ms);
}
