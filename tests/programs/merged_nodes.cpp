// Known parts: nodes of a list and control blocks of shared pointers, which have one size, so that a compiler
// merges the functions that allocate them.
#include <cstdio>
#include <list>
#include <memory>
#include <vector>

namespace {
struct Hidden {
    long value;
    void *pointer;
};
} // namespace

std::list<Hidden> nodes;
std::vector<std::shared_ptr<Hidden>> shared;

__attribute__((noinline)) void make_nodes(int count) {
    for (int i = 0; i < count; i++)
        nodes.push_back(Hidden{i, nullptr});
}

__attribute__((noinline)) void make_shared(int count) {
    for (int i = 0; i < count; i++)
        shared.push_back(std::make_shared<Hidden>());
}

int main() {
    shared.reserve(1000);
    make_nodes(4000);
    make_shared(1000);
    return std::printf("%zu\n", nodes.size() + shared.size()) < 0;
}
