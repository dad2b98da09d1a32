// Second-order systems y'' = f(t, y, y'), as mechanics writes them.
//
// The state is all positions, then all velocities, in the same order: what an Integrator or a Continuous
// takes.
#pragma once

#include "widthwise/sim/ode.hpp"

#include <algorithm>
#include <utility>

namespace widthwise::sim {

/// Writes y'' for (t, y, y'); all of the positions' length.
using Acceleration = std::function<void(double t, std::span<const double> position,
                                        std::span<const double> velocity, std::span<double> acceleration)>;

/// The same system in the first order. Its state must have an even length; the derivative throws BadRequest
/// otherwise.
inline Derivative second_order(Acceleration f) {
    return [f = std::move(f)](double t, std::span<const double> y, std::span<double> rate) {
        if (y.size() % 2 != 0)
            throw BadRequest("a second-order system's state needs as many velocities as positions", {});
        const std::size_t n = y.size() / 2;
        std::copy(y.begin() + static_cast<std::ptrdiff_t>(n), y.end(), rate.begin());
        f(t, y.first(n), y.last(n), rate.last(n));
    };
}

/// A state from positions and velocities.
inline std::vector<double> phase(std::vector<double> position, const std::vector<double> &velocity) {
    position.insert(position.end(), velocity.begin(), velocity.end());
    return position;
}

} // namespace widthwise::sim
