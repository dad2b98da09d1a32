// Calendar queue: days of equal width, each with a sorted list; a year is as long as there are days.
//
// Invariants: every node is in the list of day number trunc(time / width) modulo the number of days; day
// numbers are integers computed in one way only, so that no rounding can put a node in one day and look for
// it in another; day `today_` or an earlier one holds no node of an earlier number. Reference: Brown,
// Calendar queues, CACM 31(10), 1988.
#pragma once

#include "widthwise/sim/event_list.hpp"

#include <vector>

namespace widthwise::sim {

class CalendarQueue {
  public:
    CalendarQueue();
    void insert(Node &node);
    Node *top() noexcept;
    Node *pop();
    void remove(Node &node);
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    template <class Sink> void drain(Sink sink) {
        for (Node *&day : days_) {
            Node *node = day;
            day = nullptr;
            if (node == nullptr)
                continue;
            node->link.chain.previous->link.chain.next = nullptr;
            while (node != nullptr) {
                Node *next = node->link.chain.next;
                sink(*node);
                node = next;
            }
        }
        size_ = 0;
        first_ = nullptr;
    }

  private:
    [[nodiscard]] std::int64_t day_number(double time) const noexcept;
    [[nodiscard]] std::size_t slot(std::int64_t number) const noexcept {
        return static_cast<std::size_t>(number) & (days_.size() - 1);
    }
    void link(Node &node) noexcept;
    void unlink(Node &node) noexcept;
    void rebuild(std::size_t days);

    std::vector<Node *> days_; // the first of each day's circle
    double days_per_unit_ = 1.0;
    std::int64_t today_ = 0;
    std::size_t size_ = 0;
    Node *first_ = nullptr; // what top() found, until something earlier comes or it goes
};

static_assert(EventList<CalendarQueue>);

} // namespace widthwise::sim
