// What rauschmayr-2013 saw of ROOT's stressEvents, in small: most of it is data of one size in every ABI,
// with a few pointers, and yet the system shows half the memory where pointers are short.
//
// It reads a file in baskets of 2 MB, keeps what it makes of them, and lets the baskets go. glibc gives the
// first basket a mapping of its own. When that is freed, its threshold for such mappings grows to the
// basket's size in LP64, where it may grow to 32 MiB, but not in ILP32, where it may grow to 512 KiB
// (mallopt(3), M_MMAP_THRESHOLD). From then on baskets lie in the heap in the one and in mappings of their
// own in the other; and the heap cannot shrink below what is kept at its top.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

struct Event {
    Event *next;
    Event *tracks;
    double values[24];
};

static const size_t BASKET = 2 << 20;

static char *read_basket(int number) {
    char *basket = static_cast<char *>(malloc(BASKET));
    if (basket == nullptr) {
        exit(1);
    }
    memset(basket, number + 1, BASKET);
    return basket;
}

static Event *make_event(Event *next, int number) {
    Event *event = new Event;
    event->next = next;
    event->tracks = next;
    for (double &value : event->values) {
        value = number;
    }
    return event;
}

static double sum_of(const Event *event) {
    double sum = 0;
    for (; event != nullptr; event = event->next) {
        sum += event->values[0];
    }
    return sum;
}

int main(int count, char **words) {
    const int baskets = count > 1 ? atoi(words[1]) : 12;
    const int events = count > 2 ? atoi(words[2]) : 120000;
    free(read_basket(0)); // the header
    std::vector<char *> file;
    for (int i = 0; i < baskets; i++) {
        file.push_back(read_basket(i)); // BASKETS
    }
    Event *kept = nullptr;
    for (int i = 0; i < events; i++) {
        kept = make_event(kept, i + file[i % file.size()][i % BASKET]); // EVENTS
    }
    for (char *basket : file) {
        free(basket);
    }
    // The analysis works on what is kept.
    double sum = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(900);
    while (std::chrono::steady_clock::now() < end) {
        sum = sum_of(kept);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    printf("%.0f\n", sum);
    return 0;
}
