#include "space.h"
#include "account.h"
#include "growing.h"
#include "robust.h"
#include "user_memory.h"

#define PAGES (1UL << 20)
#define WORDS (PAGES / 64)

/* One bit for each page below 4 GiB, 1 where it is taken. Only the parts that are used become resident. */
LARGE static u64 taken[WORDS] __attribute__((aligned(PAGE)));
static u64 base; /* mappings go below (or, in the legacy layout, above) this */
static int bottom_up;
static u64 highest_free; /* no page in [highest_free, base) is free */

/* Where the word of a range of 64 pages is: what lies below 64 MiB, where programs begin, and the 64 MiB
 * below the highest place of a mapping are in one page of the map, which nearly every process touches. */
#define HALF (PAGE / sizeof(u64) / 2)
#define PROGRAMS_HALF 0UL
#define MAPPINGS_HALF (0xf4000000UL / PAGE / 64 / HALF)
static u64 *word_at(u64 word) {
    u64 half = word / HALF;
    half = half == PROGRAMS_HALF + 1 ? MAPPINGS_HALF : half == MAPPINGS_HALF ? PROGRAMS_HALF + 1 : half;
    return &taken[half * HALF + word % HALF];
}

static u64 taken_of(u64 word) { return __atomic_load_n(word_at(word), __ATOMIC_RELAXED); }

/* The same of those that are shared; nothing there is touched before there is the first. */
LARGE static u64 shared[WORDS];
static int any_shared;
/* The pages between which all of those are: the first, and behind the last in the upper half. 0 where there
 * are none. */
static u64 shared_bounds;

static u64 *shared_word_at(u64 word) { return &shared[word]; }

static inline void mark_bits(u64 *word, u64 bits, int is_set) {
    if (is_set) {
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
    }
}

/* The end of the words from `word` on that lie together, at most `end`. */
static u64 end_of_half(u64 word, u64 end) {
    u64 half = ROUND_DOWN(word, HALF) + HALF;
    return half < end ? half : end;
}

/* From some dozens of words on, `rep stosq` is faster than a loop of stores: a GiB has 4096. */
static inline void fill_words(u64 *at, u64 count, u64 value) {
    __asm__ volatile("rep stosq" : "+D"(at), "+c"(count) : "a"(value) : "memory");
}

/* Sets or clears the bits of a range of pages. No other thread has a bit to lose in a word that is all the
 * range's, so it is stored and not read. */
static inline __attribute__((always_inline)) void mark(u64 *(*word_of)(u64), u64 first, u64 end, int is_set) {
    while (first < end) {
        u64 word = first / 64, low = first % 64;
        if (low == 0 && end - first >= 64) {
            u64 stop = end_of_half(word, end / 64);
            fill_words(word_of(word), stop - word, is_set ? ~0UL : 0);
            first = stop * 64;
            continue;
        }
        u64 high = end - word * 64 < 64 ? end - word * 64 : 64;
        u64 bits = (high == 64 ? ~0UL : (1UL << high) - 1) & ~((1UL << low) - 1);
        mark_bits(word_of(word), bits, is_set);
        first = word * 64 + high;
    }
}

static u64 last_page(u64 address, u64 size) {
    u64 end = address + size < address ? ~0UL : address + size;
    end = end > (1UL << 32) ? 1UL << 32 : end;
    return ROUND_UP(end, PAGE) / PAGE;
}

void space_take(u64 address, u64 size) {
    if (address < (1UL << 32)) {
        mark(word_at, address / PAGE, last_page(address, size), 1);
    }
}

