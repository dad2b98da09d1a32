#include "loader.h"
#include "account.h"
#include "diagnostics.h"
#include "program.h"
#include "settings.h"
#include "sites.h"
#include "space.h"
#include "user_memory.h"

/* Where a movable program begins: ELF_ET_DYN_BASE of a 32-bit program, arch/x86/include/asm/elf.h. */
#define MOVABLE_BASE 0x400000UL

/* struct stat: device, inode; the size is the seventh word. */
#define STATUS_SIZE 6

void program_read_beginning(struct beginning *beginning, long fd) {
    beginning->size = KERNEL_4(__NR_pread64, fd, beginning->bytes, sizeof beginning->bytes, 0);
}

static int read_part(const struct beginning *beginning, long fd, void *to, u64 size, u64 offset) {
    if (offset + size <= (u64)beginning->size) {
        copy_bytes(to, beginning->bytes + offset, size);
        return 1;
    }
    return KERNEL_4(__NR_pread64, fd, to, size, offset) == (long)size;
}

static void read_image(struct image *image, struct beginning *beginning, long fd, const char *path) {
    LARGE static u8 many[ELF_PROGRAM_HEADERS * ELF_PROGRAM_HEADER_SIZE];
    u32 offset;
    u16 count;
    i64 size = beginning->size;
    if (failed(size)) {
        give_up(126, "%s: cannot be read: %s", path, error_name(-size));
    }
    const u8 *header = beginning->bytes, *entries = many;
    if (elf_kind(header, (size_t)size) != ELF_X32) {
        give_up(126,
                "%s: not an x32 program; one is an ELF file of class 32 for x86-64, as gcc -mx32 makes it",
                path);
    }
    const char *wrong = elf_read_header(header, (size_t)size, &offset, &count);
    if (wrong != NULL) {
        give_up(126, "%s: %s", path, wrong);
    }
    u64 wanted = (u64)count * ELF_PROGRAM_HEADER_SIZE;
    if (offset + wanted <= (u64)size) {
        entries = beginning->bytes + offset;
    } else if (!read_part(beginning, fd, many, wanted, offset)) {
        give_up(126, "%s: its program headers at byte %u lie beyond the end of the file: it is truncated",
                path, (u64)offset);
    }
    u64 status[18] = {0};
    KERNEL_2(__NR_fstat, fd, status);
    wrong = elf_read(header, entries, count, status[STATUS_SIZE], image);
    image->device = status[0];
    image->inode = status[1];
    if (wrong != NULL) {
        give_up(126, "%s: %s", path, wrong);
    }
}

__attribute__((noreturn)) static void cannot_map(const char *path, const struct segment *segment, u64 address,
                                                 long error) {
    if (error == -EPERM || error == -EACCES) {
        give_up(126, "%s: the kernel does not let it be executed (%s): is its file system mounted noexec?",
                path, error_name(-error));
    }
    give_up(126, "%s: no room for its segment of %u bytes at %x: %s", path, (u64)segment->memory_size,
            address, error_name(-error));
}

/* The rest of a segment's last page of the file is the beginning of what is 0. */
static void clear_tail(const char *path, const struct segment *segment, u64 from) {
    static const u8 zeros[PAGE / 8];
    u64 end = ROUND_UP(from, PAGE);
    if (!(segment->protection & PROT_WRITE) || from == end) {
        return;
    }
    for (u64 at = from, size; at < end; at += size) {
        size = end - at < sizeof zeros ? end - at : sizeof zeros;
        if (write_user(at, zeros, size) < 0) {
            give_up(126, "%s: its segment at %x cannot be read from the file: it is truncated", path, from);
        }
    }
    account_programs_fault();
}

/* Where nothing is, except for what another segment of the file has put below `covered`. */
static long place(u64 covered, u64 at, u64 size, u64 protection, u64 flags, long fd, u64 offset) {
    flags |= at < covered ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    long result = space_map(at, size, protection, MAP_PRIVATE | flags, fd, offset);
    return failed(result) || (u64)result == at ? result : -EEXIST;
}

static void map_segment(const char *path, long fd, const struct segment *segment, u32 bias, u64 covered) {
    u64 start = (u64)segment->address + bias;
    u64 page = ROUND_DOWN(start, PAGE), lead = start - page;
    u64 file_end = start + segment->file_size, end = start + segment->memory_size;
    u64 zero = page;
    if (segment->file_size > 0) {
        long result = place(covered, page, segment->file_size + lead, segment->protection, 0, fd,
                            segment->file_offset - lead);
        if (failed(result)) {
            cannot_map(path, segment, page, result);
        }
        zero = ROUND_UP(file_end, PAGE);
        if (end > file_end) { /* elf_load(), fs/binfmt_elf.c: else it is the file's */
            clear_tail(path, segment, file_end);
        }
    }
    if (ROUND_UP(end, PAGE) > zero) {
        long result =
            place(covered, zero, ROUND_UP(end, PAGE) - zero, segment->protection, MAP_ANONYMOUS, -1, 0);
        if (failed(result)) {
            cannot_map(path, segment, zero, result);
        }
    }
    if (segment->protection == (PROT_READ | PROT_EXEC)) {
        sites_text(page, segment->file_size + lead);
    }
}

