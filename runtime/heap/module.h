/* Where an object file lies in the process. */
#ifndef WIDTHWISE_HEAP_MODULE_H
#define WIDTHWISE_HEAP_MODULE_H

#include <link.h>
#include <stdint.h>

struct stretch {
    uintptr_t low, size;
};

static inline int is_within(struct stretch stretch, uintptr_t code) {
    return code - stretch.low < stretch.size;
}

/* From the first byte of its first segment to the last byte of its last; empty if nothing of it is loaded. */
static inline struct stretch module_stretch(const struct dl_phdr_info *info) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begins = (uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD) {
            low = begins < low ? begins : low;
            high = begins + segment->p_memsz > high ? begins + segment->p_memsz : high;
        }
    }
    return low < high ? (struct stretch){low, high - low} : (struct stretch){0, 0};
}

#endif
