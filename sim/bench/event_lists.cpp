// What a hold costs (take the first, put it back later) with so many pending, beside the binary heap of the
// standard library, whose order is the same and which cannot cancel.
#include "timing.hpp"

#include "widthwise/sim/agenda.hpp"
#include "widthwise/sim/distributions.hpp"

#include <cstdlib>
#include <queue>
#include <vector>

using namespace widthwise::sim;

namespace {

/// The standard heap with what decides the order, and nothing else.
class BinaryHeap {
  public:
    void insert(Node &node) { heap_.push({node.time, node.rank, &node}); }
    Node *pop() {
        Node *node = heap_.top().node;
        heap_.pop();
        return node;
    }

  private:
    struct Item {
        double time;
        std::uint64_t rank;
        Node *node;
        bool operator<(const Item &other) const {
            return time > other.time || (time == other.time && rank > other.rank);
        }
    };
    std::priority_queue<Item> heap_;
};

/// An agenda as the others' interface has it.
class AutomaticAgenda {
  public:
    void insert(Node &node) { agenda_.insert(node, now_); }
    Node *pop() {
        Node *node = agenda_.pop(1e300);
        now_ = node->time;
        return node;
    }

  private:
    Agenda agenda_{Listing::Automatic};
    double now_ = -1.0;
};

template <class List> double holds(std::size_t pending, std::size_t count) {
    List list;
    std::vector<Node> nodes(pending);
    Random random(1);
    std::uint64_t sequence = 0;
    for (Node &node : nodes) {
        node.time = exponential(random, 1.0);
        node.rank = rank_of(0, sequence++);
        list.insert(node);
    }
    const auto turn = [&](std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) {
            Node *node = list.pop();
            node->time += exponential(random, 1.0);
            node->rank = rank_of(0, sequence++);
            list.insert(*node);
        }
    };
    turn(2 * pending); // steady
    const double began = bench::seconds();
    turn(count);
    return (bench::seconds() - began) / static_cast<double>(count);
}

} // namespace

int main(int count, char **arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
    for (const std::size_t pending : {100u, 1000u, 10000u, 100000u, 1000000u}) {
        const std::size_t turns = pending >= 1000000 ? 2 * pending : 1000000;
        std::vector<bench::Contestant> lists = {
            {"automatic", [=] { return holds<AutomaticAgenda>(pending, turns); }},
            {"indexed heap", [=] { return holds<Heap>(pending, turns); }},
            {"calendar queue", [=] { return holds<CalendarQueue>(pending, turns); }},
            {"ladder queue", [=] { return holds<LadderQueue>(pending, turns); }},
            {"std::priority_queue", [=] { return holds<BinaryHeap>(pending, turns); }},
        };
        bench::compare((std::to_string(pending) + " pending, one hold with its exponential").c_str(), lists,
                       rounds, 1e9, "ns");
    }
}
