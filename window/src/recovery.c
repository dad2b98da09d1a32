/* What a store's first session, or a writer after one that was killed, finds out from the roots. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* Whether all that the root names is there; frames of commits above `synced` may have been lost. */
static int verify(struct ww_store *store, const struct state *state, uint64_t synced) {
    struct chain chain;
    int result = ww_log_chain(store, state, 0, &chain);
    for (uint32_t i = 0; !result && i < chain.count; i++) {
        struct record record;
        struct run *runs;
        result = ww_log_read_record(store, chain.records[i], &record, &runs);
        free(runs);
        if (!result && i == 0 && record.version != state->version)
            result = ww_fail(EBADMSG, "%s: a root names another commit's record", store->backend.path);
        if (!result && record.version > synced)
            result = ww_log_verify_frames(store, &record);
    }
    free(chain.records);
    return result;
}

static bool is_newer(const struct state *one, const struct state *other) {
    return one->version != other->version ? one->version > other->version : one->epoch > other->epoch;
}

int ww_recover(struct ww_store *store, struct state *state) {
    struct root roots[ROOTS];
    bool valid[ROOTS];
    for (unsigned slot = 0; slot < ROOTS; slot++) {
        valid[slot] = !ww_log_read_root(store, slot, &roots[slot]);
        if (!valid[slot] && errno != EBADMSG)
            return -1;
    }
    int best;
    bool damaged = false;
    for (;;) {
        best = -1;
        for (int slot = 0; slot < ROOTS; slot++)
            if (valid[slot] && (best < 0 || is_newer(&roots[slot].state, &roots[best].state)))
                best = slot;
        if (best < 0)
            return ww_fail(EBADMSG, "%s: the store is damaged: no root and log fit together",
                           store->backend.path);
        uint64_t synced = 0;
        for (int slot = 0; slot < DURABLE_ROOTS; slot++)
            if (slot != best && valid[slot] && roots[slot].state.version > synced)
                synced = roots[slot].state.version;
        if (!verify(store, &roots[best].state, synced))
            break;
        if (errno != EBADMSG)
            return -1;
        valid[best] = false;
        damaged = true;
    }
    *state = roots[best].state;
    int durable = -1;
    for (int slot = 0; slot < DURABLE_ROOTS; slot++)
        if (valid[slot] && (durable < 0 || is_newer(&roots[slot].state, &roots[durable].state)))
            durable = slot;
    state->durable = durable < 0 ? 0 : roots[durable].state.version;
    state->slot = durable < 0 ? 1 : (uint64_t)durable;
    state->backfilled = state->record == NO_FRAME ? state->version : 0;
    /* What was found to be incomplete must never count, whatever is written over it. */
    static const struct root none;
    for (unsigned slot = 0; damaged && slot < ROOTS; slot++)
        if (!valid[slot] && ww_backend_write(&store->backend, &none, sizeof none, (1 + slot) * PAGE_BYTES))
            return -1;
    /* What counts may be in the page cache only, if its writer was killed before its sync ended. */
    return ww_backend_sync(&store->backend);
}
