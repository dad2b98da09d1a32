/*
 * A model of caches and TLBs: tags alone, least recently used out first. Accesses are to physical addresses.
 *
 * The first level has a cache for instructions and one for data; both miss into one last level, which
 * therefore sees the misses of the first level only. A store that misses fetches its line. Nothing is fetched
 * ahead of need.
 */
#ifndef WIDTHWISE_PLUGIN_CACHE_H
#define WIDTHWISE_PLUGIN_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A cache whose lines (or pages) have keys of 64 bits; in each set, the last one used comes first. */
struct cache {
    uint64_t *keys; /* ways of each set, side by side; a key is one more than what is cached, 0 is empty */
    uint32_t sets, ways;
};

/* False without memory, or for a size without a set. */
static inline bool cache_make(struct cache *cache, uint64_t entries, uint32_t ways) {
    if (ways == 0 || entries < ways || entries / ways > UINT32_MAX)
        return false;
    cache->sets = (uint32_t)(entries / ways);
    cache->ways = ways;
    cache->keys = calloc((size_t)cache->sets * ways, sizeof *cache->keys);
    return cache->keys != NULL;
}

/* Whether the key was cached; it is, afterwards, and the last one used. */
static inline bool cache_use(struct cache *cache, uint64_t number, uint64_t key) {
    uint64_t *way = cache->keys + (size_t)(number % cache->sets) * cache->ways;
    uint64_t before = key + 1;
    for (uint32_t i = 0; i < cache->ways; i++) {
        uint64_t here = way[i];
        way[i] = before;
        if (here == key + 1)
            return true;
        before = here;
    }
    return false;
}

#endif
