/* Records and roots. Everything that is read here may be damaged: it is checked before it is used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

uint64_t ww_log_frames(const struct ww_store *store) { return store->super.log_bytes >> PAGE_BITS; }

uint64_t ww_log_record_pages(uint64_t runs) {
    return (sizeof(struct record) + runs * sizeof(struct run) + PAGE_BYTES - 1) >> PAGE_BITS;
}

static uint64_t root_checksum(const struct root *root) {
    return ww_checksum(root, offsetof(struct root, checksum));
}

int ww_log_read_root(const struct ww_store *store, unsigned slot, struct root *root) {
    if (ww_backend_read(&store->backend, root, sizeof *root, (1 + slot) * PAGE_BYTES))
        return -1;
    const struct state *state = &root->state;
    const bool is_valid = root->magic == ROOT_MAGIC && root->checksum == root_checksum(root) &&
                          state->version < UINT64_MAX / 4 && state->tail <= ww_log_frames(store) &&
                          (state->record == NO_FRAME || state->record < state->tail) &&
                          state->top <= store->capacity;
    return is_valid ? 0 : ww_fail(EBADMSG, "%s: root %u is not valid", store->backend.path, slot);
}

int ww_log_write_root(struct ww_store *store, unsigned slot, const struct state *state) {
    struct root root = {.magic = ROOT_MAGIC, .state = *state};
    root.checksum = root_checksum(&root);
    return ww_backend_write(&store->backend, &root, sizeof root, (1 + slot) * PAGE_BYTES);
}

static uint64_t record_checksum(struct record record, const struct run *runs) {
    struct checksum sum;
    record.checksum = 0;
    ww_checksum_begin(&sum);
    ww_checksum_add(&sum, &record, sizeof record);
    ww_checksum_add(&sum, runs, record.runs * sizeof *runs);
    return ww_checksum_end(&sum);
}

static int frames_checksum(const struct ww_store *store, uint32_t first, uint32_t count, uint64_t *checksum) {
    uint32_t buffer[16384];
    struct checksum sum;
    ww_checksum_begin(&sum);
    for (uint64_t done = 0, length = (uint64_t)count << PAGE_BITS; done < length;) {
        const size_t part = length - done < sizeof buffer ? (size_t)(length - done) : sizeof buffer;
        if (ww_backend_read(&store->backend, buffer, part, frame_offset(first) + done))
            return -1;
        ww_checksum_add(&sum, buffer, part);
        done += part;
    }
    *checksum = ww_checksum_end(&sum);
    return 0;
}

/* Page i of the transaction is in frame first_frame + i. */
static uint32_t gather_runs(const struct ww_store *store, struct run *runs) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->undo_count; i++) {
        const uint32_t page = store->undo[i].page;
        if (count && runs[count - 1].page + runs[count - 1].count == page)
            runs[count - 1].count++;
        else
            runs[count++] = (struct run){page, store->first_frame + i, 1};
    }
    return count;
}

/* Appends the transaction's record; the state is that after the commit. */
int ww_log_append(struct ww_store *store, struct state *state) {
    const uint64_t most = sizeof(struct record) + store->undo_count * (uint64_t)sizeof(struct run);
    struct record *record = calloc(1, (size_t)((most + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1)));
    if (!record)
        return ww_fail_errno(ENOMEM, "%s: the record of %u pages", store->backend.path, store->undo_count);
    struct run *runs = (struct run *)(record + 1);
    *record = (struct record){.magic = RECORD_MAGIC,
                              .version = state->version + 1,
                              .epoch = state->epoch,
                              .first_frame = store->first_frame,
                              .frames = store->undo_count,
                              .previous = (uint32_t)state->record};
    record->runs = gather_runs(store, runs);
    const uint64_t pages = ww_log_record_pages(record->runs);
    int result = -1;
    if (state->tail + pages > ww_log_frames(store)) {
        ww_fail(ENOSPC, "%s: the log is full", store->backend.path);
    } else if (!frames_checksum(store, record->first_frame, record->frames, &record->frames_checksum)) {
        record->checksum = record_checksum(*record, runs);
        result = ww_backend_write(&store->backend, record, (size_t)(pages << PAGE_BITS),
                                  frame_offset(state->tail));
    }
    free(record);
    if (result)
        return -1;
    state->record = state->tail;
    state->tail += pages;
    state->version++;
    return 0;
}

