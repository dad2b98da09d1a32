// Events and samplers: actions that can be scheduled again.
//
// Why beside Simulation::at: a call made by `at` is scheduled once and cannot be moved. Events and samplers
// are objects: they are moved to another time, stopped, and destroyed by their owner. They must not outlive
// their simulation.
#pragma once

#include "widthwise/sim/simulation.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace widthwise::sim {

/// One action that is scheduled for at most one time.
class Event {
  public:
    /// Errors name it by `name`.
    Event(Simulation &sim, std::function<void(Simulation &)> action, std::int16_t priority = 0,
          std::string_view name = "event")
        : sim_(&sim), action_(std::move(action)), priority_(priority), name_(name) {}
    ~Event() { cancel(); }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

    /// Replaces the scheduled time. Throws TimeBackwards, BadTime, and then keeps the time it had.
    void at(double time) {
        const EventRef next = sim_->at(time, Action{this}, priority_); // first, since it may throw
        cancel();
        next_ = next;
    }
    void after(double delay) { at(sim_->kernel().later(delay)); }
    [[nodiscard]] bool pending() const noexcept { return next_.pending(); }
    /// Does nothing if nothing is scheduled.
    void cancel() {
        if (next_.pending())
            next_.cancel();
    }

  private:
    struct Action {
        Event *event;
        void operator()(Simulation &sim) const { event->action_(sim); }
        [[nodiscard]] std::string name() const { return '"' + event->name_ + '"'; }
    };

    Simulation *sim_;
    std::function<void(Simulation &)> action_;
    std::int16_t priority_;
    std::string name_;
    EventRef next_;
};

/// Calls its action every period: at its start and at whole periods after it, counted and not added up, so
/// that the millionth time is as exact as the first.
class Sampler {
  public:
    /// Throws BadRequest for a period that is not positive.
    Sampler(Simulation &sim, double period, std::function<void(Simulation &)> action,
            std::int16_t priority = 0, std::string_view name = "sampler")
        : period_(period),
          event_(
              sim,
              [this, action = std::move(action)](Simulation &s) {
                  count_ += 1.0;
                  event_.at(start_ + count_ * period_); // first, so that the action may stop it
                  action(s);
              },
              priority, name),
          sim_(&sim) {
        if (!(period > 0.0) || period - period != 0.0)
            throw BadRequest("a sampler's period must be positive", sim.error_context());
    }

    /// Begins now, or `delay` from now. Throws TimeBackwards, BadTime, and then goes on as before.
    void start(double delay = 0.0) {
        const double start = sim_->kernel().later(delay);
        event_.at(start);
        start_ = start;
        count_ = 0.0;
    }
    void stop() { event_.cancel(); }
    [[nodiscard]] bool running() const noexcept { return event_.pending(); }

  private:
    double period_;
    double start_ = 0.0;
    double count_ = 0.0;
    Event event_;
    Simulation *sim_;
};

} // namespace widthwise::sim
