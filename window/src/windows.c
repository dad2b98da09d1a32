/*
 * Windows: pieces of the data that are mapped. Grid windows are pieces of equal size, found by a directory,
 * and the least recently used one makes place for another. Spans have any length; copies are small pieces
 * that are read instead of mapped. Over the data's pages lie those frames of the log that the snapshot has
 * instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "store.h"

/* Mappings of a process are limited (vm.max_map_count: 65 530), and each overlay splits one. */
#define MOST_OVERLAYS 16384
#define COPY_BYTES (5 * PAGE_BYTES)
/* A window that is attached evicts another one, and must be worth its page faults: so many misses in sequence
 * in the same piece attach it, or one of so many misses elsewhere. */
#define SAME_MISSES 4
#define OTHER_MISSES 512
/* What is left to a program whose address space is full. */
#define PROGRAMS_OWN (32u << 20)

static const uint64_t default_window = sizeof(void *) == 4 ? 1u << 20 : 256u << 20;
static const uint64_t default_address = sizeof(void *) == 4 ? 2ull << 30 : 64ull << 40;

int ww_windows_open(struct ww_store *store, const ww_options *options) {
    const uint64_t bytes = options->window_bytes ? options->window_bytes : default_window;
    if (bytes & (bytes - 1) || bytes < PAGE_BYTES || bytes > 1u << 30)
        return ww_fail(EINVAL, "window_bytes is %llu; it must be a power of two from 4096 to 1 GiB",
                       (unsigned long long)bytes);
    store->window_bits = (unsigned)__builtin_ctzll(bytes);
    store->address_bytes = options->address_bytes ? options->address_bytes : default_address;
    if (store->address_bytes < bytes)
        return ww_fail(EINVAL, "address_bytes is %llu; one window needs %llu",
                       (unsigned long long)store->address_bytes, (unsigned long long)bytes);
    store->directory_size = (store->capacity >> store->window_bits) + 1;
    const uint64_t length = store->directory_size * sizeof *store->directory;
    void *directory = MAP_FAILED;
    if (length <= SIZE_MAX / 4)
        directory = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (directory == MAP_FAILED)
        return ww_fail(ENOMEM, "%s: no memory for a directory of %llu windows; give larger window_bytes",
                       store->backend.path, (unsigned long long)store->directory_size);
    store->directory = directory;
    store->random = 2463534242u;
    return 0;
}

static uint64_t window_bytes(const struct ww_store *store) { return 1ull << store->window_bits; }

static void place_free(struct ww_store *store, struct place place, uint64_t length) {
    ww_guard_remove(place.guard);
    munmap(place.address, (size_t)length);
    store->reserved_bytes -= length;
}

void ww_windows_close(struct ww_store *store) {
    for (uint32_t i = 0; i < store->windows_used; i++) {
        struct window *window = &store->windows[i];
        if (window->kind == WINDOW_GRID)
            place_free(store, window->place, window_bytes(store));
        else if (window->kind == WINDOW_SPAN)
            place_free(store, window->place, window->length);
        else if (window->kind == WINDOW_COPY)
            munmap(window->place.address, COPY_BYTES);
    }
    for (uint32_t i = 0; i < store->free_count; i++)
        place_free(store, store->free_places[i], window_bytes(store));
    if (store->directory)
        munmap(store->directory, (size_t)(store->directory_size * sizeof *store->directory));
    free(store->windows);
    free(store->free_places);
}

static int window_new(struct ww_store *store, uint32_t *number) {
    if (store->free_window) {
        *number = store->free_window - 1;
        store->free_window = store->windows[*number].older;
        return 0;
    }
    if (store->windows_used == store->windows_size) {
        const uint32_t size = store->windows_size ? store->windows_size * 2 : 64;
        struct window *larger = realloc(store->windows, size * sizeof *larger);
        struct place *places = larger ? realloc(store->free_places, size * sizeof *places) : NULL;
        if (larger)
            store->windows = larger;
        if (!places)
            return ww_fail_errno(ENOMEM, "%s: %u windows", store->backend.path, size);
        store->free_places = places;
        store->windows_size = size;
    }
    *number = store->windows_used++;
    store->windows[*number] = (struct window){.generation = store->first_generation};
    return 0;
}

static void window_delete(struct ww_store *store, uint32_t number) {
    struct window *window = &store->windows[number];
    const uint32_t generation = window->generation + 1;
    store->statistics.overlays -= window->overlays;
    *window = (struct window){.generation = generation, .older = store->free_window};
    store->free_window = number + 1;
}

