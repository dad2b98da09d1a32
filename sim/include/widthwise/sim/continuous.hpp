// The continuous half of a combined model: a system of equations that advances with the simulation's clock.
//
// Why it steps only up to the next discrete event: a process then reads and changes the state of its own
// time. A zero crossing on the way is an event: it is located within the step by root finding (Brent,
// Algorithms for Minimization without Derivatives, 1973, ch. 4) and scheduled for that time, after the events
// already scheduled for the same time.
//
// Invariants:
//   between events the state's time is the simulation's; no discrete event is dispatched while it lags;
//   the clock never passes a crossing before its action has run;
//   a crossing is scheduled once: the sign must change before it is scheduled again. It is located to the
//   last digits, so that the sign before it may show again next to it: that is no change.
#pragma once

#include "widthwise/sim/ode.hpp"
#include "widthwise/sim/simulation.hpp"

#include <limits>
#include <memory>

namespace widthwise::sim {

/// Which way a function of the state must go through zero.
enum class Crossing : std::uint8_t { up, down, either };

class Continuous final : public Motion {
  public:
    /// An event function of (t, y), whose zeros are located.
    using Guard = std::function<double(double t, std::span<const double> y)>;

    /// Becomes the simulation's motion until it is destroyed. It must not outlive the simulation.
    Continuous(Simulation &sim, Method method, Derivative derivative, std::vector<double> initial,
               Control control = {});
    ~Continuous() override;
    Continuous(const Continuous &) = delete;
    Continuous &operator=(const Continuous &) = delete;

    /// A component of the state at the simulation's time.
    [[nodiscard]] double operator[](std::size_t component) const { return integrator_.state()[component]; }
    [[nodiscard]] std::span<const double> state() const noexcept { return integrator_.state(); }
    /// The state jumps now. A zero that the jump passes is no crossing.
    void set(std::size_t component, double value);
    /// Something that the derivative depends on has changed now: the next step begins anew. A zero that a
    /// guard passes by that is no crossing.
    void disturb();
    /// What guards depend on jumps now, of its own: a zero that a guard passes by that is a crossing, unless
    /// it has turned back after the events of now. know_sides() comes before the jump, jumped() behind it.
    /// Both are for the guards from `first` on, in the order of when().
    void know_sides(std::size_t first = 0);
    void jumped(std::size_t first = 0);

    /// Calls `action(sim)` whenever the guard goes through zero. A guard that is zero now is taken to lie on
    /// the side to which it leaves. If a guard jumps, its action is called at the first time of the new sign.
    /// Out of run() come AccuracyUnmet, if crossings pile up at one time, and BadState, if the guard is NaN.
    void when(Guard guard, Crossing crossing, std::function<void(Simulation &)> action,
              std::int16_t priority = 0);

    /// Calls `look(sim)` after every step, at its end or where it was cut short by a crossing. If it has
    /// scheduled something for that time it returns true, and the motion stops there.
    void after_steps(std::function<bool(Simulation &)> look) { look_ = std::move(look); }
    /// Calls `judge()` after every step as it was taken first, before crossings are looked for: how far it is
    /// off, in units of what is allowed. Above 1 it is taken again, shorter. Throws AccuracyUnmet, out of
    /// run(), if no step is short enough.
    void judge_steps(std::function<double()> judge) { judge_ = std::move(judge); }
    /// The state at a time within the last step, as far as it was taken: to fourth order, or as accurate as
    /// the steps are, for the evaluations of one.
    void interpolate(double time, std::span<double> state) { integrator_.interpolate(time, state); }
    void dense(double time, std::span<double> state) { integrator_.dense(time, state); }

    [[nodiscard]] const Integrator &integrator() const noexcept { return integrator_; }

    double advance(Simulation &sim, double from, double to) override;

  private:
    struct Watch {
        Guard guard;
        Crossing crossing;
        std::function<void(Simulation &)> action;
        std::int16_t priority;
        std::size_t number; // in the order of when()
        const Continuous *owner;
        double value = 0.0; // at the end of what has been looked at; 0: it is not known on which side
        bool known = false;
        bool jumped = false; // and its crossing is to be confirmed after the events of now
        double seen = std::numeric_limits<double>::quiet_NaN(); // as it was asked for last
        double last_crossing = -std::numeric_limits<double>::infinity();
        double settled = last_crossing; // before this time the side that was left does not count
        bool from_below = false;        // which that is
    };
    /// Whether a value tells the watch's side: just behind a crossing, round-off may show 0 or the side
    /// before it again.
    [[nodiscard]] static bool counts(const Watch &watch, double time, double value) {
        return !(time < watch.settled) || (watch.from_below ? value > 0.0 : value < 0.0);
    }
    [[nodiscard]] double asked(const Watch &watch, double time, std::span<const double> y) const;
    /// A change of a watch's sign: where, and between which times and values.
    struct Turn {
        double time = std::numeric_limits<double>::infinity();
        double low = 0.0;
        double high = 0.0;
        double at_low = 0.0;
        double at_high = 0.0;
    };
    [[nodiscard]] Turn turning(const Watch &watch);
    [[nodiscard]] double guarded(const Watch &watch, double time);
    void judge();
    Watch *stop_at_first();
    bool stop_at(const Watch &watch, const Turn &turn);
    [[nodiscard]] bool jumps(const Watch &watch, const Turn &turn, double much);
    bool search(const Watch &watch, const Turn &turn, double part);
    void schedule_action(Simulation &sim, const std::shared_ptr<Watch> &watch, double value, double part);
    void schedule_jump(const std::shared_ptr<Watch> &watch);

    Simulation *sim_;
    Integrator integrator_;
    std::vector<std::shared_ptr<Watch>> watches_; // shared with actions on the agenda
    std::vector<double> between_;
    std::function<bool(Simulation &)> look_;
    std::function<double()> judge_;
};

} // namespace widthwise::sim
