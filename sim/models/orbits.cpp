// Systems whose equations are all there is, and what is known of their solutions.
#include "model.hpp"

#include "widthwise/sim/continuous.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/vectors.hpp"

#include <array>
#include <limits>

namespace widthwise::sim::models {
namespace {

double energy(std::span<const double> state) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
        const Body one = body_at(state, i);
        sum += 0.5 * dot(one.velocity, one.velocity);
        for (std::size_t j = 0; j < i; ++j)
            sum -= 1.0 / length(one.place - body_at(state, j).place);
    }
    return sum;
}

} // namespace

/// The restricted problem of three bodies: a satellite that comes back to its place beside the moon.
double arenstorf(Simulation &sim, double) {
    constexpr double mu = 0.012277471;
    constexpr double nu = 1.0 - mu;
    Continuous orbit(sim, Method::vern8,
                     [](double, auto y, auto rate) {
                         const double r1 = (y[0] + mu) * (y[0] + mu) + y[1] * y[1];
                         const double r2 = (y[0] - nu) * (y[0] - nu) + y[1] * y[1];
                         const double c1 = nu / (r1 * math::sqrt(r1));
                         const double c2 = mu / (r2 * math::sqrt(r2));
                         rate[0] = y[2];
                         rate[1] = y[3];
                         rate[2] = y[0] + 2.0 * y[3] - c1 * (y[0] + mu) - c2 * (y[0] - nu);
                         rate[3] = y[1] - 2.0 * y[2] - (c1 + c2) * y[1];
                     },
                     {0.994, 0.0, 0.0, -2.00158510637908252240537862224},
                     {.relative = 1e-14, .absolute = 1e-14});
    // Half way round it crosses the axis at a right angle, on the other side, by symmetry.
    double half = std::numeric_limits<double>::quiet_NaN();
    orbit.when([](double, auto y) { return y[1]; }, Crossing::either,
               [&](Simulation &s) {
                   s.trace(orbit[0]);
                   if (s.now() > 8.0 && s.now() < 9.0) {
                       half = s.now();
                       s.stop();
                   }
               });
    sim.run_until(sim.now() + 10.0);
    return 2.0 * half;
}

/// y'' = -y, as often round as asked: how far from the middle it is then.
double circle(Simulation &sim, double rounds) {
    Continuous point(sim, Method::rkf8, second_order([](double, auto y, auto, auto a) { a[0] = -y[0]; }),
                     {0.0, 1.0}, {.relative = 1e-12, .absolute = 1e-12});
    sim.run_until(sim.now() + rounds * 6.28318530717958648);
    sim.trace(point[0]);
    return math::sqrt(point[0] * point[0] + point[1] * point[1]);
}

/// Hares and foxes; what stays is x - ln x + y - ln y.
double lotka_volterra(Simulation &sim, double time) {
    Continuous field(sim, Method::vern7,
                     [](double, auto y, auto rate) {
                         rate[0] = y[0] * (1.0 - y[1]);
                         rate[1] = y[1] * (y[0] - 1.0);
                     },
                     {0.3, 1.2}, {.relative = 1e-13, .absolute = 1e-13});
    const auto kept = [&] { return field[0] - math::log(field[0]) + field[1] - math::log(field[1]); };
    const double before = kept();
    sim.run_until(sim.now() + time);
    sim.trace(field[0]);
    return kept() / before;
}

/// Three equal bodies that run after each other on a figure of eight, for so many of its periods.
double three_bodies(Simulation &sim, double periods) {
    const Vector place{0.97000436, -0.24308753, 0.0};
    const Vector velocity{-0.93240737, -0.86473146, 0.0};
    const std::array<Body, 3> bodies = {
        {{place, -0.5 * velocity}, {-place, -0.5 * velocity}, {{}, velocity}}};
    const std::vector<double> state = state_of(bodies);
    Continuous space(sim, Method::vern8, movement(3, gravitation({1.0, 1.0, 1.0})), state,
                     {.relative = 1e-13, .absolute = 1e-13});
    sim.run_until(sim.now() + periods * 6.32591398);
    double apart = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
        const Vector p = body_at(space.state(), i).place;
        sim.trace(p.x);
        apart += length(p - bodies[i].place);
    }
    // The run is valid only if the bodies are back at their start.
    return apart < 1e-4 * periods ? energy(space.state()) / energy(state) : 0.0;
}

/// Van der Pol's oscillator, mu = 1e6, at t = 2.
double van_der_pol(Simulation &sim, double) {
    constexpr double mu = 1e6;
    Control control{.relative = 1e-11, .absolute = 1e-13};
    control.jacobian = [](double, std::span<const double> y, std::span<double> j, std::span<double> by_time) {
        j[0] = 0.0;
        j[1] = 1.0;
        j[2] = mu * (-2.0 * y[0] * y[1] - 1.0);
        j[3] = mu * (1.0 - y[0] * y[0]);
        by_time[0] = by_time[1] = 0.0;
    };
    Continuous oscillator(
        sim, Method::rodas4,
        [](double, auto y, auto rate) {
            rate[0] = y[1];
            rate[1] = mu * ((1.0 - y[0] * y[0]) * y[1] - y[0]);
        },
        {2.0, 0.0}, control);
    sim.run_until(sim.now() + 2.0);
    sim.trace(oscillator[1]);
    return oscillator[0];
}

} // namespace widthwise::sim::models
