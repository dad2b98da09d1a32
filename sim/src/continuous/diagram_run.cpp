// The diagram as it moves: values, loops solved, modes that end, delays that remember.
#include "continuous/diagram.hpp"

#include "widthwise/sim/math.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace widthwise::sim {
namespace {

/// By how much a mode may be overstepped before it is taken for missed.
constexpr double slack = 1e-9;
/// How often a jump may make others jump at one time.
constexpr int most_passes = 100;
/// Steps in a lag, at the least: no step asks a delay for what is not known yet.
constexpr int steps_a_lag = 2;

std::string shown_value(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

} // namespace

namespace {

/// The polynomial that has these values at Chebyshev's places (Berrut and Trefethen, Barycentric Lagrange
/// interpolation, SIAM Review 46 (2004) 501-517, 5.3: the weights are 1, -1, ..., halved at both ends).
double through(std::span<const double> places, std::span<const double> values, double x) {
    double above = 0.0;
    double below = 0.0;
    for (std::size_t k = 0; k < places.size(); ++k) {
        const double off = x - places[k];
        if (off == 0.0)
            return values[k];
        const double end = k == 0 || k + 1 == places.size() ? 0.5 : 1.0;
        const double weight = (k % 2 == 0 ? end : -end) / off;
        above += weight * values[k];
        below += weight;
    }
    return above / below;
}

/// Where a polynomial of the method's order is to be known, in [0, 1].
std::vector<double> chebyshev_places(int order) {
    constexpr double pi = 3.14159265358979323846;
    const int last = std::max(3, order);
    std::vector<double> places;
    for (int k = 0; k <= last; ++k)
        places.push_back(0.5 - 0.5 * math::cos(pi * (k / static_cast<double>(last))));
    places.front() = 0.0;
    places.back() = 1.0;
    return places;
}

} // namespace

/// No step holds a jump. What a step sees of the history lies therefore between two jumps: the last that came
/// out until it began, and the next. Times do not tell that, since t - lag is rounded.
double Diagram::History::at(double t, double begun, std::span<const double> places) const {
    double time = t - lag;
    bool after = t <= begun; // where two steps meet
    double low = -std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Jump &jump : jumps) {
        if (jump.out > begun) {
            high = jump.first;
            break;
        }
        low = jump.last;
    }
    if (time <= low) {
        time = low;
        after = true;
    } else if (time >= high) {
        time = high;
        after = false;
    }
    if (steps.empty() || time < steps.front().begin || (time == steps.front().begin && !after))
        return before;
    const auto found = std::partition_point(steps.begin(), steps.end(), [&](const Step &step) {
        return step.end < time || (step.end == time && after);
    });
    if (found == steps.end())
        return steps.back().values.back();
    return through(places, found->values, (time - found->begin) / (found->end - found->begin));
}

void Diagram::compute(const std::vector<std::uint32_t> &order, double t, std::span<const double> y) {
    for (const std::uint32_t i : order) {
        Node &node = nodes_[i];
        const auto in = [&](std::size_t k) { return nodes_[node.input[k]].value; };
        switch (node.kind) {
        case Part::constant:
        case Part::variable:
            break;
        case Part::time:
            node.value = t;
            break;
        case Part::operation:
            node.value = node.operation(in(0), in(1));
            break;
        case Part::function:
            node.value = node.one ? node.one(in(0)) : node.two(in(0), in(1));
            break;
        case Part::integrator:
            node.value = y[node.index];
            break;
        case Part::wire:
            node.value = in(0);
            break;
        case Part::loop:
            solve(*loops_[node.index], t, y);
            break;
        case Part::block:
            node.value = node.block->output(in(0));
            break;
        case Part::delay:
            node.value = delays_[node.index]->at(t, begun_, places_);
            break;
        case Part::sampled:
            node.value = samples_[node.index]->held;
            break;
        }
    }
}

void Diagram::evaluate(double t, std::span<const double> y) { compute(order_, t, y); }

