// Looking for the least value of a function of several parameters, such as what a model answers.
//
// Why three ways: Hooke and Jeeves need no derivative and little smoothness; annealing leaves a valley for a
// deeper one; the gradient is quickest where the function is smooth. All are deterministic: annealing by its
// stream. References: Hooke and Jeeves, JACM 8 (1961) 212-229; Kirkpatrick, Gelatt and Vecchi, Science 220
// (1983) 671-680; Nocedal and Wright, Numerical Optimization (2nd ed., 2006), 6.1 (BFGS) and 3.1 (Armijo).
#pragma once

#include "widthwise/sim/errors.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace widthwise::sim {

using Objective = std::function<double(std::span<const double>)>;

/// A parameter: where to begin and between which ends to stay.
struct Parameter {
    double begin;
    double low;
    double high;
};

struct Optimum {
    std::vector<double> at;
    double value;
    std::uint64_t evaluations;
};

/// Counts, clamps and refuses; what the three have in common.
class Search {
  public:
    Search(Objective f, std::span<const Parameter> parameters, std::uint64_t most)
        : f_(std::move(f)), parameters_(parameters.begin(), parameters.end()), most_(most) {
        if (parameters_.empty())
            throw BadRequest("there is nothing to optimise: no parameter was given", {});
        for (const Parameter &p : parameters_) {
            if (!(p.low < p.high) || !(p.begin >= p.low && p.begin <= p.high))
                throw BadRequest("a parameter must begin between its ends, and low < high", {});
            best.at.push_back(p.begin);
        }
        best.evaluations = 0;
        best.value = value(best.at);
    }
    [[nodiscard]] std::size_t size() const noexcept { return parameters_.size(); }
    [[nodiscard]] const Parameter &parameter(std::size_t i) const { return parameters_[i]; }
    [[nodiscard]] double clamped(std::size_t i, double x) const {
        return std::clamp(x, parameters_[i].low, parameters_[i].high);
    }
    /// Throws NoConvergence when no evaluation is left, BadState for a value that is no number.
    double value(const std::vector<double> &at) {
        if (best.evaluations >= most_)
            throw NoConvergence("no least value was found in " + std::to_string(most_) +
                                    " evaluations; allow more, or ask for less accuracy",
                                {});
        ++best.evaluations;
        const double found = f_(at);
        if (found != found)
            throw BadState("the function to be optimised is no number somewhere between the ends", {});
        return found;
    }
    Optimum best;

  private:
    Objective f_;
    std::vector<Parameter> parameters_;
    std::uint64_t most_;
};

/// By steps along the axes, and on in the direction that has proved good. `accuracy` is the last step,
/// relative to each parameter's range.
inline Optimum hooke_jeeves(Objective f, std::span<const Parameter> parameters, double accuracy = 1e-8,
                            std::uint64_t most = 1000000) {
    Search search(std::move(f), parameters, most);
    std::vector<double> step(search.size());
    for (std::size_t i = 0; i < step.size(); ++i)
        step[i] = 0.1 * (search.parameter(i).high - search.parameter(i).low);
    const auto explore = [&](std::vector<double> &at, double &value) {
        for (std::size_t i = 0; i < at.size(); ++i)
            for (const double side : {1.0, -1.0}) {
                const double old = at[i];
                at[i] = search.clamped(i, old + side * step[i]);
                const double found = at[i] != old ? search.value(at) : value;
                if (found < value) {
                    value = found;
                    break;
                }
                at[i] = old;
            }
    };
    for (double size = 0.1; size > accuracy;) {
        std::vector<double> at = search.best.at;
        double value = search.best.value;
        explore(at, value);
        if (!(value < search.best.value)) {
            size *= 0.5;
            for (double &s : step)
                s *= 0.5;
            continue;
        }
        while (value < search.best.value) {
            std::vector<double> beyond(at.size());
            for (std::size_t i = 0; i < at.size(); ++i)
                beyond[i] = search.clamped(i, 2.0 * at[i] - search.best.at[i]);
            search.best.at = at;
            search.best.value = value;
            at = beyond;
            value = search.value(at);
            explore(at, value);
        }
    }
    return search.best;
}

/// How annealing cools.
struct Cooling {
    double hot = 1.0;    // the temperature at first, in units of the function
    double cold = 1e-6;  // and at last
    double factor = 0.9; // from one temperature to the next
    int tries = 100;     // at each temperature, for each parameter
};

