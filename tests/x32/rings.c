/*
 * io_uring: a ring, a call of nothing, and vectors, which the kernel reads as those of x32.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define setup(...) syscall(__NR_getpid - 39 + 425, __VA_ARGS__)
#define enter(...) syscall(__NR_getpid - 39 + 426, __VA_ARGS__)
#define enlist(...) syscall(__NR_getpid - 39 + 427, __VA_ARGS__)

int main(void) {
    struct {
        uint32_t entries, completions, flags, cpu, idle, features, wq, reserved[3];
        uint32_t sq[10], cq[10];
    } parameters;
    memset(&parameters, 0, sizeof parameters);
    int ring = setup(4, &parameters);
    print_ok("io_uring_setup", ring);
    if (ring >= 0) {
        say("%u entries, %u completions", parameters.entries, parameters.completions);
        RESULT(enlist(ring, 99, NULL, 0));
        RESULT(enter(ring, 0, 0, 0, NULL, 0));
        /* Buffers to register are vectors, which the kernel reads as x32's. */
        static char room[8192] __attribute__((aligned(4096)));
        struct iovec buffers[] = {{room, 4096}, {room + 4096, 4096}};
        RESULT(enlist(ring, 0, buffers, 2));
        buffers[1].iov_base = (void *)8;
        RESULT(enlist(ring, 1, NULL, 0));
        RESULT(enlist(ring, 0, buffers, 2));
        uint8_t *head = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
        uint8_t *entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0x10000000);
        IS(head != MAP_FAILED && entries != MAP_FAILED);
        int target = open("ring", O_RDWR | O_CREAT, 0600);
        struct iovec parts[] = {{"through ", 8}, {"the ring", 8}};
        struct {
            uint8_t opcode, flags;
            uint16_t priority;
            int32_t fd;
            uint64_t offset, address;
            uint32_t length, rw;
            uint64_t data, rest[3];
        } *entry = (void *)entries;
        memset(entry, 0, 128);
        /* IOSQE_IO_LINK: the second waits for the first, and the completions have this order. */
        entry[0].opcode = 0, entry[0].flags = 4, entry[0].data = 0x1122334455667788;
        entry[1].opcode = 2, entry[1].fd = target, entry[1].address = (uintptr_t)parts, entry[1].length = 2,
        entry[1].data = 2;
        uint32_t *array = (void *)(head + parameters.sq[6]);
        array[0] = 0, array[1] = 1;
        *(volatile uint32_t *)(head + parameters.sq[1]) = 2;
        RESULT(enter(ring, 2, 2, 1, NULL, 0));
        struct {
            uint64_t data;
            int32_t result;
            uint32_t flags;
        } *done = (void *)(head + parameters.cq[5]);
        say("done: %llx %d, %llx %d", (long long)done[0].data, done[0].result, (long long)done[1].data,
            done[1].result);
        char text[20] = "";
        pread(target, text, 16, 0);
        TEXT(text);
    }
    RESULT(setup(0, &parameters));
    RESULT(setup(4, (void *)8));

    return 0;
}