static void list_remove(struct ww_store *store, struct window *window) {
    *(window->newer ? &store->windows[window->newer - 1].older : &store->newest) = window->older;
    *(window->older ? &store->windows[window->older - 1].newer : &store->oldest) = window->newer;
}

static void list_add(struct ww_store *store, uint32_t number) {
    struct window *window = &store->windows[number];
    window->newer = 0;
    window->older = store->newest;
    *(store->newest ? &store->windows[store->newest - 1].newer : &store->oldest) = number + 1;
    store->newest = number + 1;
}

void ww_window_used(struct ww_store *store, uint32_t number) {
    if (store->newest == number + 1)
        return;
    list_remove(store, &store->windows[number]);
    list_add(store, number);
}

/* Takes a grid window away; its place still has the mapping. */
static struct place grid_taken(struct ww_store *store, uint32_t number) {
    struct window *window = &store->windows[number];
    const struct place place = window->place;
    store->directory[window->offset >> store->window_bits] = 0;
    store->statistics.mapped_bytes -= window->length;
    store->statistics.attached--;
    list_remove(store, window);
    window_delete(store, number);
    return place;
}

/* The least recently used window that is not pinned. */
static bool evict(struct ww_store *store, struct place *place) {
    uint32_t next = store->oldest;
    while (next && store->windows[next - 1].pins)
        next = store->windows[next - 1].newer;
    if (!next)
        return false;
    *place = grid_taken(store, next - 1);
    store->statistics.evicted++;
    return true;
}

static int no_place(const struct ww_store *store, uint64_t length) {
    return ww_fail(
        ENOMEM,
        "%s: %u pins and the attached windows leave no address space for a window of %llu bytes (%llu of "
        "%llu are in use); end some, or give larger address_bytes",
        store->backend.path, store->pins, (unsigned long long)length,
        (unsigned long long)store->reserved_bytes, (unsigned long long)store->address_bytes);
}

/* Aligned as the data are, so that the kernel can map huge pages of the page cache. */
static char *reserved(uint64_t length) {
    const uint64_t alignment = length % DATA_ALIGNMENT == 0 ? DATA_ALIGNMENT : PAGE_BYTES;
    const size_t whole = (size_t)(length + alignment - PAGE_BYTES);
    char *address = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return NULL;
    const size_t before = (size_t)(-(uintptr_t)address & (alignment - 1)),
                 after = whole - before - (size_t)length;
    if (before)
        munmap(address, before);
    if (after)
        munmap(address + before + length, after);
    return address + before;
}

/* Address space of that length, at the cost of windows that are not in use. */
static int place_new(struct ww_store *store, uint64_t length, struct place *place) {
    for (;;) {
        if (store->reserved_bytes + length <= store->address_bytes && length <= SIZE_MAX / 2) {
            char *address = reserved(length);
            if (address) {
                *place = (struct place){address, ww_guard_add(store, address, length)};
                store->reserved_bytes += length;
                return 0;
            }
            if (length == window_bytes(store) &&
                store->reserved_bytes >= 2 * PROGRAMS_OWN) /* there is no more */
                store->address_bytes = store->reserved_bytes - PROGRAMS_OWN;
        }
        struct place other;
        if (store->free_count)
            other = store->free_places[--store->free_count];
        else if (!evict(store, &other))
            return no_place(store, length);
        if (length == window_bytes(store) && store->reserved_bytes <= store->address_bytes) {
            *place = other;
            return 0;
        }
        place_free(store, other, window_bytes(store));
    }
}

static void unmap(char *address, uint64_t length) {
    /* Over a mapping of our own this cannot fail for want of mappings. */
    (void)!mmap(address, (size_t)length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                -1, 0);
}

static bool is_own_frame(const struct ww_store *store, uint32_t frame) {
    return store->mode == WW_WRITE && frame != NO_FRAME && frame >= store->first_frame;
}

/* Maps the run's part that lies in the window. */
static int overlay(struct ww_store *store, struct window *window, struct run run, bool writable) {
    const uint64_t first = window->offset >> PAGE_BITS, end = first + (window->length >> PAGE_BITS);
    const uint64_t begin = run.page > first ? run.page : first;
    const uint64_t stop = (uint64_t)run.page + run.count < end ? (uint64_t)run.page + run.count : end;
    if (begin >= stop)
        return 0;
    const uint64_t at = run.frame == NO_FRAME ? data_offset(store, begin << PAGE_BITS)
                                              : frame_offset(run.frame + (begin - run.page));
    window->overlays++;
    window->writable |= writable;
    store->statistics.overlays++;
    store->statistics.mappings++;
    return ww_backend_map(&store->backend, window->address + ((begin - first) << PAGE_BITS),
                          (size_t)((stop - begin) << PAGE_BITS), at, writable);
}