/// By random moves, of which bad ones are taken the more rarely the colder it is. The moves of a parameter
/// shrink or grow so that about half of them are taken.
inline Optimum annealing(Objective f, std::span<const Parameter> parameters, Random random,
                         const Cooling &cooling = {}, std::uint64_t most = 10000000) {
    if (!(cooling.hot >= cooling.cold) || !(cooling.cold > 0.0) ||
        !(cooling.factor > 0.0 && cooling.factor < 1.0) || cooling.tries < 1)
        throw BadRequest("annealing must cool: hot >= cold > 0, 0 < factor < 1", {});
    Search search(std::move(f), parameters, most);
    std::vector<double> at = search.best.at;
    double value = search.best.value;
    std::vector<double> reach(at.size());
    for (std::size_t i = 0; i < reach.size(); ++i)
        reach[i] = search.parameter(i).high - search.parameter(i).low;
    for (double heat = cooling.hot; heat >= cooling.cold; heat *= cooling.factor) {
        if (value - search.best.value > 5.0 * heat) { // it would not climb back to the best from here
            at = search.best.at;
            value = search.best.value;
        }
        for (std::size_t i = 0; i < at.size(); ++i) {
            int taken = 0;
            for (int k = 0; k < cooling.tries; ++k) {
                const double old = at[i];
                at[i] = search.clamped(i, old + reach[i] * (2.0 * random.uniform() - 1.0));
                const double found = search.value(at);
                if (found <= value || random.uniform() < math::exp((value - found) / heat)) {
                    value = found;
                    ++taken;
                    if (value < search.best.value) {
                        search.best.value = value;
                        search.best.at = at;
                    }
                } else {
                    at[i] = old;
                }
            }
            const double share = static_cast<double>(taken) / cooling.tries;
            const double range = search.parameter(i).high - search.parameter(i).low;
            reach[i] = std::clamp(reach[i] * (share > 0.6   ? 1.5
                                              : share < 0.4 ? 0.67
                                                            : 1.0),
                                  1e-12 * range, range);
        }
    }
    return search.best;
}

/// Down the gradient, taken by differences, with an estimate of the curvature from the steps so far (BFGS).
/// `accuracy` is that of the value, relative to it where it is above one.
inline Optimum gradient(Objective f, std::span<const Parameter> parameters, double accuracy = 1e-12,
                        std::uint64_t most = 1000000) {
    Search search(std::move(f), parameters, most);
    const std::size_t n = search.size();
    const auto slope = [&](const std::vector<double> &at) {
        std::vector<double> g(n);
        std::vector<double> aside = at;
        for (std::size_t i = 0; i < n; ++i) {
            const double h = 6e-6 * std::max(std::fabs(at[i]),
                                             1e-3 * (search.parameter(i).high - search.parameter(i).low));
            const double right = aside[i] = search.clamped(i, at[i] + h);
            const double above = search.value(aside);
            const double left = aside[i] = search.clamped(i, at[i] - h);
            g[i] = (above - search.value(aside)) / (right - left);
            aside[i] = at[i];
        }
        return g;
    };
    const auto product = [&](const std::vector<double> &a, const std::vector<double> &b) {
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            sum += a[i] * b[i];
        return sum;
    };
    std::vector<double> inverse(n * n); // of the curvature, as far as it is known
    const auto reset = [&] {
        std::fill(inverse.begin(), inverse.end(), 0.0);
        for (std::size_t i = 0; i < n; ++i)
            inverse[i * n + i] = 1.0;
    };
    reset();
    bool fresh = true;
    std::vector<double> g = slope(search.best.at);
    for (;;) {
        std::vector<double> way(n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < n; ++k)
                way[i] -= inverse[i * n + k] * g[k];
        double down = product(way, g);
        if (!(down < 0.0)) {
            if (fresh)
                return search.best;
            reset();
            fresh = true;
            continue;
        }
        std::vector<double> next(n);
        std::vector<double> moved(n);
        double value = 0.0;
        bool better = false;
        // The first step's length is unknown: no further than a tenth of the ranges.
        double length = 1.0;
        if (fresh)
            for (std::size_t i = 0; i < n; ++i)
                length = std::min(length, 0.1 * (search.parameter(i).high - search.parameter(i).low) /
                                              std::max(std::fabs(way[i]), 1e-300));
        for (int half = 0; half < 60 && !better; ++half, length *= 0.5) {
            for (std::size_t i = 0; i < n; ++i) {
                next[i] = search.clamped(i, search.best.at[i] + length * way[i]);
                moved[i] = next[i] - search.best.at[i];
            }
            if (product(moved, moved) == 0.0)
                break;
            value = search.value(next);
            better = value <= search.best.value + 1e-4 * product(moved, g) && value < search.best.value;
        }
        if (!better) {
            if (fresh)
                return search.best;
            reset();
            fresh = true;
            continue;
        }
        const double gained = search.best.value - value;
        const std::vector<double> g2 = slope(next);
        std::vector<double> turned(n);
        for (std::size_t i = 0; i < n; ++i)
            turned[i] = g2[i] - g[i];
        const double curvature = product(moved, turned);
        const bool was_fresh = fresh;
        if (curvature > 0.0) {
            std::vector<double> hy(n);
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t k = 0; k < n; ++k)
                    hy[i] += inverse[i * n + k] * turned[k];
            const double scale = 1.0 + product(turned, hy) / curvature;
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t k = 0; k < n; ++k)
                    inverse[i * n + k] +=
                        (scale * moved[i] * moved[k] - hy[i] * moved[k] - moved[i] * hy[k]) / curvature;
            fresh = false;
        }
        search.best.at = next;
        search.best.value = value;
        g = g2;
        if (gained <= accuracy * std::max(1.0, std::fabs(value)) && was_fresh)
            return search.best;
        if (gained <= accuracy * std::max(1.0, std::fabs(value))) {
            reset(); // once more without what was learnt: it may have been wrong
            fresh = true;
        }
    }
}

} // namespace widthwise::sim
