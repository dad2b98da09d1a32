/*
 * Damaged stores: bytes of a good one are changed, by a fixed sequence of random numbers, with checksums that
 * fit again in most cases, so that the damage reaches what lies behind them. `damage_test DAMAGES`.
 */
#include <fcntl.h>

#include "damage.h"
#include "repair.h"

int main(int count, char **arguments) {
    const int damages = count > 1 ? atoi(arguments[1]) : 1500;
    unsigned char *good, *bytes;
    const size_t size = good_store(&good);
    uint64_t random = 99;
    int opened = 0;
    CHECK((bytes = malloc(size)));
    const char *path = test_path("damaged");
    for (int damage = 0; damage < damages; damage++) {
        memcpy(bytes, good, size);
        for (uint64_t left = damage == 0 ? 0 : 1 + test_random(&random) % 4; left > 0; left--) {
            static const uint64_t values[] = {0, 1, UINT32_MAX, UINT64_MAX, 1ull << 40, 4096, 15, 16};
            const uint64_t places[] = {
                test_random(&random) % 112, 4096 * (1 + test_random(&random) % 3) + test_random(&random) % 88,
                32 * 4096 + test_random(&random) % (64 * 4096), test_random(&random) % (96 * 4096)};
            const uint64_t place = places[test_random(&random) % 4] & ~3ull;
            const uint64_t value =
                test_random(&random) % 2 ? values[test_random(&random) % 8] : test_random(&random);
            memcpy(bytes + place, &value, test_random(&random) % 2 ? 4 : 8);
        }
        if (test_random(&random) % 8)
            repair_checksums(bytes, size);
        const size_t length = test_random(&random) % 16 ? size : (size_t)(test_random(&random) % size);
        const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK(fd >= 0 && write(fd, bytes, length) == (ssize_t)length && close(fd) == 0);
        const int is_open = use_damaged_store(path);
        CHECK(is_open || damage > 0);
        opened += is_open;
    }
    printf("%d of %d damaged stores could be opened\n", opened, damages);
    CHECK(opened > damages / 20 && opened < damages);
    free(good);
    free(bytes);
    test_end();
    return 0;
}
