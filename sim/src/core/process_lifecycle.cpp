// The process lifecycle: how processes begin, are activated, interrupted and cancelled, and end.
#include "widthwise/sim/detail/kernel.hpp"

#include "core/frames.hpp"
#include "switching/stacks.hpp"
#include "widthwise/sim/process.hpp"
#include "widthwise/sim/resource.hpp"

#include <coroutine>
#include <string>
#include <utility>

namespace widthwise::sim {

Process::~Process() {
    if (state_ != nullptr)
        state_->kernel().cancel(*state_);
}

namespace detail {

std::uint32_t Kernel::next_serial() {
    if (++serial_ == 0)
        serial_ = 1; // 0 means that nothing lives there
    return serial_;
}

void Kernel::enlist(ProcessState &process) {
    process.serial = next_serial();
    process.rank = rank_of(0, 0);
    ++alive_;
}

ProcessState &Kernel::take_over(Process &process, std::string_view name, std::int16_t priority) {
    if (process.state() == nullptr)
        throw WrongState("a process was started that had been given away already", error_context());
    if (&process.state()->kernel() != this)
        throw WrongState("a process was started in another simulation than the one it was made in",
                         error_context());
    ProcessState &state = process.release();
    state.rank = rank_of(priority, 0);
    if (!name.empty())
        details(state).name = name;
    return state;
}

Details &Kernel::details(ProcessState &process) {
    if (process.details == nullptr)
        process.details = new (records_.allocate(sizeof(Details))) Details();
    return *process.details;
}

void Kernel::activate(ProcessState &process) {
    switch (process.place) {
    case Place::Passive:
        schedule_now(process);
        break;
    case Place::Ring:
        break; // it is about to continue anyway
    case Place::Listed:
        unschedule(process);
        schedule_now(process);
        break;
    case Place::Waiting:
        throw WrongState("a process that waits in a queue cannot be activated, only interrupted or cancelled",
                         error_context(&process));
    case Place::Running:
        throw WrongState("a process that runs cannot be activated", error_context(&process));
    }
}

void Kernel::set_priority(ProcessState &process, std::int16_t priority) {
    // A scheduled process keeps its order of scheduling.
    const std::uint64_t rank = rank_of(priority, process.rank & last_sequence);
    if (process.place == Place::Ring || process.place == Place::Listed) {
        unschedule(process);
        insert(process, process.time, rank);
    } else {
        process.rank = rank;
    }
}

// Interrupting

void Kernel::interrupt(ProcessState &process, std::any cause) {
    if (process.kind == Kind::NewProcess || process.place == Place::Running ||
        has(process, ProcessState::cancelled))
        throw WrongState("only a process that waits can be interrupted", error_context(&process));
    stop_waiting(process);
    details(process).cause = std::move(cause);
    process.flags |= ProcessState::interrupted;
    schedule_now(process);
}

void Kernel::raise_interrupt(ProcessState &process) {
    process.flags &= static_cast<std::uint8_t>(~ProcessState::interrupted);
    throw Interrupted(std::exchange(details(process).cause, {}));
}

/// Takes the process out of the agenda or its wait queues.
void Kernel::stop_waiting(ProcessState &process) {
    if (process.place == Place::Ring || process.place == Place::Listed)
        unschedule(process);
    else if (process.place == Place::Waiting)
        process.link.waiter->withdraw(*process.link.waiter);
    process.place = Place::Passive;
}

// Cancelling

void Kernel::cancel(EventNode &event) {
    unschedule(event);
    event.serial = 0;
    event.dispose(event, nullptr);
}

void Kernel::cancel(ProcessState &process) {
    if (has(process, ProcessState::cancelled))
        return;
    process.flags |= ProcessState::cancelled;
    if (process.place != Place::Running)
        stop_waiting(process);
    if (process.kind == Kind::NewProcess)
        return destroy(process); // it has no stack yet
    // Its locals are destroyed before the next event, not in the middle of another process's step, nor of the
    // destruction of another one's locals: copied stacks are not in place there.
    cancelled_.emplace_back(&process, process.serial);
    attention_ = true;
    if (running_ || destroying_)
        return;
    const StackWatch watch(switcher_.get());
    destroying_ = true;
    reap();
    destroying_ = false;
}

/// Destroys the cancelled processes.
void Kernel::reap() {
    for (std::size_t i = 0; i < cancelled_.size(); ++i) {
        const auto [process, serial] = cancelled_[i];
        if (process->serial == serial)
            destroy(*process); // unless it ended in the same step
    }
    cancelled_.clear();
}

void Kernel::destroy(ProcessState &process) noexcept {
    process.flags |= ProcessState::cancelled;
    stop_waiting(process);
    if (switcher_ != nullptr && is_on_stack(process)) {
        unwind_stack(process);
    } else if (has(process, ProcessState::plain)) {
        PlainFrame &frame = plain_frame(process);
        retire(process);
        frame.dispose(frame);
    } else {
        // Destructors of its locals may release what it holds.
        ProcessState *const outer = std::exchange(current_, &process);
        std::coroutine_handle<>::from_address(frame_of(process)).destroy();
        current_ = outer;
    }
}

// Ending

/// Releases what an ending process holds. That is an error if the process has ended by itself.
void Kernel::release_resources_of(ProcessState &process) noexcept {
    std::string held;
    std::size_t more = 0;
    for (Resource *resource : resources_)
        if (resource != nullptr && resource->forget(process)) {
            more += held.empty() ? 0 : 1;
            if (held.empty())
                held = resource->shown();
        }
    const bool by_itself = !has(process, ProcessState::unwinding) && !has(process, ProcessState::cancelled);
    if (held.empty() || !by_itself || failure_ != nullptr || !running_)
        return;
    if (more > 0)
        held += " and " + std::to_string(more) + " more";
    failure_ = std::make_exception_ptr(
        EndedWhileHolding("a process ended while it held " + held, error_context(&process)));
    attention_ = true;
}

void Kernel::retire(ProcessState &process) noexcept {
    if (process.held != 0 || has(process, ProcessState::held_many))
        release_resources_of(process);
    process.serial = 0;
    process.place = Place::Passive;
    --alive_;
    if (process.details == nullptr)
        return;
    while (Waiter *joiner = process.details->joiners.first()) {
        process.details->joiners.remove(*joiner);
        grant(*joiner);
    }
    process.details->~Details();
    Pool::release(process.details);
    process.details = nullptr;
}

void Kernel::fail(ProcessState &process) noexcept {
    std::exception_ptr failure;
    try {
        throw;
    } catch (const Unwind &) {
        return;
    } catch (const SimulationError &) {
        failure = std::current_exception();
    } catch (const std::exception &error) {
        failure = std::make_exception_ptr(ProcessFailed(
            std::string("an exception left a process: ") + error.what(), error_context(&process)));
    } catch (...) {
        failure = std::make_exception_ptr(
            ProcessFailed("an exception of unknown type left a process", error_context(&process)));
    }
    if (failure_ == nullptr)
        failure_ = failure;
    attention_ = true;
}

} // namespace detail
} // namespace widthwise::sim
