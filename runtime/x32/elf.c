#include "elf.h"
#include "user_memory.h"
#include <elf.h>

enum elf_kind elf_kind(const u8 *bytes, size_t size) {
    if (size < 4 || bytes[0] != 0x7f || bytes[1] != 'E' || bytes[2] != 'L' || bytes[3] != 'F') {
        return ELF_NONE;
    }
    if (size < 20 || bytes[EI_CLASS] != ELFCLASS32 || bytes[EI_DATA] != ELFDATA2LSB) {
        return ELF_OTHER;
    }
    return bytes[18] == EM_X86_64 && bytes[19] == 0 ? ELF_X32 : ELF_OTHER;
}

const char *elf_read_header(const u8 *bytes, size_t size, u32 *offset, u16 *count) {
    Elf32_Ehdr header;
    if (size < sizeof header) {
        return "it is too short for an ELF header";
    }
    copy_bytes(&header, bytes, sizeof header);
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
        return "it is neither a program nor a shared object";
    }
    if (header.e_phentsize != sizeof(Elf32_Phdr)) {
        return "its program headers have another size than 32 bytes";
    }
    if (header.e_phnum == 0 || header.e_phnum > ELF_PROGRAM_HEADERS) {
        return "it has no program headers, or more than 128";
    }
    *offset = header.e_phoff;
    *count = header.e_phnum;
    return NULL;
}

static u32 protection_of(u32 flags) {
    return (flags & PF_R ? PROT_READ : 0U) | (flags & PF_W ? PROT_WRITE : 0U) |
           (flags & PF_X ? PROT_EXEC : 0U);
}

static const char *add_segment(struct image *image, const Elf32_Phdr *header, u64 file_size) {
    u64 end = (u64)header->p_vaddr + header->p_memsz;
    if (header->p_memsz == 0) {
        return NULL;
    }
    if (image->segment_count == SEGMENTS) {
        return "it has more than 64 segments";
    }
    if (header->p_filesz > header->p_memsz) {
        return "a segment is larger in the file than in memory";
    }
    if ((u64)header->p_offset + header->p_filesz > file_size) {
        return "a segment lies beyond the end of the file: it is truncated";
    }
    if (end > TASK_SIZE) {
        return "a segment lies beyond 4 GiB";
    }
    if ((header->p_vaddr & (PAGE - 1)) != (header->p_offset & (PAGE - 1))) {
        return "a segment's address and its offset in the file differ within a page";
    }
    if (header->p_align > PAGE && (header->p_align & (header->p_align - 1)) != 0) {
        return "a segment's alignment is no power of two";
    }
    if (image->segment_count > 0) {
        const struct segment *before = &image->segments[image->segment_count - 1];
        if (header->p_vaddr < (u64)before->address + before->memory_size) {
            return "its segments overlap or are out of order";
        }
    } else {
        image->low = (u32)ROUND_DOWN(header->p_vaddr, PAGE);
    }
    image->high = (u32)ROUND_UP(end, PAGE);
    if (header->p_align > image->alignment && header->p_align <= (1U << 30)) {
        image->alignment = header->p_align;
    }
    image->segments[image->segment_count++] = (struct segment){
        .address = header->p_vaddr,
        .file_offset = header->p_offset,
        .file_size = header->p_filesz,
        .memory_size = header->p_memsz,
        .protection = protection_of(header->p_flags),
    };
    return NULL;
}

const char *elf_read(const u8 *bytes, const u8 *program_headers, u16 count, u64 file_size,
                     struct image *image) {
    Elf32_Ehdr header;
    copy_bytes(&header, bytes, sizeof header);
    clear_bytes(image, sizeof *image);
    image->alignment = PAGE;
    image->entry = header.e_entry;
    image->movable = header.e_type == ET_DYN;
    image->header_count = count;
    for (u16 i = 0; i < count; i++) {
        Elf32_Phdr entry;
        const char *wrong = NULL;
        copy_bytes(&entry, program_headers + i * sizeof entry, sizeof entry);
        switch (entry.p_type) {
        case PT_LOAD:
            wrong = add_segment(image, &entry, file_size);
            break;
        case PT_INTERP:
            if (entry.p_filesz < 2 || entry.p_filesz > 4096 ||
                (u64)entry.p_offset + entry.p_filesz > file_size) {
                wrong = "the name of its interpreter is empty, too long, or beyond the end of the file";
            }
            image->interpreter_offset = entry.p_offset;
            image->interpreter_size = entry.p_filesz;
            break;
        case PT_GNU_STACK:
            image->states_stack = 1;
            image->executable_stack = (entry.p_flags & PF_X) != 0;
            break;
        default:
            break;
        }
        if (wrong != NULL) {
            return wrong;
        }
    }
    if (image->segment_count == 0) {
        return "it has nothing to load";
    }
    for (u32 i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        if (header.e_phoff >= segment->file_offset && header.e_phoff + (u64)count * sizeof(Elf32_Phdr) <=
                                                          (u64)segment->file_offset + segment->file_size) {
            image->header_address = segment->address + (header.e_phoff - segment->file_offset);
        }
    }
    return NULL;
}
