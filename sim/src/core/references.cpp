#include "widthwise/sim/references.hpp"

#include "widthwise/sim/process.hpp"

#include <string>
#include <utility>

namespace widthwise::sim {

ProcessState &ProcessRef::state(const char *operation) const {
    if (alive())
        return *state_;
    const ErrorContext where = sim_ != nullptr ? sim_->error_context() : ErrorContext{};
    const std::string target =
        sim_ == nullptr ? "of an empty reference" : "of process " + std::to_string(serial_);
    throw UsedAfterEnd(std::string(operation) + ' ' + target + (sim_ == nullptr ? "" : " after its end"),
                       where);
}

void ProcessRef::activate() const {
    ProcessState &process = state("activate");
    process.kernel().activate(process);
}

void ProcessRef::cancel() const {
    ProcessState &process = state("cancel");
    process.kernel().cancel(process);
}

void ProcessRef::interrupt(std::any cause) const {
    ProcessState &process = state("interrupt");
    process.kernel().interrupt(process, std::move(cause));
}

void ProcessRef::set_priority(std::int16_t priority) const {
    ProcessState &process = state("set_priority");
    process.kernel().set_priority(process, priority);
}

Place ProcessRef::place() const { return state("place").place; }

std::string ProcessRef::name() const {
    const ProcessState &process = state("name");
    return process.details != nullptr ? process.details->name : std::string();
}

void EventRef::cancel() const {
    if (!pending()) {
        if (sim_ == nullptr)
            throw UsedAfterEnd("cancel of an empty reference to an event", {});
        throw UsedAfterEnd("cancel of event " + std::to_string(serial_) +
                               ", which is no longer scheduled: it has happened or was cancelled",
                           sim_->error_context());
    }
    sim_->kernel().cancel(*node_);
}

bool Join::begin(ProcessState &process) {
    if (!target_.alive())
        return true;
    priority = priority_of(process.rank);
    ProcessState &target = target_.state("join");
    detail::Kernel &kernel = process.kernel();
    if (&target.kernel() != &kernel)
        throw WrongState("a process waited for the end of another simulation's process " +
                             std::to_string(target_.serial()),
                         kernel.error_context(&process));
    if (&target == &process)
        throw WrongState("a process cannot wait for its own end", kernel.error_context(&process));
    withdraw = [](Waiter &self) {
        if (self.queued)
            static_cast<Join &>(self).wait_queue_->remove(self);
    };
    wait_queue_ = &kernel.details(target).joiners;
    wait_queue_->insert(*this);
    return false;
}

} // namespace widthwise::sim
