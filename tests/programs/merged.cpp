// Known parts: containers whose functions have the same code, so that a compiler merges them; a template
// whose parameter has the name of another type; and objects whose members and arguments have constructors of
// their own.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

struct T {
    long numbers[4];
    void *next;
};
struct Slim {
    void *first;
    double second;
    char third;
};
struct Handle {
    void *pointer;
};

template <class T> struct Own {
    using value_type = T;
    Own() = default;
    template <class Other> Own(const Own<Other> &) {}
    T *allocate(std::size_t n) { return static_cast<T *>(std::malloc(n * sizeof(T))); }
    void deallocate(T *block, std::size_t) { std::free(block); }
    template <class Other> bool operator==(const Own<Other> &) const { return true; }
    template <class Other> bool operator!=(const Own<Other> &) const { return false; }
};

namespace {
struct Hidden {
    long value;
    void *pointer;
};
} // namespace

std::vector<Handle> handles;
std::vector<void *> pointers;
std::vector<Slim, Own<Slim>> slims;
std::vector<Hidden> hidden;
std::map<int, int (*)(char)> functions;
std::string *strings[1000];
T *single;

int main() {
    handles.reserve(10);
    pointers.reserve(100000);
    slims.reserve(3000);
    hidden.reserve(5000);
    for (int i = 0; i < 1000; i++) {
        functions[i] = nullptr;
        strings[i] = new std::string("short");
    }
    single = new T;
    return std::printf("%zu %zu\n", slims.capacity(), hidden.capacity() + functions.size()) < 0;
}
