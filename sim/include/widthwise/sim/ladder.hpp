// Ladder queue: far events lie unsorted, and are sorted by buckets, finer from rung to rung, as their time
// comes near.
//
//   top      unsorted, everything later than `top_start_`: pointers only, because most of a big model waits
//   here rungs    each spreads one bucket of the rung above (the first: what was the top) over buckets of
//   equal width bottom   sorted; an insertion moves the shorter side, so that both ends are cheap: half a
//   million processes that wait
//            for the same moment make a bottom of half a million, to which the next is appended
//
// Why arrays: what is moved from rung to rung is (time, pointer), never the node, so that each event's node
// is touched when it is scheduled and when it is dispatched, and not in between. Invariants: bucket numbers
// are monotone in time and computed in one way only; on a rung, buckets before `current` are empty, and
// whatever belongs to them is on a deeper rung or at the bottom; equal times are never split between
// structures, so that ties are decided by rank during sorting. Cost of remove: by position where the node was
// put, else a search through its bucket. Reference: Tang, Goh, Thng, Ladder queue: an O(1) priority queue
// structure for large-scale discrete event simulation, ACM TOMACS 15(3), 2005.
#pragma once

#include "widthwise/sim/event_list.hpp"

#include <array>
#include <limits>
#include <vector>

namespace widthwise::sim {

class LadderQueue {
  public:
    void insert(Node &node);

    Node *top() {
        if (bottom_.empty())
            refill();
        return bottom_.empty() ? nullptr : bottom_.first().node;
    }

    /// The first if it is not later than `until`; does not stir the ladder to find out that it is.
    Node *top_until(double until) {
        if (bottom_.empty()) {
            if (depth_ == 0 && !(top_least_ <= until))
                return nullptr;
            refill();
            if (bottom_.empty())
                return nullptr;
        }
        const Entry &first = bottom_.first();
        return first.time <= until ? first.node : nullptr;
    }

    Node *pop() {
        Node *node = top();
        if (node != nullptr) {
            bottom_.drop_first();
            --size_;
        }
        return node;
    }

    void remove(Node &node);
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    template <class Sink> void drain(Sink sink) {
        std::vector<Entry> all;
        all.reserve(size_);
        bottom_.give_to(all);
        for (auto &rung : rungs_)
            for (auto &bucket : rung.buckets)
                all.insert(all.end(), bucket.begin(), bucket.end());
        for (Node *node : top_)
            all.push_back({node->time, node});
        *this = LadderQueue();
        for (const auto &entry : all)
            sink(*entry.node);
    }

  private:
    using Bucket = std::vector<Entry>;

    struct Rung {
        std::vector<Bucket> buckets;
        std::size_t used = 0;    // buckets in use
        std::size_t current = 0; // the first that has not been taken
        std::size_t count = 0;   // entries in all of them
        double start = 0.0;
        double per_unit = 0.0; // buckets per unit of time

        [[nodiscard]] std::size_t bucket_of(double time) const noexcept {
            const double place = (time - start) * per_unit;
            if (!(place > 0.0))
                return 0;
            const double last = static_cast<double>(used - 1);
            return static_cast<std::size_t>(static_cast<std::uint32_t>(place < last ? place : last));
        }
    };

    class Bottom {
      public:
        [[nodiscard]] bool empty() const noexcept { return head_ == entries_.size(); }
        [[nodiscard]] std::size_t size() const noexcept { return entries_.size() - head_; }
        [[nodiscard]] const Entry &first() const noexcept { return entries_[head_]; }
        [[nodiscard]] const Entry &last() const noexcept { return entries_.back(); }
        /// And has the nodes after it fetched: a process's frame is two lines of the cache.
        void drop_first() noexcept {
            constexpr std::size_t ahead = 4;
            if (++head_ + ahead < entries_.size()) {
                __builtin_prefetch(entries_[head_ + ahead].node, 1);
                __builtin_prefetch(reinterpret_cast<const char *>(entries_[head_ + ahead].node) + 64, 1);
            }
        }
        /// Where an entry belongs, counted from the first.
        [[nodiscard]] std::size_t place_of(const Entry &entry) const noexcept;
        void insert(std::size_t place, const Entry &entry);
        void erase(std::size_t place) noexcept;
        /// Sorts a bucket's entries into an empty bottom, and empties the bucket.
        void settle(Bucket &bucket);
        /// Appends all entries to `bucket` and becomes empty.
        void give_to(Bucket &bucket);

      private:
        Bucket entries_; // [0, head_) is free room
        std::size_t head_ = 0;
    };

    static constexpr std::size_t deepest = 8;
    static constexpr std::size_t bottom_limit = 384;

    void refill();
    bool step_down();
    [[nodiscard]] bool spread(Bucket &from);
    [[nodiscard]] bool add_rung(std::size_t count, double least, double greatest);
    void insert_at_bottom(const Entry &entry);

    std::size_t size_ = 0;
    double top_start_ = -std::numeric_limits<double>::infinity();
    std::vector<Node *> top_;
    double top_least_ = std::numeric_limits<double>::infinity(); // bounds of the top's times
    double top_greatest_ = -std::numeric_limits<double>::infinity();
    std::array<Rung, deepest> rungs_;
    std::size_t depth_ = 0;
    Bottom bottom_;
    std::size_t next_spread_ = bottom_limit; // how long the bottom may become before it is made a rung
};

static_assert(EventList<LadderQueue>);

} // namespace widthwise::sim
