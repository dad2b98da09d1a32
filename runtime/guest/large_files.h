/*
 * Large files: QEMU holds them ready, and its firmware configuration device copies them into pages of the
 * guest (docs/specs/fw_cfg.rst in QEMU; `-fw_cfg name=opt/widthwise/N,file=…`). An initramfs has to lie in
 * memory twice while a kernel unpacks it, and a 32-bit kernel has little that it can use for that. No driver
 * is needed, and no instruction is executed for a byte.
 *
 * A page of the file is made by a write of one byte. /proc/self/pagemap has its physical address.
 */
#ifndef WIDTHWISE_GUEST_LARGE_FILES_H
#define WIDTHWISE_GUEST_LARGE_FILES_H

#include "kernel.h"

enum { SELECT_PORT = 0x510, DATA_PORT = 0x511, DMA_PORT = 0x514, DMA_PORTS_END = 0x51c };
/* The item that lists all files. */
enum { DIRECTORY_ITEM = 0x19 };
enum { DMA_ERROR = 1, DMA_READ = 2, DMA_SELECT = 8 };
enum { PAGE_BITS = 12, PAGE_SIZE = 1 << PAGE_BITS, WINDOW_PAGES = 256 };
enum { NO_ENTRY = -2, INPUT_ERROR = -5 };

/* Numbers are big endian. */
struct listed_file {
    uint32_t size;
    uint16_t item, reserved;
    char name[56];
};

static struct dma_request {
    uint32_t control, length, address_high, address_low;
} volatile dma_request __attribute__((aligned(16)));

static void from_data_port(void *to, uint32_t count) {
    __asm__ volatile("rep insb" : "+D"(to), "+c"(count) : "d"(DATA_PORT) : "memory");
}

/* The item `opt/widthwise/NUMBER`; 0: there is none of that size. */
static uint16_t item_of(uint32_t number, uint32_t size) {
    static const char prefix[] = "opt/widthwise/";
    uint32_t count;
    __asm__ volatile("outw %0, %1" : : "a"((uint16_t)DIRECTORY_ITEM), "d"((uint16_t)SELECT_PORT));
    from_data_port(&count, sizeof count);
    count = __builtin_bswap32(count);
    for (uint32_t i = 0; i < count; i++) {
        struct listed_file file;
        from_data_port(&file, sizeof file);
        uint32_t at = 0, own = 0;
        while (prefix[at] && file.name[at] == prefix[at])
            at++;
        if (prefix[at])
            continue;
        for (; file.name[at] >= '0' && file.name[at] <= '9'; at++)
            own = own * 10 + (uint32_t)(file.name[at] - '0');
        if (own == number)
            return __builtin_bswap32(file.size) == size ? __builtin_bswap16(file.item) : 0;
    }
    return 0;
}

/* The physical addresses of pages of this process. */
static int32_t physical(int32_t pagemap, const volatile void *from, uint64_t *pages, uint32_t count) {
    uint32_t place = ((uint32_t)(uintptr_t)from >> PAGE_BITS) * sizeof *pages;
    int32_t wanted = (int32_t)(count * sizeof *pages);
    int32_t got = call(CALL_PREAD64, (uintptr_t)pagemap, (uintptr_t)pages, (uintptr_t)wanted, place, 0);
    if (got != wanted)
        return got < 0 ? got : INPUT_ERROR;
    for (uint32_t i = 0; i < count; i++) {
        if (!(pages[i] >> 63))
            return INPUT_ERROR;
        /* Bits 0 to 54 are the number of the page. */
        pages[i] = (pages[i] & (((uint64_t)1 << 55) - 1)) << PAGE_BITS;
    }
    return 0;
}

