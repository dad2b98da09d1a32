/* Which frame of the log has a page: a hash table with open addressing. */
#include <errno.h>
#include <stdlib.h>

#include "store.h"

static uint32_t first_cell(const struct index *index, uint32_t page) {
    return (page * 2654435761u >> 7) & (index->size - 1);
}

static struct run *cell(const struct index *index, uint32_t page) {
    uint32_t at = first_cell(index, page);
    while (index->cells[at].count && index->cells[at].page != page)
        at = (at + 1) & (index->size - 1);
    return &index->cells[at];
}

uint32_t ww_index_find(const struct index *index, uint32_t page) {
    if (index->used == 0)
        return NO_FRAME;
    const struct run *found = cell(index, page);
    return found->count ? found->frame : NO_FRAME;
}

/* At most half of the cells are in use. */
int ww_index_reserve(struct index *index, uint32_t pages) {
    const uint64_t wanted = ((uint64_t)index->used + pages) * 2;
    if (wanted <= index->size)
        return 0;
    uint64_t size = index->size ? index->size : 64;
    while (size < wanted)
        size *= 2;
    struct index larger = {.size = (uint32_t)size};
    if (size <= 1u << 30)
        larger.cells = calloc((size_t)size, sizeof *larger.cells);
    if (!larger.cells)
        return ww_fail(ENOMEM, "no memory for an index of %llu pages of the log; checkpoint more often",
                       (unsigned long long)wanted / 2);
    for (uint32_t i = 0; i < index->size; i++)
        if (index->cells[i].count)
            ww_index_put(&larger, index->cells[i].page, index->cells[i].frame);
    ww_index_free(index);
    *index = larger;
    return 0;
}

void ww_index_put(struct index *index, uint32_t page, uint32_t frame) {
    struct run *found = cell(index, page);
    index->used += found->count == 0;
    *found = (struct run){page, frame, 1};
    free(index->sorted);
    index->sorted = NULL;
}

void ww_index_clear(struct index *index) {
    for (uint32_t i = 0; i < index->size; i++)
        index->cells[i].count = 0;
    index->used = 0;
    free(index->sorted);
    index->sorted = NULL;
}

static int ascending(const void *first, const void *second) {
    const uint32_t one = *(const uint32_t *)first, other = *(const uint32_t *)second;
    return one < other ? -1 : one > other;
}

int ww_index_sort(struct index *index) {
    if (index->sorted)
        return 0;
    uint32_t *sorted = malloc((index->used + 1) * sizeof *sorted);
    if (!sorted)
        return ww_fail(ENOMEM, "no memory to sort %u pages of the log", index->used);
    index->sorted_count = 0;
    for (uint32_t i = 0; i < index->size; i++)
        if (index->cells[i].count && index->cells[i].frame != NO_FRAME)
            sorted[index->sorted_count++] = index->cells[i].page;
    qsort(sorted, index->sorted_count, sizeof *sorted, ascending);
    index->sorted = sorted;
    return 0;
}

void ww_index_free(struct index *index) {
    free(index->cells);
    free(index->sorted);
    *index = (struct index){0};
}
