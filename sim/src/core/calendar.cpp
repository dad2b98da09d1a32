#include "widthwise/sim/calendar.hpp"

namespace widthwise::sim {
namespace {
constexpr std::size_t fewest_days = 16;
constexpr double farthest_day = 0x1p62;
} // namespace

CalendarQueue::CalendarQueue() : days_(fewest_days) {}

std::int64_t CalendarQueue::day_number(double time) const noexcept {
    const double number = time * days_per_unit_;
    if (number >= farthest_day)
        return std::int64_t{1} << 62;
    if (number <= -farthest_day)
        return -(std::int64_t{1} << 62);
    return static_cast<std::int64_t>(number);
}

void CalendarQueue::link(Node &node) noexcept {
    const std::int64_t number = day_number(node.time);
    if (number < today_)
        today_ = number;
    Node *&day = days_[slot(number)];
    if (day == nullptr) {
        node.link.chain = {&node, &node};
        day = &node;
        return;
    }
    // From the back: most of what is scheduled comes after what is there.
    Node *after = day->link.chain.previous;
    bool is_first = false;
    while (before(node, *after)) {
        if (after == day) {
            is_first = true;
            after = day->link.chain.previous;
            break;
        }
        after = after->link.chain.previous;
    }
    node.link.chain = {after->link.chain.next, after};
    after->link.chain.next->link.chain.previous = &node;
    after->link.chain.next = &node;
    if (is_first)
        day = &node;
}

void CalendarQueue::unlink(Node &node) noexcept {
    Node *&day = days_[slot(day_number(node.time))];
    Node *next = node.link.chain.next;
    if (next == &node) {
        day = nullptr;
        return;
    }
    next->link.chain.previous = node.link.chain.previous;
    node.link.chain.previous->link.chain.next = next;
    if (day == &node)
        day = next;
}

void CalendarQueue::insert(Node &node) {
    link(node);
    ++size_;
    if (first_ != nullptr && before(node, *first_))
        first_ = &node;
    if (size_ > 2 * days_.size())
        rebuild(2 * days_.size());
}

Node *CalendarQueue::top() noexcept {
    if (first_ != nullptr || size_ == 0)
        return first_;
    std::int64_t number = today_;
    for (std::size_t i = 0; i < days_.size(); ++i, ++number) {
        Node *node = days_[slot(number)];
        if (node != nullptr && day_number(node->time) <= number) {
            today_ = number;
            return first_ = node;
        }
    }
    for (Node *node : days_) // nothing within a year: the earliest of all days' firsts
        if (node != nullptr && (first_ == nullptr || before(*node, *first_)))
            first_ = node;
    today_ = day_number(first_->time);
    return first_;
}

Node *CalendarQueue::pop() {
    Node *node = top();
    if (node != nullptr)
        remove(*node);
    return node;
}

void CalendarQueue::remove(Node &node) {
    unlink(node);
    if (first_ == &node)
        first_ = nullptr;
    --size_;
    if (size_ < days_.size() / 2 && days_.size() > fewest_days)
        rebuild(days_.size() / 2);
}

void CalendarQueue::rebuild(std::size_t days) {
    // The width is three times the mean distance of what comes next, without the gaps that are far larger
    // than most.
    constexpr std::size_t sample_size = 32;
    Node *sample[sample_size];
    std::size_t count = 0;
    while (count < sample_size && size_ > 0) {
        Node *node = top();
        unlink(*node);
        first_ = nullptr;
        --size_;
        sample[count++] = node;
    }
    double width = 0.0;
    if (count > 1) {
        const double mean = (sample[count - 1]->time - sample[0]->time) / static_cast<double>(count - 1);
        double sum = 0.0;
        std::size_t gaps = 0;
        for (std::size_t i = 1; i < count; ++i) {
            const double gap = sample[i]->time - sample[i - 1]->time;
            if (gap > 2.0 * mean)
                continue;
            sum += gap;
            ++gaps;
        }
        if (gaps > 0)
            width = 3.0 * sum / static_cast<double>(gaps);
    }
    std::vector<Node *> all;
    all.reserve(size_ + count);
    const std::size_t rest = size_;
    drain([&](Node &node) { all.push_back(&node); });
    size_ = rest + count;
    if (width > 1e-300 && 1.0 / width < 1e300)
        days_per_unit_ = 1.0 / width;
    days_.assign(days, nullptr);
    today_ = count > 0 ? day_number(sample[0]->time) : 0;
    for (std::size_t i = 0; i < count; ++i)
        link(*sample[i]);
    for (Node *node : all)
        link(*node);
}

} // namespace widthwise::sim
