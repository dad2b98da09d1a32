/* What tests have in common: a failed check names its line and ends the program. */
#ifndef WIDTHWISE_WINDOW_TESTS_CHECK_H
#define WIDTHWISE_WINDOW_TESTS_CHECK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "widthwise/window.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s does not hold; errno %d, last error: %s\n", __FILE__, __LINE__,       \
                    #condition, errno, ww_error());                                                          \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

/* The call fails with that errno and a message that has these words. */
#define FAILS(call, error, words)                                                                            \
    do {                                                                                                     \
        errno = 0;                                                                                           \
        const int result = (call);                                                                           \
        const int is = errno;                                                                                \
        if (result != -1 || is != (error) || !strstr(ww_error(), (words))) {                                 \
            fprintf(stderr, "%s:%d: %s: %d, errno %d (%s), message \"%s\"; expected errno %d and \"%s\"\n",  \
                    __FILE__, __LINE__, #call, result, is, strerror(is), ww_error(), (error), (words));      \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

/* A path in a folder of the test's own, which its end removes. */
static inline const char *test_path(const char *name) {
    static char folder[64], path[4][160];
    static unsigned next;
    if (!folder[0]) {
        const char *place = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.40s/window.XXXXXX",
                 place                           ? place
                 : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                 : "/tmp");
        CHECK(mkdtemp(folder));
    }
    char *own = path[next++ % 4];
    snprintf(own, sizeof path[0], "%s/%s", folder, name);
    return own;
}

static inline void test_end(void) {
    const char *folder = test_path("");
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

static inline uint64_t test_random(uint64_t *state) {
    uint64_t value = *state += 0x9e3779b97f4a7c15; /* SplitMix64: Steele, Lea, Flood, 2014 */
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

static inline ww_handle at(const ww_store *store, uint64_t offset) {
    ww_handle handle;
    CHECK(ww_handle_at(store, offset, &handle) == 0);
    return handle;
}

static inline void put_word(ww_store *store, uint64_t offset, uint64_t value) {
    ww_pinned pinned;
    CHECK(ww_pin(store, at(store, offset), sizeof value, WW_WRITE, &pinned) == 0);
    memcpy(pinned.data, &value, sizeof value);
    CHECK(ww_unpin(store, &pinned) == 0);
}

static inline uint64_t get_word(ww_store *store, uint64_t offset) {
    ww_pinned pinned;
    uint64_t value;
    CHECK(ww_pin(store, at(store, offset), sizeof value, WW_READ, &pinned) == 0);
    memcpy(&value, pinned.data, sizeof value);
    CHECK(ww_unpin(store, &pinned) == 0);
    return value;
}

#endif