static int bad_record(const struct ww_store *store, uint32_t frame) {
    return ww_fail(EBADMSG, "%s: the log's record in frame %u is damaged", store->backend.path, frame);
}

static bool is_record(const struct ww_store *store, const struct record *record, uint32_t frame) {
    return record->magic == RECORD_MAGIC && (uint64_t)record->first_frame + record->frames == frame &&
           record->runs <= record->frames && record->version > 0 &&
           frame + ww_log_record_pages(record->runs) <= ww_log_frames(store) &&
           (record->previous == NO_FRAME || record->previous < record->first_frame);
}

static bool are_runs(const struct ww_store *store, const struct record *record, const struct run *runs) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < record->runs; i++) {
        if (runs[i].frame != record->first_frame + sum || runs[i].count == 0 ||
            (uint64_t)runs[i].page + runs[i].count > store->capacity >> PAGE_BITS)
            return false;
        sum += runs[i].count;
    }
    return sum == record->frames;
}

/* A record that lies there, with its runs, to be freed. */
int ww_log_read_record(const struct ww_store *store, uint32_t frame, struct record *record,
                       struct run **runs) {
    *runs = NULL;
    if (ww_backend_read(&store->backend, record, sizeof *record, frame_offset(frame)))
        return -1;
    if (!is_record(store, record, frame))
        return bad_record(store, frame);
    const uint64_t bytes = (uint64_t)record->runs * sizeof **runs;
    struct run *read = bytes < SIZE_MAX / 2 ? malloc((size_t)bytes + 1) : NULL;
    if (!read)
        return ww_fail_errno(ENOMEM, "%s: %u runs of a record", store->backend.path, record->runs);
    if (ww_backend_read(&store->backend, read, (size_t)bytes, frame_offset(frame) + sizeof *record)) {
        free(read);
        return -1;
    }
    if (record->checksum != record_checksum(*record, read) || !are_runs(store, record, read)) {
        free(read);
        return bad_record(store, frame);
    }
    *runs = read;
    return 0;
}

int ww_log_verify_frames(const struct ww_store *store, const struct record *record) {
    uint64_t checksum;
    if (frames_checksum(store, record->first_frame, record->frames, &checksum))
        return -1;
    if (checksum != record->frames_checksum)
        return ww_fail(EBADMSG, "%s: pages of commit %llu are damaged in the log", store->backend.path,
                       (unsigned long long)record->version);
    return 0;
}

/* The records of versions above `after`, the newest first; chain->records is to be freed in any case. */
int ww_log_chain(const struct ww_store *store, const struct state *state, uint64_t after,
                 struct chain *chain) {
    *chain = (struct chain){0};
    uint64_t version = state->version, frame = state->record;
    while (frame != NO_FRAME) {
        struct record record;
        struct run *runs;
        if (ww_log_read_record(store, (uint32_t)frame, &record, &runs))
            return -1;
        free(runs);
        if (record.epoch != state->epoch || record.version > version)
            return bad_record(store, (uint32_t)frame);
        if (record.version <= after)
            return 0;
        if (chain->count == chain->size) {
            const uint32_t size = chain->size ? chain->size * 2 : 16;
            uint32_t *larger = realloc(chain->records, size * sizeof *larger);
            if (!larger)
                return ww_fail_errno(ENOMEM, "%s: %u records", store->backend.path, size);
            chain->records = larger;
            chain->size = size;
        }
        chain->records[chain->count++] = (uint32_t)frame;
        version = record.version - 1;
        frame = record.previous;
    }
    return 0;
}
