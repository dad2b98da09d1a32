/*
 * A checksum as fast in 32-bit programs as in 64-bit ones: the four lanes of xxHash's XXH32 (xxhash.com,
 * algorithm description), joined to 64 bits in two ways. It detects pages that were lost or torn, not an
 * attacker's.
 */
#include <string.h>

#include "store.h"

#define PRIME1 2654435761u
#define PRIME2 2246822519u
#define PRIME3 3266489917u
#define PRIME4 668265263u

static uint32_t rotated(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static uint32_t mixed(uint32_t lane, uint32_t word) { return rotated(lane + word * PRIME2, 13) * PRIME1; }

void ww_checksum_begin(struct checksum *sum) {
    *sum = (struct checksum){.lanes = {PRIME1 + PRIME2, PRIME2, 0, -PRIME1}};
}

void ww_checksum_add(struct checksum *sum, const void *bytes, size_t length) {
    uint32_t lanes[4];
    memcpy(lanes, sum->lanes, sizeof lanes);
    const unsigned char *next = bytes;
    size_t left = length;
    for (; left >= 16; left -= 16, next += 16) {
        uint32_t words[4];
        memcpy(words, next, sizeof words);
        for (int lane = 0; lane < 4; lane++)
            lanes[lane] = mixed(lanes[lane], words[lane]);
    }
    for (unsigned lane = 0; left >= 4; left -= 4, next += 4, lane++) {
        uint32_t word;
        memcpy(&word, next, sizeof word);
        lanes[lane] = mixed(lanes[lane], word);
    }
    memcpy(sum->lanes, lanes, sizeof lanes);
    sum->length += length;
}

static uint32_t avalanche(uint32_t value) {
    value ^= value >> 15;
    value *= PRIME2;
    value ^= value >> 13;
    value *= PRIME3;
    return value ^ value >> 16;
}

uint64_t ww_checksum_end(const struct checksum *sum) {
    const uint32_t *lanes = sum->lanes;
    uint32_t low =
        rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
    uint32_t high = PRIME4;
    for (int lane = 0; lane < 4; lane++)
        high = rotated(high ^ lanes[lane], 17) * PRIME4 + PRIME3;
    low = avalanche(low + (uint32_t)sum->length);
    high = avalanche(high + (uint32_t)(sum->length >> 32));
    return (uint64_t)high << 32 | low;
}

uint64_t ww_checksum(const void *bytes, size_t length) {
    struct checksum sum;
    ww_checksum_begin(&sum);
    ww_checksum_add(&sum, bytes, length);
    return ww_checksum_end(&sum);
}
