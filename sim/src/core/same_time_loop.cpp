// Notices a model that repeats events at one time for ever.
#include "widthwise/sim/detail/kernel.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace widthwise::sim::detail {

std::uint64_t Kernel::events_between_checks(const Options &options) {
    return std::max<std::uint64_t>(1, options.most_at_once / 16);
}

void Kernel::check_for_loop() {
    until_check_ = events_between_checks(options_);
    counted_ += until_check_;
    const Node *next = agenda_.top();
    const std::uint64_t since = events() - std::exchange(watched_events_, events());
    if (next == nullptr || next->time != now_ || std::exchange(watched_time_, now_) != now_)
        return;
    if (since < options_.most_at_once) {
        watched_events_ -= since;
        return;
    }
    const ProcessState *process = nullptr;
    const std::string name = describe_next(*next, process);
    // Those before the first check at this time are not known.
    throw SameTimeLoop("at least " + std::to_string(since) +
                           " events have happened at one time, and the next is " + name +
                           "; if this is no loop, set Options::most_at_once",
                       error_context(process));
}

/// Names the next event, and sets the process that it belongs to, if any.
std::string Kernel::describe_next(const Node &next, const ProcessState *&process) const {
    if (next.kind == Kind::Event) {
        auto &event = const_cast<EventNode &>(static_cast<const EventNode &>(next));
        std::string name;
        event.dispose(event, &name);
        return "the call of " + name + " (event " + std::to_string(next.serial) + ')';
    }
    process = next.kind == Kind::Timer ? static_cast<const TimerNode &>(next).waiter->process
                                       : static_cast<const ProcessState *>(&next);
    return "a turn of a process";
}

} // namespace widthwise::sim::detail
