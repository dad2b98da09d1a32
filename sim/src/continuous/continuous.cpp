#include "widthwise/sim/continuous.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/roots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace widthwise::sim {
namespace {

/// Into how many parts a step is divided when signs are looked at: two crossings in one part are not seen.
constexpr int parts = 8;
constexpr double unit = std::numeric_limits<double>::epsilon();
/// How far behind a crossing the sign before it is taken for round-off: in units of the time's last place (a
/// shortest step is as long) and as a share of the part that was looked at.
constexpr double near_places = 16.0;
constexpr double near_share = 1e-6;

bool turns(double from, double to, Crossing crossing) {
    const bool up = from < 0.0 && to >= 0.0;
    const bool down = from > 0.0 && to <= 0.0;
    return (up && crossing != Crossing::down) || (down && crossing != Crossing::up);
}

} // namespace

Continuous::Continuous(Simulation &sim, Method method, Derivative derivative, std::vector<double> initial,
                       Control control)
    : sim_(&sim), integrator_(method, std::move(derivative), std::move(initial), sim.now(),
                              std::move(control), sim.error_context()),
      between_(integrator_.size()) {
    if (sim.has_motion())
        throw WrongState(
            "a simulation has one continuous model or diagram, and this one has it already: make one "
            "system of both",
            sim.error_context());
    sim.set_motion(this);
}

Continuous::~Continuous() {
    sim_->set_motion(nullptr);
    for (const auto &watch : watches_)
        watch->owner = nullptr;
}

void Continuous::set(std::size_t component, double value) {
    integrator_.set_error_context(sim_->error_context());
    if (component >= integrator_.size())
        throw BadRequest("component " + std::to_string(component) + " of a state of " +
                             std::to_string(integrator_.size()) + " was set",
                         sim_->error_context());
    integrator_.set(component, value);
    for (const auto &watch : watches_)
        watch->known = false;
}

void Continuous::disturb() {
    integrator_.set(0, integrator_.state()[0]);
    for (const auto &watch : watches_) // the guard's meaning may have changed as well
        watch->known = false;
}

void Continuous::when(Guard guard, Crossing crossing, std::function<void(Simulation &)> action,
                      std::int16_t priority) {
    watches_.push_back(std::make_shared<Watch>(
        Watch{std::move(guard), crossing, std::move(action), priority, watches_.size(), this}));
}

double Continuous::asked(const Watch &watch, double time, std::span<const double> y) const {
    const double value = watch.guard(time, y);
    if (value != value) {
        ErrorContext where = sim_->error_context();
        where.time = time;
        throw BadState("guard " + std::to_string(watch.number) + " of when() is NaN", std::move(where));
    }
    return value;
}

double Continuous::guarded(const Watch &watch, double time) {
    integrator_.interpolate(time, between_);
    return asked(watch, time, between_);
}

/// Where the watch changes sign within the last step, by the step's cubic; at infinity if it does not.
Continuous::Turn Continuous::turning(const Watch &watch) {
    const double begin = integrator_.last_time();
    const double end = integrator_.time();
    double low = begin;
    double at_low = watch.value;
    // Just behind a crossing, or in a step whose parts are rounded to nothing.
    const bool near = begin < watch.settled || end - begin < near_places * unit * std::fabs(end);
    for (int i = 1; i <= parts; ++i) {
        const bool last = i == parts;
        const double high = last ? end : begin + (end - begin) * (i / static_cast<double>(parts));
        const double at_high = last ? asked(watch, end, integrator_.state()) : guarded(watch, high);
        if (near && !(high > low && counts(watch, high, at_high)))
            continue;
        if (turns(at_low, at_high, watch.crossing))
            return {brent([&](double t) { return guarded(watch, t); }, low, high, at_low, at_high,
                          unit * (high - low)),
                    low, high, at_low, at_high};
        if (at_high != 0.0) {
            at_low = at_high;
            low = high;
        }
    }
    return {};
}

