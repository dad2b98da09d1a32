// Everything that is scheduled: a ring for the current time in front of an event list for later.
//
// Why the ring: about half of what a queueing model schedules is for now (a server is handed over, a customer
// begins), and comes after everything already waiting for now, unless its priority is higher. Such nodes need
// no list that sorts. Invariants: the ring is in order; every node in it has the agenda's current time, which
// does not change while there is one; what the list holds for the same time is compared with it, so that the
// order is that of `before` whatever went where.
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
    void insert(Node &node, double now) { node.time > now ? insert_later(node) : insert_now(node); }

    /// A node whose time is the current model time.
    [[gnu::always_inline]] void insert_now(Node &node) {
        Node *last = ring_last_;
        if (node.rank <= last->rank) [[unlikely]] {
            due_ = true;
            return insert_later(node);
        }
        node.place = Place::Ring;
        node.link.chain.previous = last;
        last->link.chain.next = &node;
        ring_last_ = &node;
    }

    /// A node whose time is after the current model time.
    void insert_later(Node &node) {
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

    /// Removes the next node, unless it is later than `limit`, which is not before now: then null.
    Node *pop(double limit) {
        Node *node = pop_present();
        return node != nullptr ? node : pop_listed(limit);
    }

    /// Removes the next node if it is in the ring; else null.
    [[gnu::always_inline]] Node *pop_present() {
        Node *node = ring_.link.chain.next;
        if (due_ && (node == nullptr || listed_goes_first())) [[unlikely]]
            return nullptr;
        if (node == ring_last_)
            empty_ring();
        else
            ring_.link.chain.next = node->link.chain.next;
        return node;
    }

    /// Takes out what is listed first, unless that is later than `limit`: then null. To be asked when
    /// pop_present() had nothing.
    Node *pop_listed(double limit) {
        Node *node = list_top_until(limit);
        if (node != nullptr)
            list_pop();
        return node;
    }

    /// The next node; null if there is none.
    Node *top() {
        Node *listed = list_top();
        Node *present = ring_.link.chain.next;
        return present != nullptr && (listed == nullptr || before(*present, *listed)) ? present : listed;
    }

    [[nodiscard]] bool empty() const noexcept { return ring_.link.chain.next == nullptr && listed() == 0; }

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

    void empty_ring() noexcept {
        ring_.link.chain.next = nullptr;
        ring_last_ = &ring_;
        due_ = true; // for all that is known when the next one comes
    }

    /// Whether something listed comes before the ring's first. Where nothing listed is for now, it need not
    /// be asked again until something is.
    [[gnu::noinline]] bool listed_goes_first() {
        const Node *present = ring_.link.chain.next;
        const Node *listed = list_top_until(present->time);
        due_ = listed != nullptr;
        return due_ && before(*listed, *present);
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
        const bool first = &node == ring_.link.chain.next;
        if (&node != ring_last_) {
            Node *next = node.link.chain.next;
            Node *previous = first ? &ring_ : node.link.chain.previous;
            previous->link.chain.next = next;
            next->link.chain.previous = previous;
        } else if (first) {
            empty_ring();
        } else {
            ring_last_ = node.link.chain.previous;
        }
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

    // The ring's beginning, whose `next` is the first in it, or null: then it is its own end, and comes
    // before whatever is appended. The first one's `previous` and the last one's `next` are not valid.
    Node ring_;
    Node *ring_last_ = &ring_;
    bool due_ = true; // whether the ring is empty, or something listed may be for its time
    Listing listing_ = Listing::Heap;
    bool automatic_;
    Heap heap_;
    std::unique_ptr<LadderQueue> ladder_;
    std::unique_ptr<CalendarQueue> calendar_;
};

} // namespace widthwise::sim
