/* Iteration over a range, window by window, and over allocated extents. */
#include <errno.h>
#include <stdlib.h>

#include "store.h"

/* The first sorted page at or after that one. */
static uint32_t lower_bound(const struct index *index, uint64_t page) {
    uint32_t low = 0, high = index->sorted_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (index->sorted[middle] < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ww_extent(ww_store *store, uint64_t from, uint64_t *begin, uint64_t *end) {
    if (ww_has_transaction(store, WW_READ))
        return -1;
    if (!begin || !end)
        return ww_fail(EINVAL, "a result is NULL");
    *begin = *end = store->capacity;
    if (from >= store->capacity)
        return 0;
    const uint64_t base = store->super.data_offset;
    const int found = ww_backend_extent(&store->backend, base + from, base + store->capacity, begin, end);
    if (found < 0)
        return -1;
    *begin -= base;
    *end -= base;
    if (!store->from_log || store->index.used == 0)
        return found;
    struct index *index = &store->index;
    if (ww_index_sort(index))
        return -1;
    const uint32_t first = lower_bound(index, from >> PAGE_BITS);
    if (first == index->sorted_count)
        return found;
    const uint64_t page = index->sorted[first];
    const uint64_t at = page << PAGE_BITS < from ? from : page << PAGE_BITS;
    if (at >= store->capacity || (found && *begin <= at))
        return found;
    uint32_t count = 1;
    while (first + count < index->sorted_count && index->sorted[first + count] == page + count)
        count++;
    *begin = at;
    *end = (page + count) << PAGE_BITS;
    return 1;
}

int ww_iterate(ww_store *store, ww_handle handle, uint64_t length, unsigned flags, ww_iterator *iterator) {
    uint64_t at;
    if (ww_has_transaction(store, WW_READ) || ww_offset(store, handle, &at))
        return -1;
    if (!iterator || flags & ~(unsigned)WW_ALLOCATED)
        return ww_fail(EINVAL, "%s: the iterator is NULL, or its flags %u are unknown", store->backend.path,
                       flags);
    if (length > store->capacity - at)
        return ww_fail(ERANGE, "%s: %llu bytes at offset %llu are beyond the store's %llu",
                       store->backend.path, (unsigned long long)length, (unsigned long long)at,
                       (unsigned long long)store->capacity);
    *iterator = (ww_iterator){.handle = handle, .next = at, .end = at + length, .flags = flags};
    iterator->extent_end = flags & WW_ALLOCATED ? at : at + length;
    return 0;
}

int ww_iterator_end(ww_store *store, ww_iterator *iterator) {
    if (!iterator)
        return ww_fail(EINVAL, "the iterator is NULL");
    iterator->data = NULL;
    iterator->next = iterator->end;
    return iterator->pinned.data ? ww_unpin(store, &iterator->pinned) : 0;
}

int ww_next(ww_store *store, ww_iterator *iterator) {
    uint64_t at;
    if (!store || !iterator)
        return ww_fail(EINVAL, "the store or the iterator is NULL");
    if (ww_offset(store, iterator->handle, &at)) /* another store's, or none that ww_iterate began */
        return -1;
    iterator->data = NULL;
    if (iterator->pinned.data && ww_unpin(store, &iterator->pinned))
        return -1;
    if (iterator->next >= iterator->end)
        return 0;
    if (iterator->next >= iterator->extent_end) {
        uint64_t begin, end;
        const int found = ww_extent(store, iterator->next, &begin, &end);
        if (found < 0)
            return -1;
        if (!found || begin >= iterator->end) {
            iterator->next = iterator->end;
            return 0;
        }
        iterator->next = begin;
        iterator->extent_end = end < iterator->end ? end : iterator->end;
    }
    const uint64_t window_end = ((iterator->next >> store->window_bits) + 1) << store->window_bits;
    const uint64_t stop = window_end < iterator->extent_end ? window_end : iterator->extent_end;
    const size_t length = (size_t)(stop - iterator->next);
    const ww_handle handle = (uint64_t)store->super.tag << OFFSET_BITS | iterator->next;
    if (ww_pin(store, handle, length, WW_READ, &iterator->pinned))
        return -1;
    iterator->handle = handle;
    iterator->data = iterator->pinned.data;
    iterator->length = length;
    iterator->next = stop;
    return 1;
}

static int verify_chain(ww_store *store) {
    struct chain chain;
    int result = ww_log_chain(store, &store->state, 0, &chain);
    for (uint32_t i = 0; !result && i < chain.count; i++) {
        struct record record;
        struct run *runs;
        result = ww_log_read_record(store, chain.records[i], &record, &runs);
        free(runs);
        if (!result)
            result = ww_log_verify_frames(store, &record);
    }
    free(chain.records);
    return result;
}

int ww_verify(ww_store *store) {
    if (ww_has_transaction(store, WW_READ))
        return -1;
    if (store->mode == WW_WRITE)
        return ww_fail(EINVAL, "%s: verification needs a transaction that reads", store->backend.path);
    return verify_chain(store);
}

void ww_statistics_of(const ww_store *store, ww_statistics *statistics) {
    if (!statistics)
        return;
    if (!store) {
        *statistics = (ww_statistics){0};
        return;
    }
    *statistics = store->statistics;
    statistics->log_bytes = store->state.tail << PAGE_BITS;
}
