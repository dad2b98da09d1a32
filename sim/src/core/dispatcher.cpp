// The dispatcher: takes the next event from the agenda, and resumes its process or makes its call.
#include "widthwise/sim/detail/kernel.hpp"

#include "core/frames.hpp"
#include "core/number.hpp"
#include "switching/stacks.hpp"
#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/simulation.hpp"

#include <algorithm>
#include <coroutine>
#include <limits>

namespace widthwise::sim::detail {
namespace {

constexpr double forever = std::numeric_limits<double>::infinity();

/// Sets a flag for the length of a scope.
struct Raised {
    bool &flag;
    explicit Raised(bool &f) : flag(f) { flag = true; }
    ~Raised() { flag = false; }
};

} // namespace

// The next three functions are inlined into dispatch(): the processor would mispredict each return between
// dispatch() and a process's stack.

[[gnu::always_inline]] inline void Kernel::resume_on_stack(ProcessState &process) {
    if (!is_on_stack(process))
        allocate_stack(process);
    auto *context = static_cast<Context *>(process.context);
    enter_context(*switcher_, *context);
    if (context->lost || context_ended_) [[unlikely]]
        free_stack(process, *context);
}

[[gnu::always_inline]] inline void Kernel::resume(ProcessState &process, bool on_stack) {
    process.place = Place::Running;
    current_ = &process;
    if (on_stack)
        resume_on_stack(process);
    else
        std::coroutine_handle<>::from_address(process.context).resume();
}

[[gnu::always_inline]] inline void Kernel::dispatch_event(Node &node, bool fast_path) {
    if (--until_check_ == 0) [[unlikely]]
        attention_ = true;
    if (node.kind == Kind::Process && fast_path) [[likely]]
        return resume(static_cast<ProcessState &>(node), false);
    if (node.kind == Kind::NewProcess)
        node.kind = Kind::Process;
    if (options_.trace) {
        mix(std::bit_cast<std::uint64_t>(node.time));
        mix(std::uint64_t{node.serial} << 8 | static_cast<std::uint64_t>(node.kind));
    }
    if (node.kind == Kind::Process)
        return resume(static_cast<ProcessState &>(node), switcher_ != nullptr);
    current_ = nullptr;
    if (node.kind == Kind::Event) {
        node.serial = 0;
        static_cast<EventNode &>(node).invoke(static_cast<EventNode &>(node), simulation());
    } else {
        node.place = Place::Passive;
        grant(*static_cast<TimerNode &>(node).waiter);
    }
}

bool Kernel::dispatch(double limit, std::uint64_t most) {
    if (running_)
        throw WrongState("run() was called from within itself", error_context());
    const Raised running(running_);
    const StackWatch watch(switcher_.get());
    stopped_ = false;
    attention_ = true;
    const bool fast_path = switcher_ == nullptr && !options_.trace;
    for (;;) {
        if (attention_) [[unlikely]] {
            if (!between_events() || most == 0)
                return false;
            const bool reached = motion_ == nullptr || advance_continuous_state(limit);
            // Again before the next event, where events are counted or a motion advances.
            attention_ = attention_ || motion_ != nullptr || most != unlimited;
            if (!reached)
                continue;
            if (most != unlimited)
                --most;
        }
        Node *node = agenda_.pop_present();
        if (node == nullptr) {
            node = agenda_.pop_listed(limit);
            if (node == nullptr) {
                current_ = nullptr;
                return true;
            }
            now_ = node->time;
        }
        dispatch_event(*node, fast_path);
    }
}

bool Kernel::wait_for(ProcessState &process, double delay, void *coroutine) {
    if (switcher_ != nullptr) [[unlikely]] {
        need_no_unwinding(process);
        schedule_process(process, later(delay));
        block(process);
        return false;
    }
    schedule_process(process, later(delay));
    process.resume_at(coroutine);
    return true;
}

/// Advances the motion to the next event or to `limit`. False if work became due before or there.
bool Kernel::advance_continuous_state(double limit) {
    const Node *next = agenda_.top();
    const double target = next != nullptr && next->time < limit ? next->time : limit;
    if (!(target > now_ && (target < forever || next != nullptr)))
        return true;
    now_ = advance_motion(target);
    return !attention_ && now_ == target;
}

double Kernel::advance_motion(double to) {
    const double reached = motion_->advance(simulation(), now_, to);
    if (!(reached >= now_ && reached <= to))
        throw BadTime("a motion went to " + number(reached) + " instead of up to " + number(to),
                      error_context());
    return reached;
}

/// The work that is due between events. False if the run ends here.
bool Kernel::between_events() {
    while (void *next = std::exchange(soon_, nullptr))
        std::coroutine_handle<>::from_address(next).resume();
    attention_ = false;
    current_ = nullptr;
    reap();
    rethrow_failure();
    if (until_check_ == 0)
        check_for_loop();
    if (!conditions_.empty()) {
        test_conditions();
        reap();
        rethrow_failure();
        attention_ = true; // again after the next event
    }
    return !stopped_;
}

void Kernel::rethrow_failure() {
    if (failure_ != nullptr)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Kernel::test_conditions() {
    for (Waiter *waiter = conditions_.first(); waiter != nullptr; waiter = next_condition_) {
        next_condition_ = waiter->next;
        try {
            if (!waiter->holds(*waiter))
                continue;
        } catch (...) { // as if the exception had left the process
            fail(*waiter->process);
            cancel(*waiter->process);
            continue;
        }
        remove_condition(*waiter);
        grant(*waiter);
    }
}

void Kernel::grant(Waiter &waiter) {
    waiter.granted = true;
    if (waiter.group != nullptr)
        waiter.group->member_granted(waiter);
    else
        schedule_now(*waiter.process);
}

} // namespace widthwise::sim::detail
