#include "calls.h"
#include "signals.h"
#include "user_memory.h"

/*
 * A place in a directory is a hash in some file systems, of which a 64-bit call gets 64 bits and one that is
 * in_compat_syscall() gets 32, since telldir() gives a long (is_32bit_api(), fs/ext4/dir.c). x32's calls are
 * such calls. struct linux_dirent64 is the same for all. So the 64-bit call is made, and where the file
 * system is one of those, the places in what it gave are cut as the kernel would have cut them. The file's
 * own position keeps its 64 bits.
 */
#define I386_GETDENTS64 220
#define SEEK_CURRENT 1
#define BEYOND_32_BITS (1L << 32)

#define EXT4_SUPER_MAGIC 0xef53
#define NFS_SUPER_MAGIC 0x6969
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#define ECRYPTFS_SUPER_MAGIC 0xf15f
#define LUSTRE_SUPER_MAGIC 0x0bd00bd0

enum places { SAME_FOR_ALL, HASHES, FOR_THE_KERNEL };

/* Those that ask is_32bit_api() or the like, and those that may hand on the places of one that does. */
static enum places places_of(u64 fd) {
    u64 system[15];
    if (failed(KERNEL_2(__NR_fstatfs, fd, system))) {
        return SAME_FOR_ALL;
    }
    switch (system[0]) {
    case EXT4_SUPER_MAGIC:
        return HASHES;
    case NFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case ECRYPTFS_SUPER_MAGIC:
    case LUSTRE_SUPER_MAGIC:
        return FOR_THE_KERNEL;
    default:
        return SAME_FOR_ALL;
    }
}

/* struct linux_dirent64; in the older struct linux_dirent the name is where the type is here, and the type in
 * the last byte. The sizes are the same. */
struct entry {
    u64 inode, offset;
    u16 size;
    u8 type;
    char name[255 + 1 + 8];
};
#define ENTRY_HEAD 19

/* hash2pos(), fs/ext4/dir.c: the upper word of 64 bits is the whole of 32. In pieces, of which each ends
 * before the first entry whose head it does not hold. */
static int cut_places(u64 from, u64 size) {
    u64 cells[256];
    u8 *piece = (u8 *)cells;
    while (size > 0) {
        u64 held = size < sizeof cells ? size : sizeof cells, at = 0, changed = 0;
        if (read_user(piece, from, held) < 0) {
            return -EFAULT;
        }
        while (at + ENTRY_HEAD <= held) {
            struct entry *entry = (struct entry *)(piece + at);
            if (entry->size < ENTRY_HEAD) {
                return -EFAULT;
            }
            if (entry->offset >= (u64)BEYOND_32_BITS) {
                entry->offset >>= 32;
                changed = 1;
            }
            at += entry->size;
        }
        if (changed && write_user(from, piece, at < held ? at : held) < 0) {
            return -EFAULT;
        }
        at = at < size ? at : size;
        from += at;
        size -= at;
    }
    return 0;
}

static long given(long result, struct frame *frame) {
    return result > 0 && cut_places((u32)frame->rsi, (u64)result) < 0 ? -EFAULT : result;
}

/* From what getdents64 gave to what getdents gives. */
static long as_older(long result, u64 address) {
    struct entry entry;
    for (u64 at = address, end = at + (u64)result; result > 0 && at < end; at += entry.size) {
        if (read_user(&entry, at, ENTRY_HEAD) < 0 || entry.size <= ENTRY_HEAD || entry.size > sizeof entry ||
            read_user(&entry, at, entry.size) < 0) {
            return -EFAULT;
        }
        u8 type = entry.type, *name = (u8 *)&entry + ENTRY_HEAD - 1;
        for (int i = 0; i < entry.size - ENTRY_HEAD; i++) {
            name[i] = name[i + 1];
        }
        ((u8 *)&entry)[entry.size - 1] = type;
        if (write_user(at, &entry, entry.size) < 0) {
            return -EFAULT;
        }
    }
    return result;
}

/* Position 0 is the same for all, and beyond 32 bits it is one that a 64-bit call left. What lies between is
 * a place that telldir() returned before: in 32 bits, which only the kernel knows how to read. */
static long read_folder(struct frame *frame, u64 number) {
    u64 fd = (u32)frame->rdi;
    if (!(frame->rax & X32_BIT)) {
        return forward(frame, number);
    }
    long position = KERNEL_3(__NR_lseek, fd, 0, SEEK_CURRENT);
    if (failed(position)) {
        return forward(frame, number);
    }
    if (position >= BEYOND_32_BITS) {
        long result = forward(frame, number);
        return result > 0 && places_of(fd) == HASHES ? given(result, frame) : result;
    }
    enum places places = places_of(fd);
    if (places == SAME_FOR_ALL) {
        return forward(frame, number);
    }
    if (places == FOR_THE_KERNEL || position > 0) {
        long result = i386_call(I386_GETDENTS64, fd, (u32)frame->rsi, (u32)frame->rdx, 0, 0);
        if (result != -ENOSYS) {
            return number == __NR_getdents ? as_older(result, (u32)frame->rsi) : result;
        }
    }
    return given(forward(frame, number), frame);
}

long call_getdents64(struct frame *frame) { return read_folder(frame, __NR_getdents64); }
long call_getdents(struct frame *frame) { return read_folder(frame, __NR_getdents); }
