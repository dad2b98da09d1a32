// Jumps that pass delays: each is followed from where it goes in to where it comes out.
#include "continuous/diagram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace widthwise::sim {
namespace {

/// The highest derivative whose jumps are still waited for.
constexpr int highest_order = 4;
/// By how many units in the last place sums of the same lags differ, added up in different orders.
constexpr double rounding = 16.0 * std::numeric_limits<double>::epsilon();
/// The share of what is allowed below which a value does not jump.
constexpr double negligible = 1e-3;
constexpr std::uint8_t unreachable = 255;

} // namespace

/// How jumps come from each node to each delay.
void Diagram::trace_paths() {
    for (const auto &history : delays_) {
        std::vector<std::uint8_t> &least = history->integrators;
        least.assign(nodes_.size(), unreachable);
        std::deque<std::uint32_t> next;
        const auto reach = [&](std::uint32_t node, std::uint8_t count) {
            if (count >= least[node] || count > highest_order)
                return;
            least[node] = count;
            next.push_back(node);
        };
        reach(nodes_[history->node].input[0], 0);
        while (!next.empty()) {
            const Node &node = nodes_[next.front()];
            const auto count =
                static_cast<std::uint8_t>(least[next.front()] + (node.kind == Part::integrator));
            next.pop_front();
            if (node.kind == Part::delay || node.kind == Part::sampled)
                continue; // they jump at times of their own
            for (int k = 0; k < node.inputs; ++k)
                reach(node.input[k], count);
        }
        history->circular = true;
    }
    // What no circle feeds is found from the beginnings on.
    for (bool found = true; found;) {
        found = false;
        for (const auto &history : delays_) {
            const bool fed = std::any_of(delays_.begin(), delays_.end(), [&](const auto &other) {
                return other->circular && history->integrators[other->node] == 0;
            });
            found = found || (history->circular && !fed);
            history->circular = fed;
        }
    }
}

/// What a node puts out has jumped now, in its derivative `order`.
void Diagram::jumped(std::uint32_t node, int order) {
    for (const auto &history : delays_)
        if (const int smoothed = order + history->integrators[node]; smoothed <= highest_order)
            send(*history, smoothed);
}

/// A jump goes into a delay now: where it comes out, a step is to end. Times that differ by rounding only are
/// one.
void Diagram::send(History &history, int order) {
    const double now = sim_->now();
    double out = now + history.lag;
    const double close = rounding * std::max({std::fabs(out), std::fabs(begun_at_), history.lag});
    const auto due = due_.lower_bound(out - close);
    const bool known = due != due_.end() && *due <= out + close && *due > now;
    if (known)
        out = *due;
    if (!history.jumps.empty() && (history.jumps.back().last == now || history.jumps.back().out >= out)) {
        history.jumps.back().last = now;
        history.jumps.back().order = std::min(history.jumps.back().order, order);
        return;
    }
    history.jumps.push_back({now, now, out, order});
    if (known)
        return;
    due_.insert(out);
    sim_->at(out, [self = self_](Simulation &s) {
        if (*self != nullptr)
            (*self)->echo(s);
    });
}

/// Jumps come out of delays now: the step has ended here.
void Diagram::echo(Simulation &sim) {
    struct Out {
        const History *history;
        int order;
        double before;
    };
    const double now = sim.now();
    due_.erase(now);
    begun_ = std::nextafter(now, -std::numeric_limits<double>::infinity()); // what holds before it
    remember(sim);
    std::vector<Out> outs;
    for (const auto &history : delays_)
        for (const auto &jump : history->jumps) {
            if (jump.out > now)
                break;
            if (jump.out == now)
                outs.push_back({history.get(), jump.order, nodes_[history->node].value});
        }
    begun_ = now;
    evaluate(now, motion_->state());
    bool any = false;
    for (Out &out : outs) {
        const double after = nodes_[out.history->node].value;
        const double allowed = control_.absolute + control_.relative * std::fabs(after);
        const bool jumps = !(std::fabs(after - out.before) <= negligible * allowed);
        any = any || jumps;
        if (!jumps && out.history->circular)
            ++out.order;
    }
    if (!any)
        remember(sim); // blocks do not choose their modes anew for rounding errors
    settle_jump(sim);
    for (const Out &out : outs)
        jumped(out.history->node, out.order);
}

} // namespace widthwise::sim
