// Known parts: arrays of two types that one line makes. The bytes of the second one fit the first one's type behind a stored length,
// which arrays of that type do not have.
#include <cstdio>
#include <memory>

namespace graph {
struct Arc {
    void *to;
    long weight;
    bool used;
};
struct Expression {
    virtual ~Expression() = default;
};
} // namespace graph
using namespace graph;

void *volatile kept[2];

int main() {
    auto *arcs = new Arc[321]; auto *owners = new std::unique_ptr<Expression>[222];
    kept[0] = arcs;
    kept[1] = owners;
    return std::printf("%zu\n", sizeof *arcs) < 0;
}
