// Everything that is scheduled: a ring for the current time in front of an event list for later.
//
// Why the ring: about half of what a queueing model schedules is for now (a server is handed over, a customer
// begins), and comes after everything already waiting for now, unless its priority is higher. Such nodes need
// no list that sorts. Invariants: the ring is in order; every node in it has the agenda's current time; what
// the list holds for the same time is compared with it, so that the order is that of `before` whatever went
// where.
#pragma once

#include "widthwise/sim/calendar.hpp"
#include "widthwise/sim/event_list.hpp"
#include "widthwise/sim/heap.hpp"
#include "widthwise/sim/ladder.hpp"

#include <memory>

namespace widthwise::sim {

class Agenda {
  public:
    explicit Agenda(Listing listing) : automatic_(listing == Listing::Automatic) {
        switch_to(listing == Listing::Automatic ? Listing::Heap : listing);
    }

    /// `now` is the current model time; the node's time is not before it.
    void insert(Node &node, double now) {
        if (node.time == now && (ring_last_ == nullptr || node.rank > ring_last_->rank)) {
            node.place = Place::Ring;
            node.link.chain = {nullptr, ring_last_};
            (ring_last_ != nullptr ? ring_last_->link.chain.next : ring_first_) = &node;
            ring_last_ = &node;
            return;
        }
        node.place = Place::Listed;
        if (listing_ == Listing::Heap) [[likely]] {
            if (automatic_ && heap_.size() >= many) [[unlikely]]
                switch_to(Listing::Ladder);
            else
                return heap_.insert(node);
        }
        if (listing_ == Listing::Ladder)
            ladder_->insert(node);
        else
            calendar_->insert(node);
    }

    void remove(Node &node) {
        if (node.place == Place::Ring)
            unchain(node);
        else if (listing_ == Listing::Heap)
            heap_.remove(node);
        else if (listing_ == Listing::Ladder)
            ladder_->remove(node);
        else
            calendar_->remove(node);
        node.place = Place::Passive;
    }

    /// Takes out what happens next, unless that is later than `limit`, which is not before now: then null.
    Node *pop(double limit) {
        if (Node *node = ring_first_) {
            // All in the ring are for now: what is listed for later need not be looked at.
            Node *listed = list_top_until(node->time);
            if (listed == nullptr || before(*node, *listed)) [[likely]] {
                ring_first_ = node->link.chain.next;
                (ring_first_ != nullptr ? ring_first_->link.chain.previous : ring_last_) = nullptr;
                // Whose turn is next: its frame is longer than the cache line that was just written to.
                __builtin_prefetch(reinterpret_cast<const char *>(ring_first_) + 64);
                return node;
            }
            list_pop();
            return listed;
        }
        Node *listed = list_top_until(limit);
        if (listed != nullptr)
            list_pop();
        return listed;
    }

    /// What happens next; null if nothing will.
    Node *top() {
        Node *listed = list_top();
        if (ring_first_ != nullptr && (listed == nullptr || before(*ring_first_, *listed)))
            return ring_first_;
        return listed;
    }

    [[nodiscard]] bool empty() const noexcept { return ring_first_ == nullptr && listed() == 0; }

    /// The event list in use now.
    [[nodiscard]] Listing listing() const noexcept { return listing_; }

  private:
    // Where the ladder begins to win, and where it has lost again (bench/event_lists.cpp), far enough apart
    // not to switch to and fro.
    static constexpr std::size_t many = 512;
    static constexpr std::size_t few = 96;

    [[nodiscard]] std::size_t listed() const noexcept {
        if (listing_ == Listing::Heap)
            return heap_.size();
        return listing_ == Listing::Ladder ? ladder_->size() : calendar_->size();
    }

    Node *list_top() {
        if (listing_ == Listing::Heap) [[likely]]
            return heap_.top();
        return listing_ == Listing::Ladder ? ladder_->top() : calendar_->top();
    }

    Node *list_top_until(double until) {
        if (listing_ == Listing::Ladder)
            return ladder_->top_until(until);
        Node *node = listing_ == Listing::Heap ? heap_.top() : calendar_->top();
        return node != nullptr && node->time <= until ? node : nullptr;
    }

    void list_pop() {
        if (listing_ == Listing::Heap) [[likely]] {
            heap_.pop();
        } else if (listing_ == Listing::Ladder) {
            ladder_->pop();
            if (automatic_ && ladder_->size() < few)
                switch_to(Listing::Heap);
        } else {
            calendar_->pop();
        }
    }

    void unchain(Node &node) noexcept {
        Node *next = node.link.chain.next;
        Node *previous = node.link.chain.previous;
        (next != nullptr ? next->link.chain.previous : ring_last_) = previous;
        (previous != nullptr ? previous->link.chain.next : ring_first_) = next;
    }

    void switch_to(Listing listing) {
        if (listing == Listing::Ladder)
            ladder_ = std::make_unique<LadderQueue>();
        if (listing == Listing::Calendar)
            calendar_ = std::make_unique<CalendarQueue>();
        const auto move_over = [&](Node &node) {
            if (listing == Listing::Heap)
                heap_.insert(node);
            else
                ladder_->insert(node);
        };
        if (listing == Listing::Ladder)
            heap_.drain(move_over);
        else if (listing_ == Listing::Ladder && ladder_)
            ladder_->drain(move_over);
        if (listing != Listing::Ladder)
            ladder_.reset();
        listing_ = listing;
    }

    Node *ring_first_ = nullptr;
    Node *ring_last_ = nullptr;
    Listing listing_ = Listing::Heap;
    bool automatic_;
    Heap heap_;
    std::unique_ptr<LadderQueue> ladder_;
    std::unique_ptr<CalendarQueue> calendar_;
};

} // namespace widthwise::sim