void space_free(u64 address, u64 size) {
    if (address >= (1UL << 32) || size == 0) {
        return;
    }
    u64 end = last_page(address, size);
    mark(word_at, address / PAGE, end, 0);
    growing_note(address, size, 0);
    u64 before = __atomic_load_n(&highest_free, __ATOMIC_RELAXED);
    while (end * PAGE > before && !__atomic_compare_exchange_n(&highest_free, &before, end * PAGE, 0,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

int space_is_shared(void) { return any_shared; }

#define BOUNDS(first, end) ((first) | (end) << 32)
#define FIRST_OF(bounds) ((bounds)&0xffffffffUL)
#define END_OF(bounds) ((bounds) >> 32)

/* Before its bits are set: outside of the bounds none is. */
static void widen_bounds(u64 first, u64 end) {
    u64 now = __atomic_load_n(&shared_bounds, __ATOMIC_RELAXED), wide;
    do {
        wide = now == 0 ? BOUNDS(first, end)
                        : BOUNDS(first < FIRST_OF(now) ? first : FIRST_OF(now),
                                 end > END_OF(now) ? end : END_OF(now));
    } while (!__atomic_compare_exchange_n(&shared_bounds, &now, wide, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* What most programs take away was never shared, and to read that of each page costs as much as to clear it.
 */
static void clear_shared(u64 first, u64 end) {
    u64 now = __atomic_load_n(&shared_bounds, __ATOMIC_SEQ_CST);
    if (end <= FIRST_OF(now) || first >= END_OF(now)) {
        return;
    }
    mark(shared_word_at, first, end, 0);
    if (first <= FIRST_OF(now) && end >= END_OF(now)) {
        /* Not where another thread has widened them meanwhile. */
        __atomic_compare_exchange_n(&shared_bounds, &now, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}

void space_note_shared(u64 address, u64 size, int is_shared) {
    if (is_shared && !any_shared) {
        any_shared = 1;
        robust_not_alone();
    }
    if (!any_shared || address >= (1UL << 32) || size == 0) {
        return;
    }
    u64 first = address / PAGE, end = last_page(address, size);
    if (is_shared) {
        widen_bounds(first, end);
        mark(shared_word_at, first, end, 1);
    } else {
        clear_shared(first, end);
    }
}

static int is_page_shared(u64 address) {
    u64 page = address / PAGE;
    return any_shared && ((__atomic_load_n(&shared[page / 64], __ATOMIC_RELAXED) >> (page % 64)) & 1);
}

u64 space_shared_until(u64 low, u64 high, int *is_shared) {
    *is_shared = is_page_shared(low);
    u64 at = any_shared ? low + PAGE : high;
    while (at < high && is_page_shared(at) == *is_shared) {
        at += PAGE;
    }
    return at < high ? at : high;
}

static int is_taken(u64 page) { return (taken_of(page / 64) >> (page % 64)) & 1; }

int space_is_free(u64 address, u64 size) {
    for (u64 page = address / PAGE, end = last_page(address, size); page < end; page++) {
        u64 word = taken_of(page / 64);
        if (page % 64 == 0 && word == 0) {
            page += 63;
        } else if ((word >> (page % 64)) & 1) {
            return 0;
        }
    }
    return 1;
}

/* The highest page at which a range may end that was to end at `end`: below a mapping that grows down the
 * kernel leaves a gap (vm_start_gap(), include/linux/mm.h). */
__attribute__((noinline)) static u64 below_growing(u64 end) {
    u64 page = end;
    while (page < PAGES && !is_taken(page)) {
        page += page % 64 == 0 && taken_of(page / 64) == 0 ? 64 : 1;
    }
    if (page >= PAGES || !growing_has(page)) {
        return end;
    }
    u64 low = growing_start(page, end);
    space_take(low * PAGE, (page - low) * PAGE);
    u64 most = low > GROWING_GAP ? low - GROWING_GAP : 0;
    return most < end ? most : end;
}

static inline u64 may_end(u64 end) { return growing_any ? below_growing(end) : end; }

/* Whether the kernel would take it for a hint. */
static int may_be_at(u64 address, u64 size) {
    u64 end = last_page(address, size);
    return space_is_free(address, size) && may_end(end) == end;
}

#define TOGETHER 8
static inline int are_zero(const u64 *words) {
    u64 any = 0;
#pragma GCC unroll 8
    for (int i = 0; i < TOGETHER; i++) {
        any |= __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    }
    return any == 0;
}

/* The lowest of the words below `word` that lie together, down to `lowest`, and of which all are 0. */
static u64 zeros_down(u64 word, u64 lowest) {
    u64 half = ROUND_DOWN(word - 1, HALF);
    u64 stop = lowest > half ? lowest : half;
    const u64 *at = word_at(word - 1) + 1; /* behind the word */
    while (word >= stop + TOGETHER && are_zero(at - TOGETHER)) {
        word -= TOGETHER;
        at -= TOGETHER;
    }
    while (word > stop && __atomic_load_n(at - 1, __ATOMIC_RELAXED) == 0) {
        word--;
        at--;
    }
    return word;
}

/* Down to which word below `word` to look for a range that ends at `run_end`: further where it did not suit.
 */
static u64 enough(u64 run_end, u64 pages, u64 word, u64 lowest) {
    u64 stop = run_end > pages ? (run_end - pages) / 64 : 0;
    stop = stop < word ? stop : word - 1;
    return stop > lowest ? stop : lowest;
}

/* The highest free range below `high`. */
static u64 find_down(u64 pages, u64 alignment, u64 low, u64 high) {
    u64 run_end = high / PAGE, page = run_end, lowest_word = ROUND_UP(low / PAGE, 64) / 64;
    while (page > low / PAGE) {
        u64 word = taken_of((page - 1) / 64);
        if (page % 64 == 0 && page / 64 > lowest_word && (word == 0 || word == ~0UL)) {
            if (word != 0) {
                page -= 64;
                run_end = page;
                continue;
            }
            page = zeros_down(page / 64, enough(run_end, pages, page / 64, lowest_word)) * 64;
        } else {
            page--;
            if ((word >> (page % 64)) & 1) {
                run_end = page;
                continue;
            }
        }
        if (run_end >= page + pages) {
            run_end = may_end(run_end);
        }
        if (run_end >= page + pages) {
            u64 start = ROUND_DOWN((run_end - pages) * PAGE, alignment);
            if (start / PAGE >= page && start >= low) {
                return start;
            }
        }
    }
    return 0;
}

/* The lowest free range at or above `low`. */
static u64 find_up(u64 pages, u64 alignment, u64 low, u64 high) {
    u64 start = ROUND_UP(low, alignment) / PAGE;
    u64 page = start;
    while (page < high / PAGE) {
        if (is_taken(page)) {
            start = ROUND_UP((page + 1) * PAGE, alignment) / PAGE;
            page = start;
            continue;
        }
        page++;
        if (page - start >= pages && may_end(page) == page) {
            return start * PAGE;
        }
    }
    return 0;
}

u64 space_find(u64 size, u64 alignment, u64 low, u64 high) {
    return find_down(ROUND_UP(size, PAGE) / PAGE, alignment, low, high);
}

/* /proc/sys/vm/mmap_min_addr is never more; nothing is put lower unless the program asks for it. */
#define LOWEST 0x10000UL

/* Between the program and its heap: for trampolines, and for what the program itself puts there. */
static struct { u64 low, high; } gap;

static u64 search_up(u64 pages, u64 alignment) {
    u64 found = find_up(pages, alignment, base, TASK_SIZE);
    found = found != 0 || gap.high == 0 ? found : find_up(pages, alignment, LOWEST, gap.low);
    return found != 0 ? found : find_up(pages, alignment, gap.high != 0 ? gap.high : LOWEST, base);
}

static u64 search_down(u64 pages, u64 alignment, u64 high) {
    u64 found = high > gap.high ? find_down(pages, alignment, gap.high != 0 ? gap.high : LOWEST, high) : 0;
    found = found != 0 || gap.high == 0
                ? found
                : find_down(pages, alignment, LOWEST, high < gap.low ? high : gap.low);
    /* As the kernel: above the base only when there is nothing below. */
    return found != 0 ? found : find_up(pages, alignment, base, TASK_SIZE);
}

static u64 search(u64 size, u64 alignment) {
    u64 pages = ROUND_UP(size, PAGE) / PAGE;
    if (bottom_up) {
        return search_up(pages, alignment);
    }
    u64 high = __atomic_load_n(&highest_free, __ATOMIC_RELAXED);
    high = high < base ? high : base;
    /* Remember how far everything is taken, so that the next search begins there. */
    u64 page = high / PAGE;
    while (page > LOWEST / PAGE && is_taken(page - 1)) {
        page = (page % 64 == 0 && taken_of(page / 64 - 1) == ~0UL) ? page - 64 : page - 1;
    }
    if (page * PAGE < high) {
        __atomic_compare_exchange_n(&highest_free, &high, page * PAGE, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return search_down(pages, alignment, page * PAGE);
}

void space_begin(u64 mapping_base, int legacy) {
    base = mapping_base;
    highest_free = mapping_base;
    bottom_up = legacy;
    /* What of the map is read first is written before, which makes one fault of two. */
    mark_bits(word_at(0), 0, 1);
    mark_bits(word_at(mapping_base / PAGE / 64), 0, 1);
}

/* Maps at exactly this address, and only where nothing is. Kernels before 4.17, and valgrind, take the
 * address for a hint. */
static long map_at(u64 address, u64 size, u64 protection, u64 flags, i64 fd, u64 offset) {
    long result;
    if ((flags & MAP_TYPE) == MAP_SHARED_VALIDATE) {
        /* Then the kernel wants to know every flag of the file's, and MAP_FIXED_NOREPLACE is none of those it
         * lets through (LEGACY_MAP_MASK, include/linux/mman.h): onto a place that was reserved. */
        result = map_at(address, size, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (failed(result)) {
            return result;
        }
        result = FOR_PROGRAM(KERNEL_6(__NR_mmap, address, size, protection, flags | MAP_FIXED, fd, offset));
        if (failed(result)) {
            space_unmap(address, size);
        }
        return result;
    }
    result =
        FOR_PROGRAM(KERNEL_6(__NR_mmap, address, size, protection, flags | MAP_FIXED_NOREPLACE, fd, offset));
    if (failed(result)) {
        return result;
    }
    if ((u64)result != address) {
        KERNEL_2(__NR_munmap, result, size);
        return -EEXIST;
    }
    space_take(address, size);
    return result;
}

u64 space_choose(u64 size, u64 alignment) {
    u64 found = search(size, alignment);
    if (found == 0) {
        space_read_again();
        found = search(size, alignment);
    }
    return found;
}

void space_learn(u64 address, u64 size, int attempt) {
    if (attempt > 0) {
        KERNEL_1(__NR_sched_yield, 0);
        space_read_again();
    }
    /* Without /proc there is no more to know than that some page of it is taken. */
    if (attempt > 1 && space_is_free(address, size)) {
        space_take(ROUND_DOWN(address + size - 1, PAGE), PAGE);
    }
}

static u64 alignment_of(u64 flags) {
    if (!(flags & MAP_HUGETLB)) {
        return PAGE;
    }
    u64 shift = (flags >> MAP_HUGE_SHIFT) & MAP_HUGE_MASK;
    return 1UL << (shift != 0 ? shift : 21);
}

#define HUGETLBFS_MAGIC 0x958458f6UL

/* A file of huge pages is recognised by its file system alone. */
static u64 alignment_of_file(i64 fd) {
    struct {
        u64 type, block_size, rest[14];
    } system;
    if (failed(KERNEL_2(__NR_fstatfs, fd, &system)) || system.type != HUGETLBFS_MAGIC) {
        return PAGE;
    }
    return system.block_size;
}

static long map(u64 address, u64 size, u64 protection, u64 flags, i64 fd, u64 offset) {
    /* Every x32 mapping is below 4 GiB; the flag means nothing (arch_get_unmapped_area_topdown). */
    flags &= ~(u64)MAP_32BIT;
    if (size == 0) {
        return KERNEL_6(__NR_mmap, address, size, protection, flags, fd, offset);
    }
    u64 rounded = ROUND_UP(size, PAGE);
    if (rounded < size || rounded > TASK_SIZE) {
        return -ENOMEM;
    }
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
        if (address > TASK_SIZE - rounded) {
            return -ENOMEM;
        }
        long result = FOR_PROGRAM(KERNEL_6(__NR_mmap, address, size, protection, flags, fd, offset));
        if (!failed(result)) {
            space_take((u64)result, rounded);
        }
        return result;
    }
    u64 alignment = alignment_of(flags);
    u64 hint = ROUND_DOWN(address, PAGE);
    if (hint != 0 && hint < LOWEST) {
        hint = LOWEST;
    }
    if (hint != 0 && hint <= TASK_SIZE - rounded && hint % alignment == 0 && may_be_at(hint, rounded)) {
        long result = map_at(hint, size, protection, flags, fd, offset);
        if (result != -EEXIST) {
            return result;
        }
    }
    for (int attempt = 0; attempt < SPACE_ATTEMPTS; attempt++) {
        u64 found = space_choose(rounded, alignment);
        if (found == 0) {
            break;
        }
        long result = map_at(found, size, protection, flags, fd, offset);
        if (result == -EINVAL && alignment == PAGE && !(flags & MAP_ANONYMOUS)) {
            alignment = alignment_of_file(fd);
            if (alignment != PAGE) {
                rounded = ROUND_UP(rounded, alignment);
                continue;
            }
        }
        if (result != -EEXIST) {
            return result;
        }
        space_learn(found, rounded, attempt);
    }
    /* What is wrong with the request itself comes first. */
    long result = KERNEL_6(__NR_mmap, 0, size, protection, flags, fd, offset);
    if (failed(result)) {
        return result;
    }
    KERNEL_2(__NR_munmap, result, size);
    return -ENOMEM;
}

long space_map(u64 address, u64 size, u64 protection, u64 flags, i64 fd, u64 offset) {
    long result = map(address, size, protection, flags, fd, offset);
    if (!failed(result)) {
        space_note_shared((u64)result, size, (flags & MAP_TYPE) != MAP_PRIVATE);
        growing_note((u64)result, size, (flags & MAP_GROWSDOWN) != 0);
    }
    return result;
}

long space_map_within(u64 size, u64 protection, u64 low, u64 high) {
    for (int attempt = 0; attempt < SPACE_ATTEMPTS; attempt++) {
        u64 found = space_find(size, PAGE, low, high);
        if (found == 0) {
            return -ENOMEM;
        }
        long result = map_at(found, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (result != -EEXIST) {
            return result;
        }
        space_learn(found, ROUND_UP(size, PAGE), attempt);
    }
    return -ENOMEM;
}

void space_gone(u64 address, u64 size) {
    /* Before another thread can map something shared there. */
    space_note_shared(address, size, 0);
    space_free(address, size);
}

long space_unmap(u64 address, u64 size) {
    if (address > TASK_SIZE || size > TASK_SIZE - address) {
        return -EINVAL;
    }
    long result = FOR_PROGRAM(KERNEL_2(__NR_munmap, address, size));
    if (!failed(result)) {
        space_gone(address, size);
    }
    return result;
}

/* What moves, moves onto a place that was reserved, since MREMAP_FIXED replaces whatever is there. -EEXIST
 * where something is. */
static long move_to(u64 place, u64 old, u64 old_size, u64 new_size, u64 flags) {
    long result = map_at(place, new_size, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (failed(result)) {
        return result;
    }
    result = FOR_PROGRAM(
        KERNEL_5(__NR_mremap, old, old_size, new_size, flags | MREMAP_MAYMOVE | MREMAP_FIXED, place));
    if (failed(result)) {
        KERNEL_2(__NR_munmap, place, new_size);
        space_free(place, new_size);
    } else if (!(flags & MREMAP_DONTUNMAP)) {
        space_free(old, old_size);
    }
    return result;
}

/* With MREMAP_FIXED the kernel would move what is several mappings, which it refuses without. The place is a
 * hint then, and what is put elsewhere moves once more. */
static long keep_and_move_to(u64 place, u64 old, u64 size, u64 flags) {
    long result = FOR_PROGRAM(KERNEL_5(__NR_mremap, old, size, size, flags, place));
    if (failed(result)) {
        return result;
    }
    if ((u64)result != place) {
        long moved = move_to(place, (u64)result, size, size, flags & ~(u64)MREMAP_DONTUNMAP);
        if (failed(moved)) {
            KERNEL_5(__NR_mremap, result, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, old);
            return moved;
        }
    }
    space_take(place, size);
    return (long)place;
}

static long move_or_keep(u64 place, u64 old, u64 old_size, u64 new_size, u64 flags) {
    return flags & MREMAP_DONTUNMAP && old_size == new_size ? keep_and_move_to(place, old, new_size, flags)
                                                            : move_to(place, old, old_size, new_size, flags);
}

static long move(u64 old, u64 old_size, u64 new_size, u64 flags) {
    for (int attempt = 0; attempt < SPACE_ATTEMPTS; attempt++) {
        u64 found = space_choose(new_size, PAGE);
        if (found == 0) {
            return -ENOMEM;
        }
        long result = move_or_keep(found, old, old_size, new_size, flags);
        if (result != -EEXIST) {
            return result;
        }
        space_learn(found, new_size, attempt);
    }
    return -ENOMEM;
}

/* mremap_to(), mm/mremap.c: with MREMAP_DONTUNMAP the new address is checked as with MREMAP_FIXED, and is a
 * hint. */
static long move_and_keep(u64 old, u64 old_size, u64 new_size, u64 flags, u64 hint) {
    if (hint % PAGE != 0 || hint > TASK_SIZE || new_size > TASK_SIZE - hint ||
        (old < hint + new_size && hint < old + old_size)) {
        return -EINVAL;
    }
    if (hint >= LOWEST && may_be_at(hint, new_size)) {
        long result = move_or_keep(hint, old, old_size, new_size, flags);
        if (result != -EEXIST) {
            return result;
        }
    }
    return move(old, old_size, new_size, flags);
}

static long remap(u64 old, u64 old_size, u64 new_size, u64 flags, u64 new_address) {
    u64 size = ROUND_UP(new_size, PAGE);
    if (old > TASK_SIZE || old_size > TASK_SIZE - old) {
        return failed(KERNEL_5(__NR_mremap, old, 0, 0, flags, new_address)) ? -EINVAL : -EFAULT;
    }
    if (flags & MREMAP_FIXED) {
        if (new_address > TASK_SIZE || new_size > TASK_SIZE - new_address) {
            return -EINVAL;
        }
        long result = FOR_PROGRAM(KERNEL_5(__NR_mremap, old, old_size, new_size, flags, new_address));
        if (!failed(result)) {
            if (!(flags & MREMAP_DONTUNMAP)) {
                space_free(old, ROUND_UP(old_size, PAGE));
            }
            space_take(new_address, size);
        }
        return result;
    }
    if (!(flags & MREMAP_DONTUNMAP) && old_size != 0 && new_size <= TASK_SIZE - old) {
        long result =
            FOR_PROGRAM(KERNEL_5(__NR_mremap, old, old_size, new_size, flags & ~(u64)MREMAP_MAYMOVE, 0));
        if (!failed(result)) {
            if (size < ROUND_UP(old_size, PAGE)) {
                space_free(old + size, ROUND_UP(old_size, PAGE) - size);
            }
            space_take(old, size);
            return result;
        }
        if (result != -ENOMEM || !(flags & MREMAP_MAYMOVE)) {
            return result;
        }
    }
    if (!(flags & MREMAP_MAYMOVE) || new_size == 0 || size < new_size) {
        return KERNEL_5(__NR_mremap, old, old_size, new_size, flags, new_address);
    }
    if (size > TASK_SIZE && !(flags & MREMAP_DONTUNMAP)) {
        return -ENOMEM;
    }
    return flags & MREMAP_DONTUNMAP ? move_and_keep(old, ROUND_UP(old_size, PAGE), size, flags, new_address)
                                    : move(old, ROUND_UP(old_size, PAGE), size, flags);
}

long space_remap(u64 old, u64 old_size, u64 new_size, u64 flags, u64 new_address) {
    int was_shared = old < TASK_SIZE && is_page_shared(old);
    int was_growing = old < TASK_SIZE && growing_has(old / PAGE);
    long result = remap(old, old_size, new_size, flags, new_address);
    if (!failed(result)) {
        space_note_shared((u64)result, new_size, was_shared);
        growing_note((u64)result, new_size, was_growing);
    }
    return result;
}

static u64 heap_start, heap_end;
static int heap_is_kernels;

/* The kernel's own heap can be put where the program wants it, without any right, where
 * CONFIG_CHECKPOINT_RESTORE is set; then brk is the kernel's, with its limits and its name. Elsewhere it is
 * made of mappings. */
void space_begin_heap(u64 program_end, u64 start) {
    if (program_end < base) {
        gap.low = program_end;
        gap.high = start < base ? start : base;
    }
    heap_start = heap_end = start;
    heap_is_kernels = (u64)KERNEL_1(__NR_brk, 0) == start;
}

u64 space_heap_start(void) { return heap_start; }
u64 space_heap_end(void) { return heap_end; }

long space_break(u64 wanted) {
    if (heap_is_kernels) {
        long result = FOR_PROGRAM(KERNEL_1(__NR_brk, wanted < TASK_SIZE ? wanted : 0));
        if ((u64)result > heap_end) {
            space_take(heap_end, (u64)result - heap_end);
        } else {
            u64 low = ROUND_UP((u64)result, PAGE);
            space_free(low, ROUND_UP(heap_end, PAGE) - low);
        }
        heap_end = (u64)result;
        return result;
    }
    struct rlimit limit;
    u64 now = ROUND_UP(heap_end, PAGE), then = ROUND_UP(wanted, PAGE);
    if (wanted < heap_start || wanted >= TASK_SIZE) {
        return (long)heap_end;
    }
    if (!failed(KERNEL_2(__NR_getrlimit, RLIMIT_DATA, &limit)) && wanted - heap_start > limit.current) {
        return (long)heap_end;
    }
    if (then > now) {
        long result = map_at(now, then - now, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (failed(result)) {
            return (long)heap_end;
        }
    } else if (then < now) {
        KERNEL_2(__NR_munmap, then, now - then);
        space_free(then, now - then);
    }
    heap_end = wanted;
    return (long)heap_end;
}
