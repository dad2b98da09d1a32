/* Handles: the store's tag above an offset. */
#include <errno.h>

#include "store.h"

int ww_handle_at(const ww_store *store, uint64_t offset, ww_handle *handle) {
    if (!store || !handle)
        return ww_fail(EINVAL, "the store or the result is NULL");
    if (offset >= store->capacity)
        return ww_fail(ERANGE, "%s: offset %llu is beyond the store's %llu bytes", store->backend.path,
                       (unsigned long long)offset, (unsigned long long)store->capacity);
    *handle = (uint64_t)store->super.tag << OFFSET_BITS | offset;
    return 0;
}

int ww_offset(const ww_store *store, ww_handle handle, uint64_t *offset) {
    if (!store || !offset)
        return ww_fail(EINVAL, "the store or the result is NULL");
    if (handle == 0)
        return ww_fail(EINVAL, "%s: the handle is 0, which is none", store->backend.path);
    if (handle >> OFFSET_BITS != store->super.tag)
        return ww_fail(EXDEV,
                       "%s: handle %#llx belongs to another store: its tag is %#x, and this store's %#x",
                       store->backend.path, (unsigned long long)handle, (unsigned)(handle >> OFFSET_BITS),
                       store->super.tag);
    if ((handle & OFFSET_MASK) >= store->capacity)
        return ww_fail(ERANGE, "%s: handle %#llx is beyond the store's %llu bytes", store->backend.path,
                       (unsigned long long)handle, (unsigned long long)store->capacity);
    *offset = handle & OFFSET_MASK;
    return 0;
}

int ww_allocate(ww_store *store, uint64_t bytes, uint64_t alignment, ww_handle *handle) {
    if (ww_has_transaction(store, WW_WRITE))
        return -1;
    if (!handle)
        return ww_fail(EINVAL, "the result is NULL");
    if (bytes == 0)
        return ww_fail(EINVAL, "%s: an allocation of 0 bytes", store->backend.path);
    if (alignment == 0 || alignment & (alignment - 1))
        return ww_fail(EINVAL, "%s: %llu bytes at an alignment of %llu, which must be a power of two",
                       store->backend.path, (unsigned long long)bytes, (unsigned long long)alignment);
    const uint64_t begin = (store->state.top + alignment - 1) & ~(alignment - 1);
    if (begin < store->state.top || begin > store->capacity || bytes > store->capacity - begin)
        return ww_fail(ENOSPC, "%s: %llu bytes are not left of the store's %llu", store->backend.path,
                       (unsigned long long)bytes, (unsigned long long)store->capacity);
    store->state.top = begin + bytes;
    *handle = (uint64_t)store->super.tag << OFFSET_BITS | begin;
    return 0;
}

int ww_root(const ww_store *store, ww_handle *handle) {
    if (ww_has_transaction((ww_store *)store, WW_READ))
        return -1;
    if (!handle)
        return ww_fail(EINVAL, "the result is NULL");
    *handle = store->state.root;
    return 0;
}

int ww_set_root(ww_store *store, ww_handle handle) {
    uint64_t offset;
    if (ww_has_transaction(store, WW_WRITE) || (handle && ww_offset(store, handle, &offset)))
        return -1;
    store->state.root = handle;
    return 0;
}