/// Takes the last step again, shorter, until it is good enough, and sees to it that the next is no longer
/// than will do.
void Continuous::judge() {
    const double power = -1.0 / (order_of(integrator_.method()) + 1);
    for (;;) {
        const double begin = integrator_.last_time();
        const double length = integrator_.time() - begin;
        const double off = judge_();
        const double better = off > 1e-10 ? 0.9 * math::pow(off, power) : 5.0;
        if (off <= 1.0)
            return integrator_.limit_next(length * better);
        const double end = begin + length * std::clamp(better, 0.1, 0.9);
        if (!(end > begin && end < integrator_.time()))
            throw AccuracyUnmet("what a delay remembers is not accurate enough however short the steps are; "
                                "allow more, or look for a jump in what is delayed",
                                sim_->error_context());
        integrator_.retake(end);
    }
}

/// Whether the watch has a value beyond `much` close to where it changes sign. A watch that is 0 from there
/// on is 0 at the place found, too: then the last other value before it counts.
bool Continuous::jumps(const Watch &watch, const Turn &turn, double much) {
    double beside =
        8.0 * unit * (std::fabs(turn.time) + (turn.high - turn.low)) + std::numeric_limits<double>::min();
    if (std::fabs(guarded(watch, std::min(turn.high, turn.time + beside))) > much)
        return true;
    double behind = 0.0;
    for (; behind == 0.0 && turn.time - beside > turn.low; beside *= 2.0)
        behind = guarded(watch, turn.time - beside);
    return std::fabs(behind == 0.0 ? turn.at_low : behind) > much;
}

/// Ends the last step where the watch changes sign. The cubic has a lower order than most methods: Newton's
/// steps start from its root, and each repeats the integrator's own step. They do not suit a guard that jumps
/// or is steep, nor a cubic that is far off. False if the step ends without the crossing.
bool Continuous::stop_at(const Watch &watch, const Turn &turn) {
    const double begin = integrator_.last_time();
    const double end = integrator_.time();
    const double part = (end - begin) / parts;
    const double much = 1e-3 * std::max(std::fabs(turn.at_low), std::fabs(turn.at_high));
    double time = turn.time;
    if (jumps(watch, turn, much))
        return search(watch, turn, part);
    integrator_.retake(time);
    double value = asked(watch, time, integrator_.state());
    double moved = 0.0;
    for (int round = 0; round < 5 && time > begin && value != 0.0; ++round) {
        const double aside = time - (time - begin) / 1024.0;
        const double slope = (value - guarded(watch, aside)) / (time - aside);
        const double off = value / slope;
        if (!(std::fabs(off) <= part))
            return search(watch, turn, part);
        const double better = std::clamp(time - off, begin, end);
        if (!(std::fabs(better - time) > 2.0 * unit * std::fabs(time)))
            return true;
        moved = std::fabs(better - time);
        time = better;
        integrator_.retake(time);
        const double before = std::exchange(value, asked(watch, time, integrator_.state()));
        if (std::fabs(value) > std::max(std::fabs(before), much))
            return search(watch, turn, part);
    }
    const bool flat = value != 0.0 && time > begin && moved > near_share * part;
    return !flat || search(watch, turn, part);
}

/// Ends the last step at the first time known to lie beyond the change of sign, by halving on the
/// integrator's own steps: values of a guard that jumps say nothing. These steps may cross in another part
/// than the cubic, or not at all. If they do not cross up to the end of the cubic's part, the step ends
/// without the crossing, and the next looks on.
bool Continuous::search(const Watch &watch, const Turn &turn, double part) {
    const double begin = integrator_.last_time();
    const bool up = turn.at_low < 0.0;
    const auto turned = [&](double time) {
        integrator_.retake(time);
        const double value = asked(watch, time, integrator_.state());
        return up ? value >= 0.0 : value <= 0.0;
    };
    double before = turn.low;
    double beyond = turn.high;
    while (before > begin && turned(before)) {
        beyond = before;
        const double earlier = before - part; // it may be less than the last place
        before = earlier > begin && earlier < before ? earlier : begin;
    }
    if (beyond == turn.high && !turned(beyond))
        return false;
    if (before == begin && !(up ? watch.value < 0.0 : watch.value > 0.0)) {
        integrator_.retake(turn.low);
        return false;
    }
    for (;;) {
        const double time = before + 0.5 * (beyond - before);
        if (!(time > before && time < beyond)) {
            integrator_.retake(beyond);
            return true;
        }
        (turned(time) ? beyond : before) = time;
    }
}

