/* What the kernel says of the address space. */
#include "growing.h"
#include "space.h"

static u32 reads_again; /* a thread does */

void space_forked(void) { reads_again = 0; }

/* One line of /proc/self/maps begins with `low-high `. */
void space_read_again(void) {
    LARGE static char buffer[4096];
    if (__atomic_exchange_n(&reads_again, 1, __ATOMIC_ACQUIRE)) {
        return;
    }
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, "/proc/thread-self/maps", O_CLOEXEC);
    if (!failed(fd)) {
        u64 free_from = 0, number = 0, low = 0;
        enum { LOW, HIGH, REST } part = LOW;
        long size;
        while ((size = KERNEL_3(__NR_read, fd, buffer, sizeof buffer)) > 0) {
            for (long i = 0; i < size; i++) {
                char byte = buffer[i];
                if (byte == '\n') {
                    part = LOW;
                    number = 0;
                } else if (part == REST) {
                    continue;
                } else if (byte == '-') {
                    low = number;
                    number = 0;
                    part = HIGH;
                } else if (byte == ' ') {
                    part = REST;
                    if (low < (1UL << 32)) {
                        if (low > free_from) {
                            space_free(free_from, low - free_from);
                        }
                        space_take(low, number - low);
                        growing_found(low, number);
                        free_from = number;
                    }
                } else {
                    number = number * 16 + (u64)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
                }
            }
        }
        if (free_from < (1UL << 32)) {
            space_free(free_from, (1UL << 32) - free_from);
        }
        KERNEL_1(__NR_close, fd);
    }
    __atomic_store_n(&reads_again, 0, __ATOMIC_RELEASE);
}
