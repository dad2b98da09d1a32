#include "widthwise/sim/gates.hpp"

#include "reporting.hpp"

namespace widthwise::sim {

// -- Queue
// ------------------------------------------------------------------------------------------------------

Queue::Queue(Simulation &sim, std::string_view name) : Resource(sim, name), line_(sim.now()) {}
Queue::~Queue() { line_.abandon(); }

bool Queue::Stay::begin(ProcessState &owner) {
    queue_->check_owner(owner);
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.in_line)
            static_cast<Stay &>(self).queue_->line_.leave(self, self.process->sim().now());
    };
    queue_->line_.insert(*this, owner.sim().now());
    return false;
}

ProcessRef Queue::wake() {
    Waiter *waiter = line_.first();
    if (waiter == nullptr)
        return {};
    line_.serve(*waiter, sim_->now());
    const ProcessRef woken(*sim_, *waiter->process);
    sim_->grant(*waiter);
    return woken;
}

std::size_t Queue::wake_all() {
    // Only those who are here now: a woken group may come back into the line at once.
    const std::size_t count = line_.size();
    std::size_t woken = 0;
    while (woken < count && wake())
        ++woken;
    return woken;
}

std::string Queue::report() const { return shown() + '\n' + line_report(line_, sim_->now()); }
void Queue::clear_statistics() { line_.clear_statistics(sim_->now()); }

// -- Semaphore
// --------------------------------------------------------------------------------------------------

Semaphore::Semaphore(Simulation &sim, std::uint64_t count, std::string_view name)
    : Resource(sim, name), count_(count), line_(sim.now()) {}
Semaphore::~Semaphore() { line_.abandon(); }

bool Semaphore::Acquire::begin(ProcessState &owner) {
    Semaphore &semaphore = *semaphore_;
    semaphore.check_owner(owner);
    if (semaphore.count_ > 0) {
        --semaphore.count_;
        semaphore.line_.pass();
        return true;
    }
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.in_line)
            static_cast<Acquire &>(self).semaphore_->line_.leave(self, self.process->sim().now());
    };
    semaphore.line_.insert(*this, owner.sim().now());
    return false;
}

void Semaphore::release() {
    Waiter *waiter = line_.first();
    if (waiter == nullptr) {
        ++count_;
        return;
    }
    line_.serve(*waiter, sim_->now());
    sim_->grant(*waiter);
}

std::string Semaphore::report() const {
    return shown() + field("count", static_cast<double>(count_)) + '\n' + line_report(line_, sim_->now());
}
void Semaphore::clear_statistics() { line_.clear_statistics(sim_->now()); }

// -- Barrier
// ----------------------------------------------------------------------------------------------------

Barrier::Barrier(Simulation &sim, std::size_t size, std::string_view name)
    : Resource(sim, name), size_(size), line_(sim.now()) {
    if (size == 0)
        throw BadRequest("barrier \"" + name_ + "\" needs a size of at least 1", sim.circumstance());
}
Barrier::~Barrier() { line_.abandon(); }

bool Barrier::Arrive::begin(ProcessState &owner) {
    Barrier &barrier = *barrier_;
    barrier.check_owner(owner);
    if (barrier.line_.size() + 1 == barrier.size_) {
        ++barrier.openings_;
        barrier.line_.pass();
        while (Waiter *waiter = barrier.line_.first()) {
            barrier.line_.serve(*waiter, owner.sim().now());
            owner.sim().grant(*waiter);
        }
        return true;
    }
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.in_line)
            static_cast<Arrive &>(self).barrier_->line_.leave(self, self.process->sim().now());
    };
    barrier.line_.insert(*this, owner.sim().now());
    return false;
}

std::string Barrier::report() const {
    return shown() + field("openings", static_cast<double>(openings_)) + '\n' +
           line_report(line_, sim_->now());
}
void Barrier::clear_statistics() { line_.clear_statistics(sim_->now()); }

} // namespace widthwise::sim
