// Containers inside of containers, for the types of heap blocks: each has COUNT elements, all live at the
// end. Two containers never have elements of one type, so that a wrong type shows.
#include <cstdio>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

constexpr int COUNT = 1000;

struct Leaf {
    Leaf *next;
    long key;
};

struct Branch {
    Branch *left, *right;
};

template <int N> struct Item {
    void *owner;
    int number;
};

struct Kept {
    Leaf leaf;
    char letter;
};

static std::function<int()> functions[2 * COUNT];

// Blocks of closures, whose types have no name in debug information.
__attribute__((noinline)) static void closures(Kept kept, int i) {
    functions[i] = [kept] { return kept.letter; };
    functions[COUNT + i] = [kept, i] { return kept.letter + i; };
}

int main() {
    std::vector<std::map<int, Leaf>> maps(COUNT);
    std::map<int, std::vector<Branch>> vectors;
    std::set<std::pair<int, Item<1> *>> pairs;
    std::unordered_map<int, std::vector<Item<2> *>> table;
    std::list<std::vector<Item<3>>> list;
    std::deque<std::vector<Item<4>>> queue;
    std::vector<std::shared_ptr<Item<5>>> shared;
    std::map<int, std::string> names;
    table.reserve(COUNT);
    shared.reserve(COUNT);
    for (int i = 0; i < COUNT; i++) {
        maps[i][i] = Leaf();
        vectors[i].resize(2);
        pairs.insert({i, nullptr});
        table[i].resize(3);
        list.emplace_back(2);
        queue.emplace_back(1);
        shared.push_back(std::make_shared<Item<5>>());
        names[i] = "short";
        closures(Kept(), i);
    }
    printf("%zu\n", table.bucket_count());
    fflush(stdout);
    // The heap is largest here.
    void *last = operator new(1);
    operator delete(last);
    return 0;
}