/// Ends the last step at its first crossing. The watch that crosses there, or none. Where only the cubic of a
/// watch crosses, the step has become shorter: the others are looked at again.
Continuous::Watch *Continuous::stop_at_first() {
    std::vector<const Watch *> uncrossed;
    for (;;) {
        Watch *first = nullptr;
        Turn earliest;
        for (const auto &watch : watches_) {
            if (std::find(uncrossed.begin(), uncrossed.end(), watch.get()) != uncrossed.end())
                continue;
            if (const Turn turn = turning(*watch); turn.time < earliest.time) {
                earliest = turn;
                first = watch.get();
            }
        }
        if (first == nullptr)
            return nullptr;
        if (stop_at(*first, earliest)) {
            first->value = earliest.at_low;
            return first;
        }
        uncrossed.push_back(first);
    }
}

/// Schedules the watch's action for the time of its crossing, where its value is `value`.
void Continuous::schedule_action(Simulation &sim, const std::shared_ptr<Watch> &watch, double value,
                                 double part) {
    const double time = integrator_.time();
    watch->from_below = watch->value < 0.0;
    watch->settled = time + std::max(near_places * unit * std::fabs(time), near_share * part);
    watch->last_crossing = time;
    watch->value = 0.0;
    watch->seen = value;
    sim.at(
        time, [watch](Simulation &s) { watch->action(s); }, watch->priority);
}

/// On which side the watches are after the state was set. One that has just crossed is at zero within
/// round-off, and its new side shows later; what was set has not moved it if its value is the same.
void Continuous::know_sides(std::size_t first) {
    const double now = integrator_.time();
    for (std::size_t i = first; i < watches_.size(); ++i) {
        Watch *const watch = watches_[i].get();
        if (watch->known || watch->jumped)
            continue;
        const double value = asked(*watch, now, integrator_.state());
        if (!(now <= watch->settled && value == watch->seen))
            watch->value = watch->last_crossing == now ? 0.0 : value;
        watch->seen = value;
        watch->known = true;
    }
}

void Continuous::jumped(std::size_t first) {
    const double now = integrator_.time();
    for (std::size_t i = first; i < watches_.size(); ++i) {
        const auto &watch = watches_[i];
        const double value = asked(*watch, now, integrator_.state());
        watch->known = true;
        if (watch->jumped || value == watch->seen)
            continue;
        watch->seen = value;
        if (turns(watch->value, value, watch->crossing))
            schedule_jump(watch);
        else if (value != 0.0)
            watch->value = value;
    }
}

/// Schedules what calls the watch's action if the watch is still beyond zero after the events of now: several
/// blocks may switch at one time.
void Continuous::schedule_jump(const std::shared_ptr<Watch> &watch) {
    watch->jumped = true;
    sim_->at(
        integrator_.time(),
        [watch](Simulation &s) {
            watch->jumped = false;
            if (watch->owner == nullptr)
                return;
            const double value = watch->owner->asked(*watch, s.now(), watch->owner->state());
            const bool crossed = turns(watch->value, value, watch->crossing);
            watch->seen = value;
            watch->known = true;
            if (crossed)
                watch->last_crossing = watch->settled = s.now();
            if (crossed || value != 0.0)
                watch->value = value;
            if (crossed)
                watch->action(s);
        },
        watch->priority);
}

double Continuous::advance(Simulation &sim, double from, double to) {
    integrator_.set_error_context(sim.error_context());
    if (integrator_.time() != from)
        throw WrongState(
            "a continuous model is not at the simulation's time: its motion was taken away, or failed",
            sim.error_context());
    know_sides();
    while (integrator_.time() < to) {
        integrator_.step(to);
        if (judge_)
            judge();
        const double part = (integrator_.time() - integrator_.last_time()) / parts;
        const Watch *crossing = stop_at_first();
        const double time = integrator_.time();
        bool stop = false;
        for (const auto &watch : watches_) {
            const double value = asked(*watch, time, integrator_.state());
            const bool told = counts(*watch, time, value);
            if (watch.get() == crossing || (told && turns(watch->value, value, watch->crossing))) {
                schedule_action(sim, watch, value, part);
                stop = true;
                continue;
            }
            watch->seen = value;
            if (value != 0.0 && told)
                watch->value = value;
        }
        if (look_ && look_(sim))
            stop = true;
        if (stop)
            return time;
    }
    return to;
}

} // namespace widthwise::sim
