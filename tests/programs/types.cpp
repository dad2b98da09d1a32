// Memory made of known parts, for the types of heap blocks: COUNT objects of each kind, all live at the end.
// It prints the sizes that the compiler gives them. No two kinds have one line.
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef COUNT
#define COUNT 1000
#endif

struct Shape {
    virtual ~Shape() {}
    long area = 1;
    void *owner = nullptr;
};

struct Square : Shape {
    Square(int side) : side(side) {}
    int side;
};

template <typename T> struct Box {
    T *first;
    T value;
    double weight;
};

struct Counted {
    ~Counted() { last = nullptr; }
    void *last = nullptr;
    short kind = 0;
};

// As large as the length that new[] stores.
struct Owner {
    ~Owner() { delete what; }
    int *what = nullptr;
};

namespace own {
struct Link {
    Link *next;
    long key;
};
} // namespace own

// Not static: a compiler leaves out objects that nothing can see.
Shape *squares[COUNT];
Box<long> *boxes[COUNT];
own::Link *links;
Counted *counted;
Owner *owners;

__attribute__((noinline)) static void make_shapes() {
    for (int i = 0; i < COUNT; i++) {
        squares[i] = new Square(i);
        boxes[i] = new Box<long>();
    }
}

__attribute__((noinline)) static void make_links() {
    for (int i = 0; i < COUNT; i++) {
        own::Link *link = new own::Link;
        link->next = links;
        link->key = i;
        links = link;
    }
}

int main() {
    std::map<int, int> map;
    std::list<long long> list;
    std::vector<int *> pointers;
    pointers.reserve(COUNT);
    std::unordered_map<int, std::string> texts;
    texts.reserve(COUNT);
    std::deque<Shape *> queue;
    std::vector<std::shared_ptr<Square>> shared;
    shared.reserve(COUNT);
    for (int i = 0; i < COUNT; i++) {
        map[i] = i;
        list.push_back(i);
        pointers.push_back(&map[i]);
        texts[i] = std::string(40, 'x');
        queue.push_back(nullptr);
        shared.push_back(std::make_shared<Square>(i));
    }
    make_shapes();
    make_links();
    counted = new Counted[COUNT];
    owners = new Owner[COUNT];
    printf("%zu %zu %zu %zu %zu %zu\n", sizeof(Square), sizeof(Box<long>), sizeof(own::Link), sizeof(Counted),
           texts.bucket_count(), queue.size());
    fflush(stdout);
    // The heap is largest here.
    void *last = operator new(1);
    operator delete(last);
    delete[] counted;
    delete[] owners;
    return 0;
}