static void map_image(struct loaded *loaded, const char *path, long fd, u64 base, int exactly) {
    const struct image *image = &loaded->image;
    u64 size = (u64)image->high - image->low, at;
    if (exactly || (base != 0 && space_is_free(ROUND_UP(base, image->alignment), size) &&
                    ROUND_UP(base, image->alignment) + size < TASK_SIZE)) {
        at = exactly ? base : ROUND_UP(base, image->alignment);
    } else {
        at = space_choose(size, image->alignment);
    }
    if (at == 0 || !space_is_free(at, size)) {
        give_up(126, "%s: no room below 4 GiB for its %u bytes at %x", path, size, at);
    }
    loaded->bias = (u32)(at - image->low);
    u64 covered = at;
    for (u32 i = 0; i < image->segment_count; i++) {
        const struct segment *segment = &image->segments[i];
        map_segment(path, fd, segment, loaded->bias, covered);
        u64 end = ROUND_UP((u64)segment->address + loaded->bias + segment->memory_size, PAGE);
        covered = end > covered ? end : covered;
    }
}

/* With nothing to trap, what is not rewritten now never is. */
static void rewrite_ahead(const struct loaded *loaded) {
    for (u32 i = 0; i < loaded->image.segment_count; i++) {
        const struct segment *segment = &loaded->image.segments[i];
        if ((segment->protection & (PROT_EXEC | PROT_WRITE | PROT_READ)) == (PROT_EXEC | PROT_READ)) {
            sites_rewrite_all((u64)segment->address + loaded->bias, segment->file_size);
        }
    }
}

static void load_interpreter(struct program *program, struct beginning *beginning, long fd,
                             const char *path) {
    const struct image *image = &program->main.image;
    char name[image->interpreter_size];
    if (!read_part(beginning, fd, name, image->interpreter_size, image->interpreter_offset) ||
        name[image->interpreter_size - 1] != 0) {
        give_up(126, "%s: the name of its interpreter is not text that ends", path);
    }
    long file = program_open((u64)AT_FDCWD, name, O_CLOEXEC | O_NONBLOCK);
    if (failed(file)) {
        const char *advice =
            file == -ENOENT ? " (Debian: apt-get install libc6-x32, and libx32stdc++6 for C++)" : "";
        give_up(127, "%s: its interpreter %s cannot be opened: %s%s", path, name, error_name(-file), advice);
    }
    program_read_beginning(beginning, file);
    read_image(&program->interpreter.image, beginning, file, name);
    if (program->interpreter.image.interpreter_size != 0) {
        give_up(126, "%s: its interpreter %s wants an interpreter itself", path, name);
    }
    const struct image *interpreter = &program->interpreter.image;
    map_image(&program->interpreter, name, file, interpreter->movable ? 0 : interpreter->low,
              !interpreter->movable);
    KERNEL_1(__NR_close, file);
    program->has_interpreter = 1;
}

void program_load(struct program *program, struct beginning *beginning, long fd, const char *path,
                  u64 random) {
    read_image(&program->main.image, beginning, fd, path);
    const struct image *image = &program->main.image;
    if (!image->states_stack) {
        /* What can be read can be executed: elf_read_implies_exec(), arch/x86/include/asm/elf.h, where x32
         * counts as ia32 (TIF_ADDR32). */
        KERNEL_1(__NR_personality, KERNEL_1(__NR_personality, 0xffffffff) | READ_IMPLIES_EXEC);
    }
    if (!image->movable && image->low < 0x1000) {
        give_up(126, "%s: it wants to lie at address 0", path);
    }
    map_image(&program->main, path, fd, image->movable ? MOVABLE_BASE + random * PAGE : image->low,
              !image->movable);
    program->start = image->entry + program->main.bias;
    program->heap_start = image->high + program->main.bias;
    if (image->interpreter_size != 0) {
        load_interpreter(program, beginning, fd, path);
        program->start = program->interpreter.image.entry + program->interpreter.bias;
    }
    if (settings.ahead) {
        rewrite_ahead(&program->main);
        if (program->has_interpreter) {
            rewrite_ahead(&program->interpreter);
        }
    }
}
