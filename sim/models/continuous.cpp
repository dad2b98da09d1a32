// Models that move continuously between events.
#include "model.hpp"

#include "widthwise/sim/continuous.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/process.hpp"

#include <algorithm>

namespace widthwise::sim::models {
namespace {

Process square_wave(Simulation &, double &input, Continuous &circuit, double half_period) {
    for (;;) {
        input = 1.0 - input;
        circuit.disturb();
        co_await wait(half_period);
    }
}

} // namespace

/// A ball falls from 1 m and keeps 0.8 of its speed at each impact.
double ball(Simulation &sim, double impacts) {
    constexpr double gravity = 9.81;
    constexpr double kept = 0.8;
    double count = 0.0;
    Continuous motion(sim, Method::rke,
                      [](double, auto y, auto rate) {
                          rate[0] = y[1];
                          rate[1] = -gravity;
                      },
                      {1.0, 0.0});
    motion.when([](double, auto y) { return y[0]; }, Crossing::down,
                [&](Simulation &s) {
                    motion.set(1, -kept * motion[1]);
                    s.trace(s.now());
                    if (++count == impacts)
                        s.stop();
                });
    sim.run_until(sim.now() + 100.0);
    double sum = 1.0;
    double speed = 1.0;
    for (double i = 1.0; i < impacts; i += 1.0) {
        speed *= kept;
        sum += 2.0 * speed;
    }
    return sim.now() / (math::sqrt(2.0 / gravity) * sum);
}

/// A room at 10 degrees outside, with a heater that would bring it to 30, and a thermostat.
double heating(Simulation &sim, double cycles) {
    double outside = 10.0; // what the temperature tends to
    double begun = 0.0;
    double count = 0.0;
    Continuous room(sim, Method::vern7, [&](double, auto y, auto rate) { rate[0] = (outside - y[0]) / 10.0; },
                    {21.0}, {.relative = 1e-12, .absolute = 1e-12});
    room.when([](double, auto y) { return y[0] - 19.0; }, Crossing::down,
              [&](Simulation &) {
                  outside = 30.0;
                  room.disturb();
              });
    room.when([](double, auto y) { return y[0] - 21.0; }, Crossing::up,
              [&](Simulation &s) {
                  outside = 10.0;
                  room.disturb();
                  s.trace(s.now());
                  if (++count == cycles)
                      s.stop();
              });
    begun = sim.now();
    sim.run_until(begun + 10.0 * cycles);
    return (sim.now() - begun) / cycles;
}

/// Lorenz's equations with the nine of their linearisation: the determinant gives the rate at which volumes
/// shrink.
double lorenz(Simulation &sim, double time) {
    constexpr double sigma = 10.0;
    constexpr double rho = 28.0;
    constexpr double beta = 8.0 / 3.0;
    Continuous weather(sim, Method::rkf8,
                       [](double, auto y, auto rate) {
                           rate[0] = sigma * (y[1] - y[0]);
                           rate[1] = y[0] * (rho - y[2]) - y[1];
                           rate[2] = y[0] * y[1] - beta * y[2];
                           for (std::size_t k = 3; k < 6;
                                ++k) { // the columns of the linearisation, by rows of three
                               rate[k] = sigma * (y[k + 3] - y[k]);
                               rate[k + 3] = (rho - y[2]) * y[k] - y[k + 3] - y[0] * y[k + 6];
                               rate[k + 6] = y[1] * y[k] + y[0] * y[k + 3] - beta * y[k + 6];
                           }
                       },
                       {1.0, 1.0, 1.0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, {.relative = 1e-13, .absolute = 1e-14});
    sim.run_until(sim.now() + time);
    const auto m = [&](std::size_t row, std::size_t column) { return weather[3 + 3 * row + column]; };
    for (std::size_t i = 0; i < 3; ++i)
        sim.trace(weather[i]);
    const double volume = m(0, 0) * (m(1, 1) * m(2, 2) - m(1, 2) * m(2, 1)) -
                          m(0, 1) * (m(1, 0) * m(2, 2) - m(1, 2) * m(2, 0)) +
                          m(0, 2) * (m(1, 0) * m(2, 1) - m(1, 1) * m(2, 0));
    return -math::log(volume) / time;
}

/// A capacitor that a process charges and discharges through a resistor, for one RC each.
double rc_circuit(Simulation &sim, double periods) {
    constexpr double time_constant = 0.5;
    double input = 0.0;
    double highest = 0.0;
    Continuous circuit(sim, Method::tsit5,
                       [&](double, auto y, auto rate) { rate[0] = (input - y[0]) / time_constant; }, {0.0},
                       {.relative = 1e-12, .absolute = 1e-12});
    sim.start(square_wave(sim, input, circuit, time_constant), "square wave");
    // A peak is where the voltage is when its input falls: at whole periods less a half.
    const double begun = sim.now();
    for (double i = 0.0; i < periods; i += 1.0) {
        sim.run_until(begun + (2.0 * i + 1.0) * time_constant);
        highest = std::max(highest, circuit[0]);
        sim.trace(circuit[0]);
    }
    return highest;
}

} // namespace widthwise::sim::models
