/*
 * The model of a processor's caches and TLBs: which accesses of the guest miss, in user space and in the
 * kernel (by the instruction's address, as instructions are counted: a copy from user space is the kernel's).
 *
 * Caches are indexed by physical addresses. QEMU gives those of data; of code it gives the host's address.
 * The machine's memory is one block of the host's, so that the distance of one instruction (the marker
 * MARK_CODE, whose bytes the guest's first process also reads as data) is that of all.
 *
 * An entry of a TLB is a pair of a virtual and a physical page, so that a change of the address space needs
 * no flush, as on a processor with address-space tags. User pages have 4 KiB, the kernel's 2 MiB, as its
 * direct map and its code have. Walks of page tables are no accesses.
 */
#ifndef WIDTHWISE_PLUGIN_CACHES_H
#define WIDTHWISE_PLUGIN_CACHES_H

#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "qemu.h"

enum cache_kind { L1I, L1D, LL, ITLB, DTLB, KINDS };
static const char *const KIND_NAMES[KINDS] = {"l1i=", "l1d=", "ll=", "itlb=", "dtlb="};
enum { USER_PAGE_BITS = 12, KERNEL_PAGE_BITS = 21 };

static struct {
    struct cache caches[KINDS];
    uint32_t line_bits;
    uint64_t split;            /* where the kernel's half of the address space begins */
    uint64_t misses[2][KINDS]; /* of user space, of the kernel */
    uint64_t code_virtual;     /* of the marker MARK_CODE */
    uint64_t code_host;
    uint64_t host_base; /* what a host address has more than the physical one */
    bool has_base;
} model;

/* What is fetched when an instruction is executed: the line it begins in, the line it ends in, or both. */
struct fetch {
    uint64_t virtual, host;
    bool is_kernel, has_first, has_next;
};

/* Takes `l1i=BYTES:WAYS:LINE` or `itlb=ENTRIES:WAYS`; all lines have one size. */
static inline bool caches_option(const char *option) {
    for (int kind = 0; kind < KINDS; kind++) {
        size_t length = strlen(KIND_NAMES[kind]);
        if (strncmp(option, KIND_NAMES[kind], length) != 0)
            continue;
        char *next;
        uint64_t entries = strtoull(option + length, &next, 10);
        if (*next != ':')
            return false;
        uint32_t ways = (uint32_t)strtoul(next + 1, &next, 10);
        if (kind == ITLB || kind == DTLB)
            return *next == 0 && cache_make(&model.caches[kind], entries, ways);
        uint64_t line = *next == ':' ? strtoull(next + 1, &next, 10) : 0;
        if (*next != 0 || line < 16 || line > 4096 || (line & (line - 1)) != 0)
            return false;
        uint32_t bits = (uint32_t)__builtin_ctzll(line);
        if (model.line_bits != 0 && model.line_bits != bits)
            return false;
        model.line_bits = bits;
        return cache_make(&model.caches[kind], entries / line, ways);
    }
    return false;
}

static inline bool caches_complete(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (model.caches[kind].keys == NULL)
            return false;
    }
    return true;
}

static inline uint64_t caches_line_size(void) { return (uint64_t)1 << model.line_bits; }

static inline void caches_code_at(uint64_t virtual, const void *host) {
    model.code_virtual = virtual;
    model.code_host = (uintptr_t)host;
}

/* A line of the first level, and of the last one if that misses. */
static inline void use_line(enum cache_kind level, uint64_t physical, bool is_kernel) {
    uint64_t line = physical >> model.line_bits;
    if (cache_use(&model.caches[level], line, line))
        return;
    model.misses[is_kernel][level]++;
    if (!cache_use(&model.caches[LL], line, line))
        model.misses[is_kernel][LL]++;
}

static inline void use_page(enum cache_kind kind, uint64_t virtual, uint64_t physical, bool is_kernel) {
    /* The kernel's half: addresses of the user's half are the user's pages in accesses of either side. */
    uint32_t bits = virtual >= model.split ? KERNEL_PAGE_BITS : USER_PAGE_BITS;
    uint64_t page = virtual >> bits, frame = physical >> bits;
    if (!cache_use(&model.caches[kind], page, page * 0x9e3779b97f4a7c15u + frame))
        model.misses[is_kernel][kind]++;
}

static void caches_fetch(unsigned int processor, void *data) {
    (void)processor;
    const struct fetch *fetch = data;
    if (!model.has_base || fetch->host == 0)
        return;
    uint64_t physical = fetch->host - model.host_base;
    if (fetch->has_first) {
        use_page(ITLB, fetch->virtual, physical, fetch->is_kernel);
        use_line(L1I, physical, fetch->is_kernel);
    }
    /* The part of an instruction behind a page's end may lie anywhere: QEMU does not say where. */
    uint64_t next = (physical | (caches_line_size() - 1)) + 1;
    if (fetch->has_next && next % (1 << USER_PAGE_BITS) != 0)
        use_line(L1I, next, fetch->is_kernel);
}

static void caches_access(unsigned int processor, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)processor;
    bool is_kernel = data != NULL;
    uint64_t size = (uint64_t)1 << qemu_plugin_mem_size_shift(info), last = address + size - 1;
    for (uint64_t at = address; at <= last; at = (at | (caches_line_size() - 1)) + 1) {
        const struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, at);
        if (place == NULL || qemu_plugin_hwaddr_is_io(place))
            return;
        uint64_t physical = qemu_plugin_hwaddr_phys_addr(place);
        if (!model.has_base && at == model.code_virtual) {
            model.host_base = model.code_host - physical;
            model.has_base = true;
        }
        bool is_new_page = at == address || at % (1 << USER_PAGE_BITS) == 0;
        if (is_new_page)
            use_page(DTLB, at, physical, is_kernel);
        use_line(L1D, physical, is_kernel);
    }
}

static inline void misses_write(FILE *out, unsigned long mark) {
    /* Without it, no fetch of code was modelled: no figures are written. */
    if (!model.has_base)
        return;
    fprintf(out, "misses %lu", mark);
    for (int side = 0; side < 2; side++) {
        fputs(side == 0 ? " user" : " kernel", out);
        for (int kind = 0; kind < KINDS; kind++)
            fprintf(out, " %llu", (unsigned long long)model.misses[side][kind]);
    }
    fputc('\n', out);
}

#endif