void Diagram::solve(Solver &solver, double t, std::span<const double> y) {
    const Loop &how = solver.how;
    Node &node = nodes_[solver.node];
    int calls = 0;
    double off = 0.0;
    const auto off_at = [&](double z) {
        if (++calls > how.most)
            throw NoConvergence("the " + shown(solver.node) + " has no solution after " +
                                    std::to_string(how.most) + " evaluations, the last off by " +
                                    shown_value(off) +
                                    "; allow more, give a better guess or take another solver",
                                sim_->error_context());
        node.value = z;
        compute(solver.body, t, y);
        off = nodes_[node.input[0]].value - z;
        if (!(off - off == 0.0))
            throw NoConvergence("the " + shown(solver.node) + " ran away to " + shown_value(z) +
                                    "; give a better guess or take another solver",
                                sim_->error_context());
        return off;
    };
    const auto near = [&](double z) { return how.tolerance * std::max(1.0, std::fabs(z)); };
    switch (how.method) {
    case Solving::iterations:
        for (double z = node.value; std::fabs(off_at(z)) > near(z);)
            z += off;
        return;
    case Solving::newton: {
        double z = node.value;
        for (double here = off_at(z); std::fabs(here) > near(z); here = off_at(z)) {
            const double aside = z + 1e-7 * std::max(1.0, std::fabs(z));
            const double slope = (off_at(aside) - here) / (aside - z);
            z -= here / slope;
        }
        return;
    }
    default:
        break;
    }
    double a = how.low;
    double b = how.high;
    double fa = off_at(a);
    if (fa == 0.0)
        return;
    double fb = off_at(b);
    if (fb == 0.0)
        return;
    if ((fa > 0.0) == (fb > 0.0))
        throw NoConvergence("the " + shown(solver.node) + " is off to the same side at both ends, " +
                                shown_value(a) + " and " + shown_value(b) +
                                ": no solution is known to lie between",
                            sim_->error_context());
    while (b - a > near(a)) {
        double z = 0.5 * (a + b);
        if (how.method == Solving::regula_falsi)
            z = std::clamp((a * fb - b * fa) / (fb - fa), a, b);
        const double fz = off_at(z);
        if (how.method == Solving::regula_falsi ? std::fabs(fz) <= near(z) : fz == 0.0)
            return;
        if ((fz > 0.0) == (fa > 0.0)) {
            a = z;
            fa = fz;
            if (how.method == Solving::regula_falsi)
                fb *= 0.5; // Illinois: the end that stays counts for less
        } else {
            b = z;
            fb = fz;
            if (how.method == Solving::regula_falsi)
                fa *= 0.5;
        }
    }
}

/// How fast a signal changes: by a difference along the solution.
double Diagram::rate_of(std::uint32_t node, double t, std::span<const double> y) {
    evaluate(t, y);
    const double here = nodes_[node].value;
    const double ahead = 1e-7 * std::max(1.0, std::fabs(t));
    std::vector<double> later(y.begin(), y.end());
    for (std::size_t k = 0; k < integrators_.size(); ++k)
        later[k] += ahead * nodes_[nodes_[integrators_[k]].input[0]].value;
    evaluate(t + ahead, later);
    return (nodes_[node].value - here) / ahead;
}

double Diagram::within(const Node &node, double t, std::span<const double> y) {
    const double rate = node.block->wants_rate() ? rate_of(node.input[0], t, y) : 0.0;
    evaluate(t, y);
    return node.block->within(taken(node, t), rate);
}

/// A block's input, which decides its mode. BadState if it does not: NaN, for one.
double Diagram::taken(const Node &node, double t) const {
    const double x = nodes_[node.input[0]].value;
    const char *refusal = node.block->refusal(x);
    if (refusal == nullptr)
        return x;
    ErrorContext where = sim_->error_context();
    where.time = t;
    throw BadState("the " + shown(node.input[0]) + ", which the " +
                       shown(static_cast<std::uint32_t>(&node - nodes_.data())) + " takes in, is " + refusal,
                   std::move(where));
}

/// What blocks have at their inputs before something jumps.
void Diagram::remember(Simulation &sim) {
    motion_->know_sides(blocks_.size());
    evaluate(sim.now(), motion_->state());
    for (const std::uint32_t i : blocks_)
        nodes_[i].block->input = nodes_[nodes_[i].input[0]].value;
}

