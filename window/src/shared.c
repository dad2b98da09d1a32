/*
 * The page that sessions share, and their slots. The orders of accesses are sequentially consistent: a reader
 * writes its slot and then looks whether the state changed; a writer changes the state and then looks at the
 * slots. One of the two sees the other.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store.h"

#define SHARED_BYTES (SEGMENTS_OFFSET - SHARED_OFFSET)

int ww_shared_map(struct ww_store *store) {
    void *address =
        mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, store->backend.fd, SHARED_OFFSET);
    if (address == MAP_FAILED)
        return ww_fail_errno(errno, "%s: its shared pages cannot be mapped", store->backend.path);
    store->shared = address;
    store->shared_guard = ww_guard_add(store, address, SHARED_BYTES);
    store->slots = (struct slot *)((char *)address + (SLOTS_OFFSET - SHARED_OFFSET));
    return 0;
}

void ww_shared_unmap(struct ww_store *store) {
    if (!store->shared)
        return;
    ww_guard_remove(store->shared_guard);
    munmap(store->shared, SHARED_BYTES);
}

static void put_state(struct state *to, const struct state *from) {
    uint64_t words[STATE_WORDS];
    memcpy(words, from, sizeof words);
    for (unsigned i = 0; i < STATE_WORDS; i++)
        __atomic_store_n((uint64_t *)to + i, words[i], __ATOMIC_SEQ_CST);
}

/* Pages and slots of zeros are written before the mapping is touched: on a full disk a write fails, where the
 * mapping would raise SIGBUS. */
int ww_shared_begin(struct ww_store *store, const struct state *state) {
    struct shared *shared = store->shared;
    if (ww_backend_zero(&store->backend, SHARED_OFFSET, SHARED_BYTES))
        return -1;
    put_state(&shared->states[0], state);
    shared->magic = SHARED_MAGIC;
    return 0;
}

static uint64_t sequence_of(const struct ww_store *store) {
    return __atomic_load_n(&store->shared->sequence, __ATOMIC_SEQ_CST);
}

static uint64_t read_state(const struct ww_store *store, struct state *state) {
    for (;;) {
        const uint64_t sequence = sequence_of(store);
        const struct state *from = &store->shared->states[sequence & 1];
        uint64_t words[STATE_WORDS];
        for (unsigned i = 0; i < STATE_WORDS; i++)
            words[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_SEQ_CST);
        if (sequence_of(store) == sequence) {
            memcpy(state, words, sizeof words);
            return sequence;
        }
    }
}

void ww_shared_read(const struct ww_store *store, struct state *state) { read_state(store, state); }

void ww_shared_publish(struct ww_store *store, const struct state *state) {
    const uint64_t sequence = sequence_of(store);
    put_state(&store->shared->states[(sequence + 1) & 1], state);
    __atomic_store_n(&store->shared->sequence, sequence + 1, __ATOMIC_SEQ_CST);
}

int ww_slot_take(struct ww_store *store) {
    for (uint32_t i = 0; i < MOST_SESSIONS; i++)
        if (!ww_lock(store, LOCK_SLOTS + (int)i, true, 0)) {
            store->slot = i;
            __atomic_store_n(&store->slots[i].snapshot, 0, __ATOMIC_SEQ_CST);
            __atomic_store_n(&store->slots[i].process, (uint32_t)getpid(), __ATOMIC_SEQ_CST);
            return 0;
        } else if (errno != EBUSY) {
            return -1;
        }
    return ww_fail(EUSERS, "%s: %u sessions are open, and no more can be", store->backend.path,
                   MOST_SESSIONS);
}

void ww_slot_snapshot(struct ww_store *store) {
    uint64_t *snapshot = &store->slots[store->slot].snapshot;
    for (;;) {
        const uint64_t sequence = read_state(store, &store->state);
        store->from_log = store->state.backfilled != store->state.version;
        __atomic_store_n(snapshot, (store->state.version + 1) * 2 + store->from_log, __ATOMIC_SEQ_CST);
        if (sequence_of(store) == sequence)
            return;
    }
}

void ww_slot_release(struct ww_store *store) {
    __atomic_store_n(&store->slots[store->slot].snapshot, 0, __ATOMIC_SEQ_CST);
}

uint64_t ww_oldest_snapshot(struct ww_store *store, bool *from_log, uint32_t *process) {
    uint64_t oldest = UINT64_MAX;
    *from_log = false;
    for (uint32_t i = 0; i < MOST_SESSIONS; i++) {
        const uint64_t snapshot = __atomic_load_n(&store->slots[i].snapshot, __ATOMIC_SEQ_CST);
        if (i == store->slot || !snapshot)
            continue;
        if (!ww_is_locked(store, LOCK_SLOTS + (int)i))
            continue; /* its process was killed; the next session in the slot clears it */
        *from_log |= snapshot & 1;
        if (snapshot / 2 - 1 < oldest) {
            oldest = snapshot / 2 - 1;
            *process = __atomic_load_n(&store->slots[i].process, __ATOMIC_SEQ_CST);
        }
    }
    return oldest;
}
