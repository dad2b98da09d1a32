/*
 * One file through the x32 runtime's reading of ELF, as its loader goes about it, and what the loader then
 * relies on.
 */
#include "elf.h"
#include "user_memory.h"

#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            __builtin_trap();                                                                                \
        }                                                                                                    \
    } while (0)

/* Whether it can be loaded. */
int x32_image(const u8 *bytes, size_t size) {
    struct image image;
    u32 offset;
    u16 count;
    size_t head = size < ELF_HEADER_SIZE ? size : ELF_HEADER_SIZE;
    if (elf_kind(bytes, head) != ELF_X32 || elf_read_header(bytes, head, &offset, &count) != NULL) {
        return 0;
    }
    HOLDS(count > 0 && count <= ELF_PROGRAM_HEADERS);
    if (offset > size || (u64)count * ELF_PROGRAM_HEADER_SIZE > size - offset) {
        return 0;
    }
    if (elf_read(bytes, bytes + offset, count, size, &image) != NULL) {
        return 0;
    }
    HOLDS(image.segment_count > 0 && image.segment_count <= SEGMENTS);
    HOLDS(image.low < image.high && image.low % PAGE == 0 && image.high % PAGE == 0);
    HOLDS(image.high <= ROUND_UP(TASK_SIZE, PAGE));
    HOLDS(image.alignment >= PAGE && (image.alignment & (image.alignment - 1)) == 0);
    u64 end = image.low;
    for (u32 i = 0; i < image.segment_count; i++) {
        const struct segment *segment = &image.segments[i];
        HOLDS(segment->address >= end && segment->memory_size > 0);
        HOLDS(segment->file_size <= segment->memory_size);
        HOLDS((u64)segment->file_offset + segment->file_size <= size);
        HOLDS((segment->address & (PAGE - 1)) == (segment->file_offset & (PAGE - 1)));
        HOLDS((segment->protection & ~(u32)(PROT_READ | PROT_WRITE | PROT_EXEC)) == 0);
        end = (u64)segment->address + segment->memory_size;
        HOLDS(end <= image.high);
    }
    HOLDS(image.header_address == 0 ||
          (image.header_address >= image.low && image.header_address < image.high));
    HOLDS((u64)image.interpreter_offset + image.interpreter_size <= size && image.interpreter_size <= 4096);
    return 1;
}