/// After a jump, every block whose input has jumped chooses its mode again, until no block does.
void Diagram::settle(Simulation &sim) {
    const double now = sim.now();
    begun_ = now;
    const std::span<const double> y = motion_->state();
    bool changed = true;
    for (int pass = 0; changed; ++pass) {
        if (pass > most_passes)
            throw AccuracyUnmet(
                "blocks make each other switch without end; put a delay or hysteresis between",
                sim.error_context());
        changed = false;
        for (const std::uint32_t i : blocks_) {
            Block &block = *nodes_[i].block;
            evaluate(now, y);
            const double x = taken(nodes_[i], now);
            if (block.begun && block.input == x)
                continue;
            const double rate = rate_of(nodes_[i].input[0], now, y);
            block.begin(x, rate);
            block.input = x;
            block.begun = true;
            changed = true;
        }
    }
    evaluate(now, y);
    motion_->disturb();
}

/// After a jump that nothing outside of the diagram has made: it may be a crossing, for all guards but those
/// of the modes.
void Diagram::settle_jump(Simulation &sim) {
    settle(sim);
    motion_->jumped(blocks_.size());
}

/// What the delays take in at a time within the last step, by the method's own step to there.
void Diagram::sense(double t, std::vector<double> &values) {
    motion_->dense(t, state_);
    evaluate(t, state_);
    values.clear();
    for (const auto &history : delays_)
        values.push_back(nodes_[nodes_[history->node].input[0]].value);
}

/// Writes down the last step for the delays.
void Diagram::write_down(double begin, double end) {
    std::vector<double> values;
    begun_ = begin;
    for (const auto &history : delays_) {
        history->last.begin = begin;
        history->last.end = end;
        history->last.values.clear();
    }
    for (const double place : places_) {
        sense(place == 1.0 ? end : begin + (end - begin) * place, values);
        for (std::size_t i = 0; i < delays_.size(); ++i)
            delays_[i]->last.values.push_back(values[i]);
    }
}

/// By how much the polynomials that the delays would remember of the last step miss what went in, in units of
/// what is allowed: between the two places in the middle, where nothing was written down.
double Diagram::missed() {
    const double begin = motion_->integrator().last_time();
    const double end = motion_->integrator().time();
    write_down(begin, end);
    const std::size_t middle = places_.size() / 2;
    const double place = 0.5 * (places_[middle - 1] + places_[middle]);
    std::vector<double> values;
    sense(begin + (end - begin) * place, values);
    double most = 0.0;
    for (std::size_t i = 0; i < delays_.size(); ++i) {
        const double off = std::fabs(through(places_, delays_[i]->last.values, place) - values[i]);
        const double allowed = control_.absolute + control_.relative * std::fabs(values[i]);
        if (off > most * allowed) // 0 / 0 where nothing is missed
            most = off / allowed;
    }
    return most;
}

/// After each step: what the delays are to remember, and whether a mode was overstepped unseen.
bool Diagram::look(Simulation &sim) {
    const double begin = motion_->integrator().last_time();
    const double end = motion_->integrator().time();
    if (end > begin) {
        if (!delays_.empty() && (delays_[0]->last.begin != begin || delays_[0]->last.end != end))
            write_down(begin, end); // a crossing has cut the step short, or none is judged
        for (const auto &history : delays_) {
            history->steps.push_back(std::move(history->last));
            history->last = {};
            while (history->steps.front().end < end - 2.0 * history->lag)
                history->steps.pop_front();
            while (history->jumps.size() > 1 && history->jumps[1].out <= begin)
                history->jumps.pop_front();
        }
        begun_ = end;
    }
    for (const std::uint32_t i : blocks_) {
        const Node &node = nodes_[i];
        const double inside = within(node, end, motion_->state());
        if (inside < -slack * (1.0 + std::fabs(nodes_[node.input[0]].value))) {
            sim.at(end, [self = self_, i](Simulation &s) {
                if (*self == nullptr)
                    return;
                Diagram &d = **self;
                d.remember(s);
                Block &block = *d.nodes_[i].block;
                block.begin(block.input, d.rate_of(d.nodes_[i].input[0], s.now(), d.motion_->state()));
                d.settle_jump(s);
                d.jumped(i, 0);
            });
            return true;
        }
    }
    return false;
}

