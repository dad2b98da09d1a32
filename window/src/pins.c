/* Pins, attached windows, and iterators over both. */
#include <errno.h>
#include <string.h>

#include "store.h"

#define MOST_COPIED                                                                                          \
    16384 /* of a piece whose window is not attached; a copy with its offset fits COPY_BYTES */

static void pin(struct ww_store *store, uint32_t number, uint64_t at, ww_pinned *pinned) {
    struct window *window = &store->windows[number];
    window->pins++;
    store->pins++;
    pinned->data = window->address + (at - window->offset);
    pinned->window = number;
    pinned->generation = window->generation;
}

static int pin_slowly(ww_store *store, ww_handle handle, size_t length, unsigned mode, ww_pinned *pinned);

int ww_pin(ww_store *store, ww_handle handle, size_t length, unsigned mode, ww_pinned *pinned) {
    const uint64_t at = handle & OFFSET_MASK;
    if (store && pinned && mode == WW_READ && handle >> OFFSET_BITS != 0 && at < store->capacity &&
        handle >> OFFSET_BITS == atomic_load_explicit(&store->usable, memory_order_relaxed)) {
        const uint32_t number = store->directory[at >> store->window_bits];
        if (number && length) {
            const struct window *window = &store->windows[number - 1];
            if (length <= window->length - (at - window->offset)) {
                ww_window_used(store, number - 1);
                pin(store, number - 1, at, pinned);
                return 0;
            }
        }
    }
    return pin_slowly(store, handle, length, mode, pinned);
}

/* Snapshots do not change: a copy is as good as a mapping, if nothing is written through it. */
static bool may_copy(const struct ww_store *store, size_t length) {
    return store->mode == WW_READ && length <= MOST_COPIED && store->backend.kind != WW_SYSV;
}

static int find_window(struct ww_store *store, uint64_t at, size_t length, uint32_t *number) {
    const uint64_t piece = at >> store->window_bits;
    if ((at + length - 1) >> store->window_bits != piece) {
        if (may_copy(store, length))
            return ww_window_copy(store, at, length, number);
        const uint64_t begin = at & ~(uint64_t)(PAGE_BYTES - 1);
        const uint64_t end = (at + length + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
        return ww_window_span(store, begin, end - begin, number);
    }
    if (store->directory[piece]) {
        *number = store->directory[piece] - 1;
        ww_window_used(store, *number);
        return 0;
    }
    if (may_copy(store, length) && !ww_window_admits(store, piece))
        return ww_window_copy(store, at, length, number);
    return ww_window_grid(store, piece, number);
}

static int pin_slowly(ww_store *store, ww_handle handle, size_t length, unsigned mode, ww_pinned *pinned) {
    uint64_t at;
    if (ww_has_transaction(store, mode & WW_WRITE ? WW_WRITE : WW_READ) || ww_offset(store, handle, &at))
        return -1;
    if (!pinned || length == 0 || (mode != WW_READ && mode != WW_WRITE && mode != (WW_WRITE | WW_FRESH)))
        return ww_fail(EINVAL, "%s: a pin of %zu bytes with mode %u", store->backend.path, length, mode);
    if (length > store->capacity - at)
        return ww_fail(ERANGE, "%s: %zu bytes at offset %llu are beyond the store's %llu",
                       store->backend.path, length, (unsigned long long)at,
                       (unsigned long long)store->capacity);
    uint32_t number;
    /* First the window: without one nothing is written. */
    if (find_window(store, at, length, &number))
        return -1;
    pin(store, number, at, pinned);
    if (mode != WW_READ && ww_pages_write(store, at, length, pinned->data, mode & WW_FRESH)) {
        const int error = errno;
        ww_unpin(store, pinned);
        errno = error;
        return -1;
    }
    return 0;
}

int ww_unpin(ww_store *store, ww_pinned *pinned) {
    if (!store || !pinned || !pinned->data)
        return ww_fail(EINVAL, "the store or the pin is NULL, or the pin has ended already");
    if (pinned->window >= store->windows_used ||
        store->windows[pinned->window].generation != pinned->generation ||
        !store->windows[pinned->window].pins)
        return ww_fail(ESTALE, "%s: the pin has ended already, or is another store's", store->backend.path);
    struct window *window = &store->windows[pinned->window];
    pinned->data = NULL;
    store->pins--;
    /* The message names the place in the window, which may be unmapped below. */
    const int result =
        atomic_load_explicit(&store->fault, memory_order_relaxed) ? ww_check_session(store) : 0;
    const int error = errno;
    if (--window->pins == 0 && (window->kind != WINDOW_GRID || store->flags & WW_STRICT))
        ww_window_drop(store, pinned->window);
    errno = error;
    return result;
}

int ww_attach(ww_store *store, ww_handle handle, size_t length, ww_window *result) {
    uint64_t at;
    if (!store || !result)
        return ww_fail(EINVAL, "the store or the result is NULL");
    if (ww_check_session(store) || ww_offset(store, handle, &at))
        return -1;
    if (length == 0 || length > store->capacity - at)
        return ww_fail(ERANGE, "%s: a window of %zu bytes at offset %llu of %llu", store->backend.path,
                       length, (unsigned long long)at, (unsigned long long)store->capacity);
    const uint64_t begin = at & ~(uint64_t)(PAGE_BYTES - 1);
    const uint64_t end = (at + length + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    uint32_t number;
    if (ww_window_span(store, begin, end - begin, &number))
        return -1;
    struct window *window = &store->windows[number];
    window->attached = true;
    window->skip = (uint16_t)(at - begin);
    window->pins = 1;
    *result = (uint64_t)window->generation << 32 | (number + 1);
    return 0;
}

static int attached_window(ww_store *store, ww_window name, uint32_t *number) {
    if (!store)
        return ww_fail(EINVAL, "the store is NULL");
    *number = (uint32_t)name - 1;
    if (*number >= store->windows_used || store->windows[*number].generation != name >> 32 ||
        !store->windows[*number].attached)
        return ww_fail(ESTALE, "%s: window %#llx is not attached: it was detached, or is another store's",
                       store->backend.path, (unsigned long long)name);
    return 0;
}

int ww_window_data(ww_store *store, ww_window name, const void **data) {
    uint32_t number = 0;
    if (ww_has_transaction(store, WW_READ) || attached_window(store, name, &number))
        return -1;
    if (!data)
        return ww_fail(EINVAL, "the result is NULL");
    *data = store->windows[number].address + store->windows[number].skip;
    return 0;
}

int ww_detach(ww_store *store, ww_window name) {
    uint32_t number = 0;
    if (attached_window(store, name, &number))
        return -1;
    ww_window_drop(store, number);
    return 0;
}
