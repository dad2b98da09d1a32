// Indexed heap with four children to a parent.
//
// Why four: half the levels of a binary heap, and the children of one parent lie in one cache line. Why
// indexed: each node knows its place, so that cancelling is O(log n); the price is one write into the node
// for each move, which is why a ladder queue wins once the nodes no longer fit the cache. Reference: LaMarca
// and Ladner, The influence of caches on the performance of heaps, ACM JEA 1, 1996.
#pragma once

#include "widthwise/sim/event_list.hpp"

#include <vector>

namespace widthwise::sim {

class Heap {
  public:
    void insert(Node &node) {
        entries_.push_back({});
        rise(entries_.size() - 1, {node.time, &node});
    }

    Node *top() noexcept { return entries_.empty() ? nullptr : entries_.front().node; }

    Node *pop() noexcept {
        if (entries_.empty())
            return nullptr;
        Node *first = entries_.front().node;
        const Entry last = entries_.back();
        entries_.pop_back();
        if (!entries_.empty())
            sink(0, last);
        return first;
    }

    void remove(Node &node) noexcept {
        const std::size_t hole = node.link.index;
        const Entry last = entries_.back();
        entries_.pop_back();
        if (hole == entries_.size())
            return;
        if (hole > 0 && before(last, entries_[(hole - 1) / 4]))
            rise(hole, last);
        else
            sink(hole, last);
    }

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

    /// Hands every node over, in no order.
    template <class Sink> void drain(Sink sink) {
        std::vector<Entry> entries;
        entries.swap(entries_);
        for (const auto &entry : entries)
            sink(*entry.node);
    }

  private:
    void put(std::size_t at, const Entry &entry) noexcept {
        entries_[at] = entry;
        entry.node->link.index = static_cast<std::uint32_t>(at);
    }

    void rise(std::size_t hole, const Entry &entry) noexcept {
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / 4;
            if (!before(entry, entries_[parent]))
                break;
            put(hole, entries_[parent]);
            hole = parent;
        }
        put(hole, entry);
    }

    void sink(std::size_t hole, const Entry &entry) noexcept {
        const std::size_t count = entries_.size();
        for (;;) {
            const std::size_t first = 4 * hole + 1;
            if (first >= count)
                break;
            std::size_t least = first;
            const std::size_t end = first + 4 < count ? first + 4 : count;
            for (std::size_t child = first + 1; child < end; ++child)
                if (before(entries_[child], entries_[least]))
                    least = child;
            if (!before(entries_[least], entry))
                break;
            put(hole, entries_[least]);
            hole = least;
        }
        put(hole, entry);
    }

    std::vector<Entry> entries_;
};

static_assert(EventList<Heap>);

} // namespace widthwise::sim