/* The next bytes of an item, or its first ones with DMA_SELECT in `control`. */
static int32_t transfer(uint64_t request, uint32_t control, uint64_t to, uint32_t length) {
    dma_request =
        (struct dma_request){__builtin_bswap32(control), __builtin_bswap32(length),
                             __builtin_bswap32((uint32_t)(to >> 32)), __builtin_bswap32((uint32_t)to)};
    uint32_t high = __builtin_bswap32((uint32_t)(request >> 32)), low = __builtin_bswap32((uint32_t)request);
    __asm__ volatile("outl %0, %1" : : "a"(high), "d"((uint16_t)DMA_PORT) : "memory");
    __asm__ volatile("outl %0, %1" : : "a"(low), "d"((uint16_t)(DMA_PORT + 4)) : "memory");
    return dma_request.control == 0 ? 0 : INPUT_ERROR;
}

/* Makes pages of the file from `offset` on and maps them; below 0 and above -4096: an error. */
static int32_t window_of(int32_t file, uint32_t offset, uint32_t pages) {
    for (uint32_t i = 0; i < pages; i++) {
        int32_t made = call(CALL_PWRITE64, (uintptr_t)file, (uintptr_t) "", 1, offset + i * PAGE_SIZE, 0);
        if (made != 1)
            return made < 0 ? made : INPUT_ERROR;
    }
    struct mapping mapping = {.length = pages * PAGE_SIZE,
                              .protection = PROT_READ,
                              .flags = MAP_SHARED | MAP_POPULATE,
                              .file = (uint32_t)file,
                              .offset = offset};
    return call(CALL_MMAP, (uintptr_t)&mapping, 0, 0, 0, 0);
}

/* Copies an item of so many bytes into a file of that size; 0, or an error below 0. */
static int32_t copy_item(uint16_t item, int32_t file, uint32_t size, int32_t pagemap) {
    static uint64_t pages[WINDOW_PAGES];
    uint64_t request;
    uint32_t control = (uint32_t)item << 16 | DMA_SELECT | DMA_READ;
    dma_request.control = 0;
    int32_t error = physical(pagemap, &dma_request, &request, 1);
    request |= (uintptr_t)&dma_request % PAGE_SIZE;
    for (uint32_t done = 0; done < size && error == 0;) {
        uint32_t left = size - done, count = (left - 1) / PAGE_SIZE + 1;
        if (count > WINDOW_PAGES)
            count = WINDOW_PAGES;
        int32_t window = window_of(file, done, count);
        if (window < 0 && window > -PAGE_SIZE)
            return window;
        error = physical(pagemap, (void *)(uintptr_t)(uint32_t)window, pages, count);
        for (uint32_t i = 0; i < count && error == 0; i++, control = DMA_READ) {
            uint32_t length = size - done < PAGE_SIZE ? size - done : PAGE_SIZE;
            error = transfer(request, control, pages[i], length);
            done += length;
        }
        call(CALL_MUNMAP, (uintptr_t)(uint32_t)window, count * PAGE_SIZE, 0, 0, 0);
    }
    return error;
}

/* Makes the file `path` of QEMU's item `number`; 0, or an error below 0. */
static int32_t place_large_file(const char *path, uint32_t number, uint32_t size, uint32_t mode) {
    uint16_t item = item_of(number, size);
    if (item == 0)
        return NO_ENTRY;
    int32_t file = call(CALL_OPEN, (uintptr_t)path, O_RDWR | O_CREAT | O_TRUNC | O_LARGEFILE, mode, 0, 0);
    if (file < 0)
        return file;
    int32_t pagemap = call(CALL_OPEN, (uintptr_t) "/proc/self/pagemap", O_RDONLY, 0, 0, 0);
    int32_t error = pagemap < 0 ? pagemap : call(CALL_FTRUNCATE64, (uintptr_t)file, size, 0, 0, 0);
    if (error == 0)
        error = copy_item(item, file, size, pagemap);
    if (pagemap >= 0)
        call(CALL_CLOSE, (uintptr_t)pagemap, 0, 0, 0, 0);
    call(CALL_CLOSE, (uintptr_t)file, 0, 0, 0, 0);
    return error;
}

#endif
