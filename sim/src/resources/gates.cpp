#include "widthwise/sim/gates.hpp"

#include "resources/report_format.hpp"

namespace widthwise::sim {

// -- Queue
// ------------------------------------------------------------------------------------------------------

Queue::Queue(Simulation &sim, std::string_view name) : Resource(sim, name), wait_queue_(sim.now()) {}
Queue::~Queue() { wait_queue_.abandon(); }

bool Queue::Stay::begin(ProcessState &owner) {
    queue_->check_owner(owner);
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.queued)
            static_cast<Stay &>(self).queue_->wait_queue_.leave(self, self.process->kernel().now());
    };
    queue_->wait_queue_.insert(*this, owner.kernel().now());
    return false;
}

ProcessRef Queue::wake() {
    Simulation &here = sim();
    Waiter *waiter = wait_queue_.first();
    if (waiter == nullptr)
        return {};
    wait_queue_.serve(*waiter, here.now());
    const ProcessRef woken(here, *waiter->process);
    kernel().grant(*waiter);
    return woken;
}

std::size_t Queue::wake_all() {
    static_cast<void>(sim());
    // Only the processes that wait now: a woken group may enter the queue again at once.
    const std::size_t count = wait_queue_.size();
    std::size_t woken = 0;
    while (woken < count && wake())
        ++woken;
    return woken;
}

std::string Queue::report() const { return shown() + '\n' + queue_report(wait_queue_, sim().now()); }
void Queue::clear_statistics() { wait_queue_.clear_statistics(sim().now()); }

// -- Semaphore
// --------------------------------------------------------------------------------------------------

Semaphore::Semaphore(Simulation &sim, std::uint64_t count, std::string_view name)
    : Resource(sim, name), count_(count), wait_queue_(sim.now()) {}
Semaphore::~Semaphore() { wait_queue_.abandon(); }

bool Semaphore::Acquire::begin(ProcessState &owner) {
    Semaphore &semaphore = *semaphore_;
    semaphore.check_owner(owner);
    if (semaphore.count_ > 0) {
        --semaphore.count_;
        semaphore.wait_queue_.pass();
        return true;
    }
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.queued)
            static_cast<Acquire &>(self).semaphore_->wait_queue_.leave(self, self.process->kernel().now());
    };
    semaphore.wait_queue_.insert(*this, owner.kernel().now());
    return false;
}

void Semaphore::release() {
    const double now = sim().now();
    Waiter *waiter = wait_queue_.first();
    if (waiter == nullptr) {
        ++count_;
        return;
    }
    wait_queue_.serve(*waiter, now);
    kernel().grant(*waiter);
}

std::string Semaphore::report() const {
    return shown() + field("count", static_cast<double>(count_)) + '\n' +
           queue_report(wait_queue_, sim().now());
}
void Semaphore::clear_statistics() { wait_queue_.clear_statistics(sim().now()); }

// -- Barrier
// ----------------------------------------------------------------------------------------------------

Barrier::Barrier(Simulation &sim, std::size_t size, std::string_view name)
    : Resource(sim, name), size_(size), wait_queue_(sim.now()) {
    if (size == 0)
        throw BadRequest("barrier \"" + name_ + "\" needs a size of at least 1", sim.error_context());
}
Barrier::~Barrier() { wait_queue_.abandon(); }

bool Barrier::Arrive::begin(ProcessState &owner) {
    Barrier &barrier = *barrier_;
    barrier.check_owner(owner);
    if (barrier.wait_queue_.size() + 1 == barrier.size_) {
        ++barrier.openings_;
        barrier.wait_queue_.pass();
        while (Waiter *waiter = barrier.wait_queue_.first()) {
            barrier.wait_queue_.serve(*waiter, owner.kernel().now());
            owner.kernel().grant(*waiter);
        }
        return true;
    }
    priority = priority_of(owner.rank);
    withdraw = [](Waiter &self) {
        if (self.queued)
            static_cast<Arrive &>(self).barrier_->wait_queue_.leave(self, self.process->kernel().now());
    };
    barrier.wait_queue_.insert(*this, owner.kernel().now());
    return false;
}

std::string Barrier::report() const {
    return shown() + field("openings", static_cast<double>(openings_)) + '\n' +
           queue_report(wait_queue_, sim().now());
}
void Barrier::clear_statistics() { wait_queue_.clear_statistics(sim().now()); }

} // namespace widthwise::sim
