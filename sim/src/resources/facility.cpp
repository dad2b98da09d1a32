#include "widthwise/sim/facility.hpp"

#include "core/frames.hpp"
#include "resources/report_format.hpp"

#include <utility>

namespace widthwise::sim {

/// A stopped holder, and the rest of its service time.
struct Facility::Stopped : Waiter {
    Facility *facility = nullptr;
    double left = 0.0;

    /// Frees the record, which is no longer queued.
    void dispose() noexcept { Pool::release(this); }
};

Facility::Facility(Simulation &sim, std::string_view name)
    : Resource(sim, name), wait_queue_(sim.now()), use_(sim.now()), down_(sim.now()) {}

Facility::~Facility() {
    wait_queue_.abandon();
    stopped_.abandon();
}

bool Facility::begin_busy(Seize &seize, ProcessState &process, bool preempts) {
    if (preempts && !broken_ && holder_priority_ < seize.priority && holder_ != &process) {
        if (detail::has(*holder_, ProcessState::cancelled)) { // its locals have not been destroyed yet
            --std::exchange(holder_, nullptr)->held;
        } else {
            stop_holder();
            ++preemptions_;
        }
        take(process, seize.priority);
        wait_queue_.pass();
        return true;
    }
    if (holder_ == &process)
        throw WrongState(shown() + " was seized by the process that holds it",
                         kernel().error_context(&process));
    seize.withdraw = [](Waiter &self) {
        if (self.queued)
            static_cast<Seize &>(self).facility_->wait_queue_.leave(self, self.process->kernel().now());
    };
    wait_queue_.insert(seize, sim_->now());
    return false;
}

void Facility::stop_holder() {
    ProcessState &process = *holder_;
    if (process.place != Place::Ring && process.place != Place::Listed)
        throw WrongState("facility \"" + name_ +
                             "\" cannot be taken from a process that waits for something other than time",
                         kernel().error_context(&process));
    auto *record = new (kernel().records().allocate(sizeof(Stopped))) Stopped();
    record->process = &process;
    record->facility = this;
    record->priority = holder_priority_;
    record->left = process.time - sim_->now();
    record->withdraw = [](Waiter &self) {
        auto &stopped = static_cast<Stopped &>(self);
        if (!stopped.queued)
            return;
        stopped.facility->stopped_.remove(stopped);
        --stopped.process->held;
        stopped.dispose();
    };
    kernel().unschedule(process);
    process.place = Place::Waiting;
    process.link.waiter = record;
    stopped_.insert(*record);
    holder_ = nullptr;
}

void Facility::choose() {
    Waiter *stopped = stopped_.first();
    Waiter *waiting = wait_queue_.first();
    if (stopped != nullptr && (waiting == nullptr || stopped->priority >= waiting->priority)) {
        auto &record = static_cast<Stopped &>(*stopped);
        stopped_.remove(record);
        ProcessState &process = *record.process;
        holder_ = &process;
        holder_priority_ = record.priority;
        use_.set(sim_->now(), 1.0);
        process.place = Place::Passive;
        kernel().schedule_process(process, sim_->now() + record.left);
        record.dispose();
        return;
    }
    wait_queue_.serve(*waiting, sim_->now());
    take(*waiting->process, waiting->priority);
    kernel().grant(*waiting);
}

void Facility::break_down(bool interrupts) {
    const double now = sim().now();
    if (broken_)
        return;
    const bool served =
        holder_ != nullptr && (holder_->place == Place::Ring || holder_->place == Place::Listed);
    broken_ = true;
    down_.set(now, 1.0);
    if (!served)
        return; // the holder waits for something else, and will release the facility
    use_.set(now, 0.0);
    ProcessState &process = *holder_;
    if (!interrupts)
        return stop_holder();
    holder_ = nullptr;
    --process.held;
    kernel().interrupt(process, Breakdown{name_});
}

void Facility::repair() {
    const double now = sim().now();
    if (!broken_)
        return;
    broken_ = false;
    down_.set(now, 0.0);
    if (holder_ == nullptr)
        next();
}

bool Facility::forget(ProcessState &process) noexcept {
    if (holder_ != &process)
        return false;
    release_held(process);
    return true;
}

void Facility::release_unheld() {
    // What a cancelled process held may have been given to another before its locals are destroyed.
    const ProcessState *process = kernel().running();
    if (process != nullptr && detail::has(*process, ProcessState::cancelled))
        return;
    throw ReleaseWithoutSeize(shown() + " was released by a process that does not hold it",
                              kernel().error_context());
}

std::string Facility::report() const {
    const double now = sim().now();
    return shown() + field("utilisation", use_.mean(now)) + field("served", static_cast<double>(served_)) +
           field("preemptions", static_cast<double>(preemptions_)) + field("down", down_.mean(now)) + '\n' +
           queue_report(wait_queue_, now);
}

void Facility::clear_statistics() {
    const double now = sim().now();
    use_.clear(now);
    down_.clear(now);
    wait_queue_.clear_statistics(now);
    served_ = preemptions_ = 0;
}

} // namespace widthwise::sim
