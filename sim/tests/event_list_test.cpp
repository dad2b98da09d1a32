#include "check.hpp"

#include "widthwise/sim/agenda.hpp"
#include "widthwise/sim/random.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <set>

using namespace widthwise::sim;

namespace {

struct Order {
    bool operator()(const Node *a, const Node *b) const { return before(*a, *b); }
};
using Reference = std::set<Node *, Order>;

/// How the next node's distance from now is drawn.
using Distance = std::function<double(Random &)>;

const std::vector<std::pair<const char *, Distance>> distances = {
    {"uniform", [](Random &r) { return r.uniform(); }},
    {"mostly equal", [](Random &r) { return r.below(4) == 0 ? 1.0 : 2.0; }},
    {"always equal", [](Random &) { return 1.0; }},
    {"now or far", [](Random &r) { return r.below(2) == 0 ? 0.0 : 1e6 * r.uniform(); }},
    {"heavy tailed", [](Random &r) { return 1e-3 / (r.uniform() * r.uniform() + 1e-12); }},
    {"clustered", [](Random &r) { return std::floor(10.0 * r.uniform()) + 1e-9 * r.uniform(); }},
    {"tiny steps at a large time", [](Random &r) { return 1e-7 * r.uniform(); }},
    {"many scales", [](Random &r) { return std::ldexp(r.uniform(), static_cast<int>(r.below(80)) - 40); }},
};

/// Inserts, pops and removes at random, in a list that grows to `most` and shrinks again, and compares with a
/// sorted set. `advance` passes the time of the popped node to the list.
template <class List, class Insert, class Pop, class Remove>
void compare(List &list, const Distance &distance, std::size_t most, double start, Insert insert, Pop pop,
             Remove remove) {
    Random random(99);
    std::deque<Node> nodes;
    std::vector<Node *> spare;
    Reference reference;
    std::uint64_t sequence = 0;
    double now = start;
    bool right = true;
    const auto add = [&] {
        Node *node = nullptr;
        if (spare.empty()) {
            node = &nodes.emplace_back();
        } else {
            node = spare.back();
            spare.pop_back();
        }
        node->time = now + distance(random);
        const auto priority = static_cast<std::int16_t>(random.below(8) == 0 ? random.below(3) : 0);
        node->rank = rank_of(priority, sequence++);
        insert(list, *node, now);
        reference.insert(node);
    };
    const auto take = [&] {
        Node *expected = *reference.begin();
        Node *got = pop(list);
        right = right && got == expected;
        reference.erase(reference.begin());
        now = expected->time;
        spare.push_back(expected);
    };
    const auto drop = [&] {
        // Any of them: the one after a random node in order.
        Node &any = nodes[random.below(static_cast<std::uint32_t>(nodes.size()))];
        auto found = reference.find(&any);
        if (found == reference.end())
            return;
        remove(list, **found);
        spare.push_back(*found);
        reference.erase(found);
    };
    for (int phase = 0; phase < 2 && right; ++phase) {
        while (reference.size() < most && right) {
            const auto dice = random.below(10);
            if (dice < 7 || reference.empty())
                add();
            else if (dice < 9)
                take();
            else
                drop();
        }
        for (std::size_t i = 0; i < 2 * most && right; ++i) { // steady
            take();
            add();
            if (i % 16 == 0) {
                drop();
                add();
            }
        }
        while (!reference.empty() && right) {
            const auto dice = random.below(10);
            if (dice < 2)
                add();
            else if (dice < 8)
                take();
            else
                drop();
        }
    }
    CHECK(right);
    if (right)
        CHECK(pop(list) == nullptr);
}

template <class List> void compare_list(std::size_t most) {
    for (const auto &[name, distance] : distances)
        for (const double start : {0.0, 1e9}) {
            List list;
            compare(
                list, distance, most, start, [](List &l, Node &node, double) { l.insert(node); },
                [](List &l) { return l.pop(); }, [](List &l, Node &node) { l.remove(node); });
        }
}

void compare_agenda(Listing listing, std::size_t most) {
    for (const auto &[name, distance] : distances) {
        Agenda agenda(listing);
        compare(
            agenda, distance, most, 0.0, [](Agenda &a, Node &node, double now) { a.insert(node, now); },
            [](Agenda &a) { return a.pop(1e300); }, [](Agenda &a, Node &node) { a.remove(node); });
    }
}

} // namespace

TEST("the heap keeps the order of a sorted reference") { compare_list<Heap>(3000); }
TEST("the calendar queue keeps the order of a sorted reference") { compare_list<CalendarQueue>(3000); }
TEST("the ladder queue keeps the order of a sorted reference") { compare_list<LadderQueue>(3000); }
TEST("a large ladder queue, with several rungs, keeps it too") {
    LadderQueue list;
    compare(
        list, distances[7].second, 60000, 0.0, [](LadderQueue &l, Node &node, double) { l.insert(node); },
        [](LadderQueue &l) { return l.pop(); }, [](LadderQueue &l, Node &node) { l.remove(node); });
}

TEST("with the ring in front, and lists that change with size, the order is the same") {
    for (const Listing listing : {Listing::Automatic, Listing::Heap, Listing::Calendar, Listing::Ladder})
        compare_agenda(listing, 6000);
}

TEST("an agenda changes to the ladder when many are pending, and back") {
    Agenda agenda(Listing::Automatic);
    std::deque<Node> nodes(10000);
    std::uint64_t sequence = 0;
    for (Node &node : nodes) {
        node.rank = rank_of(0, sequence);
        node.time = static_cast<double>(++sequence);
        agenda.insert(node, 0.0);
    }
    CHECK(agenda.listing() == Listing::Ladder);
    CHECK(agenda.pop(0.5) == nullptr);
    for (Node &node : nodes)
        CHECK(agenda.pop(1e9) == &node);
    CHECK(agenda.listing() == Listing::Heap);
    CHECK(agenda.empty());
}

TEST("higher priorities come first at equal times, then the order of scheduling") {
    for (const Listing listing : {Listing::Automatic, Listing::Heap, Listing::Calendar, Listing::Ladder}) {
        Agenda agenda(listing);
        std::array<Node, 6> nodes;
        const std::array<std::int16_t, 6> priorities = {0, 5, 0, 32767, -32768, 5};
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            nodes[i].rank = rank_of(priorities[i], i);
            CHECK_EQUAL(priority_of(nodes[i].rank), priorities[i]);
            agenda.insert(nodes[i], 0.0);
        }
        for (const std::size_t expected : {3u, 1u, 5u, 0u, 2u, 4u})
            CHECK(agenda.pop(0.0) == &nodes[expected]);
    }
}
