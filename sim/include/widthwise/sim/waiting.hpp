// Waiting for something other than time: a waiter stands in a wait queue until it is granted.
//
// Why a record apart from the process: a process may wait in several queues at once (any_of, all_of). The
// record lives in the awaiting expression, inside the coroutine's frame, and allocates nothing. Invariants: a
// waiter is in at most one queue; queues are ordered by priority, then by arrival; a waiter that is taken out
// of its queue is either granted or withdrawn.
#pragma once

#include "widthwise/sim/statistics.hpp"

#include <cstddef>
#include <cstdint>

namespace widthwise::sim {

struct ProcessState;
struct Waiter;
class Group;

struct Waiter {
    Waiter *next = nullptr;
    Waiter *previous = nullptr;
    ProcessState *process = nullptr;
    Group *group = nullptr;               // receives the grant instead of the process, unless null
    void (*withdraw)(Waiter &) = nullptr; // takes it out of its queue
    bool (*holds)(Waiter &) = nullptr;    // tests the condition of a wait_until
    double since = 0.0;
    std::int16_t priority = 0;
    bool queued = false;
    bool granted = false;
};

/// Waiters in order.
class WaitQueue {
  public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] Waiter *first() const noexcept { return first_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void insert(Waiter &waiter) noexcept {
        Waiter *after = last_;
        while (after != nullptr && after->priority < waiter.priority)
            after = after->previous;
        waiter.previous = after;
        waiter.next = after != nullptr ? after->next : first_;
        (waiter.next != nullptr ? waiter.next->previous : last_) = &waiter;
        (after != nullptr ? after->next : first_) = &waiter;
        waiter.queued = true;
        ++size_;
    }

    void remove(Waiter &waiter) noexcept {
        (waiter.next != nullptr ? waiter.next->previous : last_) = waiter.previous;
        (waiter.previous != nullptr ? waiter.previous->next : first_) = waiter.next;
        waiter.queued = false;
        --size_;
    }

    /// Removes all waiters: they wait for ever, and withdrawing them does nothing.
    void abandon() noexcept {
        while (Waiter *waiter = first_) {
            remove(*waiter);
            waiter->withdraw = [](Waiter &) {};
        }
    }

  private:
    Waiter *first_ = nullptr;
    Waiter *last_ = nullptr;
    std::size_t size_ = 0;
};

/// A wait queue with statistics of its length and of the times waited.
class ObservedWaitQueue {
  public:
    explicit ObservedWaitQueue(double now) noexcept : length_(now) {}
    [[nodiscard]] bool empty() const noexcept { return wait_queue_.empty(); }
    [[nodiscard]] Waiter *first() const noexcept { return wait_queue_.first(); }
    [[nodiscard]] std::size_t size() const noexcept { return wait_queue_.size(); }

    void insert(Waiter &waiter, double now) noexcept {
        waiter.since = now;
        wait_queue_.insert(waiter);
        length_.set(now, static_cast<double>(static_cast<std::int64_t>(wait_queue_.size())));
    }
    /// Removes a waiter that is granted.
    void serve(Waiter &waiter, double now) noexcept {
        leave(waiter, now);
        waits_(now - waiter.since);
    }
    /// Removes a waiter that gave up.
    void leave(Waiter &waiter, double now) noexcept {
        wait_queue_.remove(waiter);
        length_.set(now, static_cast<double>(static_cast<std::int64_t>(wait_queue_.size())));
    }
    /// Counts a wait of zero.
    void pass() noexcept { waits_(0.0); }

    /// Removes all waiters: they wait for ever, and withdrawing them does nothing.
    void abandon() noexcept { wait_queue_.abandon(); }

    [[nodiscard]] const TStat &length() const noexcept { return length_; }
    /// Times waited by granted waiters, zeros included.
    [[nodiscard]] const Stat &waits() const noexcept { return waits_; }
    void clear_statistics(double now) noexcept {
        length_.clear(now);
        waits_.clear();
    }

  private:
    WaitQueue wait_queue_;
    TStat length_;
    Stat waits_;
};

} // namespace widthwise::sim