/// Samplings that are due at one time happen together: all outputs change before the first input is taken.
void Diagram::tick(Simulation &sim) {
    remember(sim);
    std::vector<std::uint32_t> changed;
    for (const auto &sample : samples_)
        if (sample->next <= sim.now() && std::exchange(sample->held, sample->stored) != sample->stored)
            changed.push_back(sample->node);
    settle_jump(sim);
    for (const std::uint32_t node : changed)
        jumped(node, 0);
    for (const auto &sample : samples_)
        if (sample->next <= sim.now()) {
            sample->stored = nodes_[nodes_[sample->node].input[0]].value;
            sample->count += 1.0;
            sample->next = begun_at_ + sample->count * sample->period;
        }
    schedule_tick();
}

void Diagram::schedule_tick() {
    double next = std::numeric_limits<double>::infinity();
    for (const auto &sample : samples_)
        next = std::min(next, sample->next);
    sim_->at(next, [self = self_](Simulation &s) {
        if (*self != nullptr)
            (*self)->tick(s);
    });
}

void Diagram::start() {
    if (motion_ != nullptr)
        refuse("a diagram was started twice");
    sort();
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].kind == Part::block)
            blocks_.push_back(i);
    std::vector<double> initial;
    for (const std::uint32_t i : integrators_)
        initial.push_back(nodes_[i].value);
    if (initial.empty())
        initial.push_back(0.0); // nothing is integrated, but blocks switch and delays remember all the same
    Control control = control_;
    for (const auto &history : delays_)
        if (!(control.longest > 0.0) || control.longest > history->lag / steps_a_lag)
            control.longest = history->lag / steps_a_lag;
    places_ = chebyshev_places(order_of(method_));
    state_.resize(initial.size());
    begun_ = begun_at_ = sim_->now();
    motion_ = std::make_unique<Continuous>(
        *sim_, method_,
        [this](double t, std::span<const double> y, std::span<double> rate) {
            evaluate(t, y);
            rate[0] = 0.0;
            for (std::size_t k = 0; k < integrators_.size(); ++k)
                rate[k] = nodes_[nodes_[integrators_[k]].input[0]].value;
        },
        std::move(initial), std::move(control));
    settle(*sim_);
    for (const std::uint32_t i : blocks_)
        motion_->when([this, i](double t, std::span<const double> y) { return within(nodes_[i], t, y); },
                      Crossing::down,
                      [this, i](Simulation &sim) {
                          remember(sim);
                          Block &block = *nodes_[i].block;
                          block.leave(block.input, 0.0);
                          settle_jump(sim);
                          jumped(i, 0);
                      });
    trace_paths();
    for (const auto &history : delays_) // what was before the start meets what goes in
        send(*history, nodes_[nodes_[history->node].input[0]].value == history->before ? 1 : 0);
    for (const auto &sample : samples_)
        sample->next = begun_at_;
    if (!samples_.empty())
        schedule_tick();
    motion_->after_steps([this](Simulation &sim) { return look(sim); });
    if (!delays_.empty() && !(control_.step > 0.0))
        motion_->judge_steps([this] { return missed(); });
}

void Diagram::set(Signal to, double value) {
    Node &node = nodes_[own(to)];
    if (node.kind != Part::variable && node.kind != Part::integrator)
        refuse("only variables and integrators can be set, not a " + shown(to.node_));
    if (motion_ != nullptr)
        remember(*sim_);
    node.value = value;
    if (motion_ == nullptr)
        return;
    if (node.kind == Part::integrator)
        motion_->set(node.index, value);
    settle(*sim_);
    jumped(to.node_, 0);
}

void Diagram::when(Signal x, Crossing crossing, std::function<void(Simulation &)> action) {
    const std::uint32_t node = own(x);
    motion().when(
        [this, node](double t, std::span<const double> y) {
            evaluate(t, y);
            return nodes_[node].value;
        },
        crossing, std::move(action));
}

double Diagram::value(Signal x) {
    const std::uint32_t node = own(x);
    evaluate(sim_->now(), motion().state());
    return nodes_[node].value;
}

Continuous &Diagram::motion() {
    if (motion_ == nullptr)
        refuse("a diagram was used before its start()");
    return *motion_;
}

} // namespace widthwise::sim