static int overlay_all(struct ww_store *store, struct window *window) {
    if (!store->from_log || store->index.used == 0)
        return 0;
    const uint32_t first = (uint32_t)(window->offset >> PAGE_BITS);
    const uint32_t pages = (uint32_t)(window->length >> PAGE_BITS);
    for (uint32_t i = 0; i < pages;) {
        const uint32_t frame = ww_index_find(&store->index, first + i);
        uint32_t count = 1;
        if (frame != NO_FRAME) {
            const bool own = is_own_frame(store, frame);
            while (i + count < pages && ww_index_find(&store->index, first + i + count) == frame + count &&
                   is_own_frame(store, frame + count) == own)
                count++;
            if (overlay(store, window, (struct run){first + i, frame, count}, own))
                return -1;
        }
        i += count;
    }
    return 0;
}

static int map_window(struct ww_store *store, struct window *window) {
    store->statistics.mappings++;
    if (ww_backend_map(&store->backend, window->address, (size_t)window->length,
                       data_offset(store, window->offset), false) ||
        overlay_all(store, window)) {
        const int error = errno;
        unmap(window->address, window->length);
        errno = error;
        return -1;
    }
    store->statistics.mapped_bytes += window->length;
    store->statistics.attached++;
    return 0;
}

int ww_window_grid(struct ww_store *store, uint64_t piece, uint32_t *number) {
    struct place place;
    if (store->free_count)
        place = store->free_places[--store->free_count];
    else if (place_new(store, window_bytes(store), &place))
        return -1;
    if (window_new(store, number)) {
        place_free(store, place, window_bytes(store));
        return -1;
    }
    struct window *window = &store->windows[*number];
    const uint64_t offset = piece << store->window_bits, left = store->capacity - offset;
    *window = (struct window){.place = place,
                              .address = place.address,
                              .offset = offset,
                              .length = left < window_bytes(store) ? left : window_bytes(store),
                              .generation = window->generation,
                              .kind = WINDOW_GRID};
    while (map_window(store, window)) {
        struct place other; /* perhaps there were too many mappings */
        if (errno != ENOMEM || !evict(store, &other)) {
            window_delete(store, *number);
            place_free(store, place, window_bytes(store));
            return -1;
        }
        place_free(store, other, window_bytes(store));
    }
    store->directory[piece] = *number + 1;
    list_add(store, *number);
    return 0;
}

int ww_window_span(struct ww_store *store, uint64_t offset, uint64_t length, uint32_t *number) {
    struct place place;
    if (place_new(store, length, &place))
        return -1;
    if (window_new(store, number)) {
        place_free(store, place, length);
        return -1;
    }
    struct window *window = &store->windows[*number];
    *window = (struct window){.place = place,
                              .address = place.address,
                              .offset = offset,
                              .length = length,
                              .generation = window->generation,
                              .kind = WINDOW_SPAN};
    if (map_window(store, window)) {
        window_delete(store, *number);
        place_free(store, place, length);
        return -1;
    }
    store->spans++;
    return 0;
}

