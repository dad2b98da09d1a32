#include "own_image.h"
#include <elf.h>

#define MFD_EXEC 0x10U /* since Linux 6.3, where the default may be otherwise */

extern const u8 __executable_start[];

static long write_all(long fd, const void *from, u64 size, u64 offset) {
    long result = KERNEL_4(__NR_pwrite64, fd, from, size, offset);
    return failed(result) ? result : (u64)result == size ? 0 : -ENOSPC;
}

/* Nothing of what was loaded from the file is ever changed but the stubs, each of which is made before it is
 * used. What changes has no bytes in the file. */
static long write_image(long fd) {
    Elf64_Ehdr header;
    copy_bytes(&header, __executable_start, sizeof header);
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(__executable_start + header.e_phoff);
    long result = 0;
    for (int i = 0; i < header.e_phnum && result == 0; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_LOAD && segment->p_filesz != 0) {
            result = write_all(fd, (const void *)segment->p_vaddr, segment->p_filesz, segment->p_offset);
        }
    }
    header.e_shoff = 0;
    header.e_shnum = header.e_shstrndx = 0;
    return result == 0 ? write_all(fd, &header, sizeof header, 0) : result;
}

long own_image_open(void) {
    static const char name[] = "x32run";
    long fd = KERNEL_2(__NR_memfd_create, name, MFD_CLOEXEC | MFD_EXEC);
    if (fd == -EINVAL) {
        fd = KERNEL_2(__NR_memfd_create, name, MFD_CLOEXEC);
    }
    if (failed(fd)) {
        return fd;
    }
    long result = write_image(fd);
    if (failed(result)) {
        KERNEL_1(__NR_close, fd);
        return result;
    }
    return fd;
}
