// A facility: one server, with a queue, preemption and breakdowns.
//
// A holder that waits for a time (is being served) can be stopped: by a process that preempts with a higher
// priority, or by a breakdown. Its remaining time is kept, and continues when it holds the facility again.
// The facility therefore changes its holder's schedule, and a holder that waits for something other than time
// cannot be preempted (WrongState). An interrupt of a stopped process ends its claim: a process that handles
// Interrupted asks holder() before it releases the facility. Invariants: a working facility with waiting
// processes is held; a preempted process comes before waiting ones of equal priority; the wait queue is
// ordered by priority, then by arrival.
#pragma once

#include "widthwise/sim/process.hpp"
#include "widthwise/sim/resource.hpp"

namespace widthwise::sim {

class Facility : public Resource {
  public:
    explicit Facility(Simulation &sim, std::string_view name = "facility");
    ~Facility() override;

    class Seize : public Awaitable<Seize> {
      public:
        /// all_of refuses a second one at a facility that one of its members needs.
        static constexpr bool only_once = true;
        Seize(Facility &facility, bool preempts) : facility_(&facility), preempts_(preempts) {}
        Seize(Facility &facility, bool preempts, std::int16_t with) : Seize(facility, preempts) {
            priority = with;
            own_priority_ = false;
        }
        bool begin(ProcessState &owner) {
            if (own_priority_)
                priority = priority_of(owner.rank);
            return facility_->begin(*this, owner, preempts_);
        }
        void result() const noexcept {}
        [[nodiscard]] const Resource &of() const noexcept { return *facility_; }
        /// Unless it was taken away again before the process could continue.
        void undo() {
            if (facility_->holder_ == process)
                facility_->release_held(*process);
        }

      private:
        friend class Facility;
        Facility *facility_;
        bool preempts_;
        bool own_priority_ = true;
    };

    /// Waits in the queue, with the process's priority or the one given.
    [[nodiscard]] Seize seize() { return {*this, false}; }
    [[nodiscard]] Seize seize(std::int16_t priority) { return {*this, false, priority}; }
    /// Takes the facility from a holder of lower priority.
    [[nodiscard]] Seize preempt(std::int16_t priority) { return {*this, true, priority}; }

    /// By the running process, which holds it; else throws ReleaseWithoutSeize. Nothing, if that process is
    /// cancelled and has lost it already.
    void release() {
        ProcessState *process = kernel().running();
        if (holder_ == nullptr || holder_ != process) [[unlikely]]
            return release_unheld();
        give_back(*process);
    }

    /// Nobody is given the facility until repair(). A holder that waits for a time now (is being served) is
    /// stopped: its service continues after the repair; with `interrupts` it is interrupted (a Breakdown) and
    /// no longer holds the facility. Any other holder keeps the facility and is not stopped, not even while
    /// it waits for a time that begins during the breakdown.
    void break_down(bool interrupts = false);
    void repair();
    struct Breakdown {
        std::string facility;
    };

    [[nodiscard]] bool busy() const noexcept { return holder_ != nullptr; }
    [[nodiscard]] bool broken() const noexcept { return broken_; }
    [[nodiscard]] ProcessRef holder() const noexcept {
        return holder_ != nullptr ? ProcessRef(*sim_, *holder_) : ProcessRef();
    }
    [[nodiscard]] std::size_t waiting() const noexcept { return wait_queue_.size(); }
    /// 1 while held, 0 while not.
    [[nodiscard]] const TStat &use() const noexcept { return use_; }
    [[nodiscard]] double utilisation() const { return use_.mean(sim().now()); }
    /// 1 while broken.
    [[nodiscard]] const TStat &down() const noexcept { return down_; }
    [[nodiscard]] const ObservedWaitQueue &wait_queue() const noexcept { return wait_queue_; }
    /// Services that their processes ended themselves, by release(). None that ended otherwise: by a
    /// breakdown that interrupts, an interrupt while preempted, a cancellation, or the end of a process that
    /// still held the facility.
    [[nodiscard]] std::uint64_t served() const noexcept { return served_; }
    [[nodiscard]] std::uint64_t preemptions() const noexcept { return preemptions_; }

    [[nodiscard]] std::string report() const override;
    void clear_statistics() override;

  protected:
    [[nodiscard]] const char *kind() const noexcept override { return "facility"; }
    bool forget(ProcessState &process) noexcept override;

  private:
    struct Stopped; // a preempted holder

    bool begin(Seize &seize, ProcessState &process, bool preempts) {
        check_owner(process);
        if (holder_ == nullptr && !broken_) [[likely]] {
            take(process, seize.priority);
            wait_queue_.pass();
            return true;
        }
        return begin_busy(seize, process, preempts);
    }
    void take(ProcessState &process, std::int16_t priority) noexcept {
        holder_ = &process;
        holder_priority_ = priority;
        if (++process.held == 0) [[unlikely]]
            process.flags |= ProcessState::held_many;
        if (use_.level() != 1.0)
            use_.set(sim_->now(), 1.0);
    }
    void give_back(ProcessState &process) {
        if ((process.flags & ProcessState::cancelled) == 0) [[likely]] // else a destructor of its locals
            ++served_;
        release_held(process);
    }
    void release_held(ProcessState &process) {
        --process.held;
        holder_ = nullptr;
        next();
    }
    bool begin_busy(Seize &seize, ProcessState &process, bool preempts);
    void stop_holder();
    void next() {
        if (!broken_ && (!wait_queue_.empty() || !stopped_.empty()))
            return choose();
        use_.set(sim_->now(), 0.0);
    }
    void choose();
    void release_unheld();

    ProcessState *holder_ = nullptr;
    std::int16_t holder_priority_ = 0;
    bool broken_ = false;
    ObservedWaitQueue wait_queue_;
    WaitQueue stopped_;
    TStat use_;
    TStat down_;
    std::uint64_t served_ = 0;
    std::uint64_t preemptions_ = 0;
};

} // namespace widthwise::sim
