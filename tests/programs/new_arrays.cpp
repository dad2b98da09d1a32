// Known parts: arrays of types with and without a destructor, which a library's template makes, and lines
// with several calls whose blocks have one size. The first four types have as many elements as their arrays
// say; the blocks of the others are of two types each. Owner is the type of one call, of which there are
// two copies.
#include <cstdio>
#include <cstdlib>
#include <memory>

struct Counted {
    long long x;
    ~Counted();
};
struct Plain {
    long long x;
};
struct Defaulted {
    long long x;
    Defaulted() : x(1) {}
    ~Defaulted() = default;
};
struct alignas(32) Aligned {
    char bytes[32];
    ~Aligned();
};
Counted::~Counted() { std::putchar(x ? 0 : 1); }
Aligned::~Aligned() { std::putchar(bytes[0] ? 0 : 1); }

struct Pair {
    void *x;
    long y;
    ~Pair();
};
Pair::~Pair() { std::putchar(x ? 0 : 1); }
struct Five {
    void *all[5];
};
struct Single {
    void *all[7];
};
struct Macro {
    void *all[9];
};
struct Pointer {
    void *all[11];
};
struct Owner {
    void *buffer;
    long all[12];
};
#define RAW(bytes) std::malloc(bytes)
template <class T> struct Box { T one, other; };
typedef long whole;

static void *volatile kept[4000];
static int count;
static void keep(void *made) { kept[count++] = made; }
whole volatile sum;
Five *five;
Single *single;
Macro *macro;
Pointer *pointer;
void *(*volatile request)(std::size_t) = std::malloc;
Box<whole> *boxes;
Box<Counted> *others;

__attribute__((always_inline)) static inline Owner *owner() { return new Owner{std::malloc(64)}; }

int main() {
    for (int i = 0; i < 100; i++) {
        keep(std::make_unique<Counted[]>(9).release());
        keep(std::make_unique<Plain[]>(9).release());
        keep(std::make_unique<Defaulted[]>(9).release());
        keep(std::make_unique<Aligned[]>(3).release());
        keep(new Pair[2]()), keep(five = new Five);
        keep(std::malloc(sizeof(void *) * 7)), keep(single = new Single);
        keep(macro = new Macro), keep(RAW(sizeof(void *) * 9));
        keep(pointer = new Pointer), keep(request(sizeof(void *) * 11));
        keep(owner()), keep(owner());
        keep(boxes = new Box<whole>[6]), keep(others = new Box<Counted>[6]);
    }
    std::fflush(stdout);
    std::_Exit(0);
}