int ww_window_copy(struct ww_store *store, uint64_t offset, size_t length, uint32_t *number) {
    if (store->free_copy) {
        *number = store->free_copy - 1;
        store->free_copy = store->windows[*number].older;
    } else {
        if (window_new(store, number))
            return -1;
        char *address = mmap(NULL, COPY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (address == MAP_FAILED) {
            window_delete(store, *number);
            return ww_fail_errno(ENOMEM, "%s: no memory to copy %zu bytes", store->backend.path, length);
        }
        struct window *window = &store->windows[*number];
        *window =
            (struct window){.place = {address, 0}, .generation = window->generation, .kind = WINDOW_COPY};
    }
    struct window *window = &store->windows[*number];
    window->address = window->place.address + offset % PAGE_BYTES; /* as aligned as in a window */
    window->offset = offset;
    window->length = length;
    store->statistics.copied++;
    if (ww_pages_read(store, window->address, length, offset)) {
        ww_window_drop(store, *number);
        return -1;
    }
    return 0;
}

bool ww_window_admits(struct ww_store *store, uint64_t piece) {
    if (store->free_count || store->reserved_bytes + window_bytes(store) <= store->address_bytes)
        return true;
    store->misses = piece == store->missed ? store->misses + 1 : 1;
    store->missed = piece;
    if (store->misses >= SAME_MISSES)
        return true;
    store->random ^= store->random << 13; /* Marsaglia, Xorshift RNGs, 2003 */
    store->random ^= store->random >> 17;
    store->random ^= store->random << 5;
    return store->random % OTHER_MISSES == 0;
}

void ww_window_drop(struct ww_store *store, uint32_t number) {
    struct window *window = &store->windows[number];
    switch (window->kind) {
    case WINDOW_GRID: {
        const uint64_t length = window->length;
        const struct place place = grid_taken(store, number);
        unmap(place.address, length);
        store->free_places[store->free_count++] = place;
        break;
    }
    case WINDOW_SPAN: {
        const struct place place = window->place;
        const uint64_t length = window->length;
        store->statistics.mapped_bytes -= length;
        store->statistics.attached--;
        store->spans--;
        window_delete(store, number);
        place_free(store, place, length);
        break;
    }
    case WINDOW_COPY:
        if (store->flags & WW_STRICT) {
            munmap(window->place.address, COPY_BYTES);
            window_delete(store, number);
        } else {
            window->generation++;
            window->older = store->free_copy;
            store->free_copy = number + 1;
        }
        break;
    default:
        break;
    }
}

/* Where a mapping cannot be made, a window that is not in use is unmapped. What a pin shows must not be
 * wrong. */
static int overlay_or_drop(struct ww_store *store, uint32_t number, struct run run, bool writable) {
    struct window *window = &store->windows[number];
    const bool drops = window->kind == WINDOW_GRID && !window->pins;
    if (drops && store->statistics.overlays >= MOST_OVERLAYS) {
        ww_window_drop(store, number);
        return 0;
    }
    while (overlay(store, window, run, writable)) {
        struct place other;
        if (drops) {
            ww_window_drop(store, number);
            return 0;
        }
        if (errno != ENOMEM || !evict(store, &other)) {
            store->broken = true;
            return -1;
        }
        place_free(store, other, window_bytes(store));
    }
    return 0;
}

int ww_windows_overlay(struct ww_store *store, struct run run, bool writable) {
    const uint64_t begin = (uint64_t)run.page << PAGE_BITS, end = begin + ((uint64_t)run.count << PAGE_BITS);
    for (uint64_t piece = begin >> store->window_bits; piece << store->window_bits < end; piece++)
        if (store->directory[piece] && overlay_or_drop(store, store->directory[piece] - 1, run, writable))
            return -1;
    for (uint32_t i = 0; store->spans && i < store->windows_used; i++)
        if (store->windows[i].kind == WINDOW_SPAN && overlay_or_drop(store, i, run, writable))
            return -1;
    return 0;
}

int ww_windows_rebase(struct ww_store *store) {
    for (uint32_t i = 0; i < store->windows_used; i++) {
        struct window *window = &store->windows[i];
        if (window->kind == WINDOW_FREE || window->kind == WINDOW_COPY || !window->overlays)
            continue;
        if (ww_backend_map(&store->backend, window->address, (size_t)window->length,
                           data_offset(store, window->offset), false))
            return -1; /* the next transaction tries again: the window still shows the log */
        store->statistics.overlays -= window->overlays;
        window->overlays = 0;
        window->writable = false;
    }
    return 0;
}

static int protect(struct ww_store *store, struct window *window) {
    if (!window->writable)
        return 0;
    window->writable = false;
    if (mprotect(window->address, (size_t)window->length, PROT_READ))
        return ww_fail_errno(errno, "%s: a window cannot be protected", store->backend.path);
    return 0;
}

int ww_windows_protect(struct ww_store *store) {
    for (uint32_t i = 0; i < store->undo_count; i++) {
        const uint32_t number =
            store->directory[(uint64_t)store->undo[i].page << PAGE_BITS >> store->window_bits];
        if (number && protect(store, &store->windows[number - 1]))
            return -1;
    }
    for (uint32_t i = 0; store->spans && i < store->windows_used; i++)
        if (store->windows[i].kind == WINDOW_SPAN && protect(store, &store->windows[i]))
            return -1;
    return 0;
}
