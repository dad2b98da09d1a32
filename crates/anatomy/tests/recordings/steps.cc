// What the recordings beside this file were made of; `recordings.md` says how.
#include <cstdio>
#include <cstdlib>
struct Track {
    double energy;
    Track *next;
    long id;
};
static inline Track *made(long id, Track *next) { return new Track{1.0, next, id}; }
__attribute__((noinline)) Track *chain(int count) {
    Track *head = nullptr;
    for (int i = 0; i < count; i++) {
        head = made(i, head);
    }
    return head;
}
__attribute__((noinline)) void release(Track *track) {
    while (track != nullptr) {
        Track *next = track->next;
        delete track;
        track = next;
    }
}
template <typename T> __attribute__((noinline)) T *table(size_t count) {
    return (T *)calloc(count, sizeof(T));
}
int main() {
    size_t *numbers = table<size_t>(1000);
    release(chain(50));
    Track *kept = chain(100);
    numbers = (size_t *)realloc(numbers, 64000);
    numbers[0] = (size_t)kept;
    free(numbers);
    return 0;
}
