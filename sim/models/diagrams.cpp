// Models wired from blocks.
#include "model.hpp"

#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/events.hpp"
#include "widthwise/sim/fuzzy.hpp"
#include "widthwise/sim/math.hpp"

namespace widthwise::sim::models {
namespace {

constexpr double accuracy = 1e-12;

/// A driver's rules: the force, by distance and speed.
class Driver {
  public:
    double push(double distance, double speed) {
        distance_.put(distance);
        speed_.put(speed);
        fuzzy::Conclusion conclusion(push_);
        conclusion.then(distance_.is("behind") && !speed_.is("forwards"), "forwards");
        conclusion.then(distance_.is("there") && speed_.is("backwards"), "forwards");
        conclusion.then(distance_.is("ahead") && !speed_.is("backwards"), "backwards");
        conclusion.then(distance_.is("there") && speed_.is("forwards"), "backwards");
        conclusion.then(distance_.is("there") && speed_.is("still"), "none");
        conclusion.then(distance_.is("behind") && speed_.is("forwards"), "none");
        conclusion.then(distance_.is("ahead") && speed_.is("backwards"), "none");
        return conclusion.value();
    }

  private:
    static fuzzy::Quantity three(const char *name, double end, const char *low, const char *middle,
                                 const char *high) {
        return {name,
                -end,
                end,
                {fuzzy::Set::falling(low, -end, 0.0), fuzzy::Set::triangle(middle, -end, 0.0, end),
                 fuzzy::Set::rising(high, 0.0, end)}};
    }
    fuzzy::Quantity distance_ = three("distance", 2.0, "behind", "there", "ahead");
    fuzzy::Quantity speed_ = three("speed", 2.0, "backwards", "still", "forwards");
    // Apart from each other, so that even a faint conclusion moves the centre of gravity.
    fuzzy::Quantity push_ = {"push",
                             -5.0,
                             5.0,
                             {fuzzy::Set::triangle("backwards", -5.0, -3.0, -1.0),
                              fuzzy::Set::triangle("none", -1.0, 0.0, 1.0),
                              fuzzy::Set::triangle("forwards", 1.0, 3.0, 5.0)}};
};

} // namespace

/// y' = -y(t - 1), y = 1 until 0.
double delayed(Simulation &sim, double time) {
    Diagram d(sim, Method::vern7, {.relative = accuracy, .absolute = accuracy});
    const Signal y = d.integrator(1.0);
    d.connect(y, -d.delay(y, 1.0, 1.0));
    d.start();
    sim.run_until(sim.now() + time);
    sim.trace(y.value());
    // The method of steps: sum of (-1)^k (t - k + 1)^k / k!.
    double exact = 0.0;
    double factorial = 1.0;
    for (double k = 0.0; k <= time + 1.0; k += 1.0) {
        factorial *= k > 0.0 ? k : 1.0;
        double power = 1.0;
        for (double i = 0.0; i < k; i += 1.0)
            power *= -(time - k + 1.0);
        exact += power / factorial;
    }
    return y.value() / exact;
}

/// A cart that a fuzzy driver, who looks ten times a second, is to bring to 1 and hold there.
double fuzzy_cart(Simulation &sim, double time) {
    Diagram d(sim, Method::tsit5, {.relative = accuracy, .absolute = accuracy});
    const Signal push = d.variable(0.0);
    const Signal speed = d.integrator(push, 0.0);
    const Signal place = d.integrator(speed, 0.0);
    d.start();
    Driver driver;
    Sampler looks(sim, 0.1, [&](Simulation &s) {
        d.set(push, driver.push(place.value() - 1.0, speed.value()));
        s.trace(place.value());
    });
    looks.start();
    sim.run_until(sim.now() + time);
    return place.value();
}

/// A resistor, a coil and a capacitor in a row, put on 1 volt: the highest voltage at the capacitor.
double rlc_circuit(Simulation &sim, double) {
    constexpr double resistance = 1.0;
    constexpr double inductance = 0.5;
    constexpr double capacity = 0.1;
    Diagram d(sim, Method::vern8, {.relative = accuracy, .absolute = accuracy});
    const Signal current = d.integrator(0.0);
    const Signal voltage = d.integrator(current / capacity, 0.0);
    d.connect(current, (1.0 - resistance * current - voltage) / inductance);
    d.start();
    double highest = 0.0;
    d.when(current, Crossing::down, [&](Simulation &s) {
        highest = voltage.value();
        s.trace(s.now());
        s.stop();
    });
    sim.run_until(sim.now() + 5.0);
    return highest;
}

/// The room of `heating`, with a relay for its thermostat.
double thermostat(Simulation &sim, double cycles) {
    Diagram d(sim, Method::vern7, {.relative = accuracy, .absolute = accuracy});
    const Signal temperature = d.integrator(21.0);
    const Signal cold = -temperature;
    const Signal heater = d.relay(cold, -21.0, -19.0, 0.0, 1.0);
    d.connect(temperature, (10.0 + 20.0 * heater - temperature) / 10.0);
    const Signal above = temperature - 20.0;
    d.start();
    const double begun = sim.now();
    double count = 0.0;
    double last = begun;
    double first = begun;
    d.when(above, Crossing::down, [&](Simulation &s) {
        s.trace(s.now());
        if (count == 0.0)
            first = s.now();
        last = s.now();
        if (count++ == cycles)
            s.stop();
    });
    sim.run_until(begun + 10.0 * (cycles + 1.0));
    return (last - first) / cycles;
}

} // namespace widthwise::sim::models
