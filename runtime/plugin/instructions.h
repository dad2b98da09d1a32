/*
 * Executed instructions by their bytes: a table with one entry for each sequence of bytes that was
 * translated, and its counters. What class an instruction belongs to is decided by who reads the counts.
 */
#ifndef WIDTHWISE_PLUGIN_INSTRUCTIONS_H
#define WIDTHWISE_PLUGIN_INSTRUCTIONS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INSTRUCTION = 16, BUCKETS = 1 << 16 };

struct entry {
    struct entry *next;                  /* of the same bucket */
    uint64_t user, kernel;               /* executions */
    uint64_t user_before, kernel_before; /* at the last `instructions_begin` */
    uint8_t size, bytes[MOST_INSTRUCTION];
};

static struct entry *buckets[BUCKETS];

/* The entry of an instruction. Entries stay where they are. NULL without memory. */
static inline struct entry *instruction_entry(const uint8_t *bytes, size_t size) {
    if (size > MOST_INSTRUCTION)
        size = MOST_INSTRUCTION;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    struct entry **bucket = &buckets[(hash ^ hash >> 16) % BUCKETS];
    for (struct entry *entry = *bucket; entry != NULL; entry = entry->next) {
        if (entry->size == size && memcmp(entry->bytes, bytes, size) == 0)
            return entry;
    }
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->size = (uint8_t)size;
    memcpy(entry->bytes, bytes, size);
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

/* A block of a single program: its executions are those of each of its instructions, as for the plain count.
 */
struct listed_block {
    struct listed_block *next;
    uint64_t executed;
    size_t count;
    struct entry *entries[];
};

static struct listed_block *listed_blocks;

/* Called while QEMU translates, which one thread does at a time. NULL without memory. */
static inline struct listed_block *list_block(size_t count) {
    struct listed_block *block = calloc(1, sizeof *block + count * sizeof *block->entries);
    if (block == NULL)
        return NULL;
    block->count = count;
    block->next = listed_blocks;
    listed_blocks = block;
    return block;
}

static inline void add_listed_blocks(void) {
    for (struct listed_block *block = listed_blocks; block != NULL; block = block->next) {
        for (size_t i = 0; i < block->count; i++)
            block->entries[i]->user += block->executed;
        block->executed = 0;
    }
}

static inline void forget_listed_blocks(void) {
    for (struct listed_block *block = listed_blocks; block != NULL; block = block->next)
        block->executed = 0;
}

/* What is written next begins here. */
static inline void instructions_begin(void) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct entry *entry = buckets[i]; entry != NULL; entry = entry->next) {
            entry->user_before = entry->user;
            entry->kernel_before = entry->kernel;
        }
    }
}

/* A line for each instruction that was executed since then. */
static inline void instructions_write(FILE *out, unsigned long mark) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct entry *entry = buckets[i]; entry != NULL; entry = entry->next) {
            uint64_t user = entry->user - entry->user_before, kernel = entry->kernel - entry->kernel_before;
            if (user == 0 && kernel == 0)
                continue;
            fprintf(out, "executed %lu user %llu kernel %llu ", mark, (unsigned long long)user,
                    (unsigned long long)kernel);
            for (int byte = 0; byte < entry->size; byte++)
                fprintf(out, "%02x", entry->bytes[byte]);
            fputc('\n', out);
        }
    }
}

#endif
