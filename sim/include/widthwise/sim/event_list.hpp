// What every event list can do, and how one is chosen.
//
// All of them yield exactly the same order (see `before`), ties included, whatever was inserted and removed
// in between: tests/event_list_test.cpp holds each against a sorted reference. They differ in cost only
// (sim/README.md has figures):
//   heap      O(log n) for everything; best up to about a thousand entries
//   calendar  O(1) while the times' distribution is steady
//   ladder    O(1) amortised; best above a few thousand entries
#pragma once

#include "widthwise/sim/node.hpp"

#include <concepts>
#include <cstddef>

namespace widthwise::sim {

template <class List>
concept EventList = requires(List list, const List &constant, Node &node) {
    list.insert(node);                      // the node must not be in any list
    { list.top() } -> std::same_as<Node *>; // the first, null if there is none; may reorganise the list
    { list.pop() } -> std::same_as<Node *>; // takes the first out
    list.remove(node);                      // the node must be in this list
    { constant.size() } -> std::same_as<std::size_t>; // entries
};

/// Which event list a simulation uses.
enum class Listing : std::uint8_t {
    Automatic, // heap, and ladder while many are pending
    Heap,
    Calendar,
    Ladder,
};

} // namespace widthwise::sim
