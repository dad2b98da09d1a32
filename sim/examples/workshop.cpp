// A workshop with one machine that breaks down, urgent orders that push others aside, and a thermostat
// without an operator. Twenty weeks of it, on all processors, for two figures with their intervals.
#include <widthwise/sim/continuous.hpp>
#include <widthwise/sim/distributions.hpp>
#include <widthwise/sim/facility.hpp>
#include <widthwise/sim/replications.hpp>

#include <cstdio>

using namespace widthwise::sim;

namespace {

// Hours. A job that is preempted, or interrupted by a breakdown, continues later with its remaining time.
Process order(Simulation &sim, Facility &machine, bool urgent, Stat &through) {
    const double arrived = sim.now();
    if (urgent)
        co_await machine.preempt(1);
    else
        co_await machine.seize();
    co_await wait(erlang(sim.random(), 0.5, 2));
    machine.release();
    through(sim.now() - arrived);
}

Process orders(Simulation &sim, Facility &machine, bool urgent, double every, Stat &through) {
    for (;;) {
        co_await wait(exponential(sim.random(), every));
        sim.start(order(sim, machine, urgent, through));
    }
}

Process breakdowns(Simulation &sim, Facility &machine) {
    for (;;) {
        co_await wait(exponential(sim.random(), 20.0));
        machine.break_down();
        co_await wait(exponential(sim.random(), 1.0));
        machine.repair();
    }
}

struct Week {
    double through; // mean hours of an order that is not urgent
    double heated;  // share of the time
};

Week week(std::uint64_t seed) {
    Simulation sim(Options{.seed = seed});
    Facility machine(sim, "machine");
    Stat usual;
    Stat urgent;
    sim.start(orders(sim, machine, false, 2.0, usual), "orders");
    sim.start(orders(sim, machine, true, 10.0, urgent), "urgent orders");
    sim.start(breakdowns(sim, machine), "breakdowns");
    // 10 degrees outside; the heater is switched at 19 and at 21, wherever in a step that is.
    TStat heater(sim.now());
    Continuous room(
        sim, Method::tsit5,
        [&heater](double, auto celsius, auto rate) { rate[0] = 10.0 - celsius[0] + 20.0 * heater.level(); },
        {20.0});
    const auto at = [&](double celsius, Crossing crossing, double level) {
        room.when([celsius](double, auto state) { return state[0] - celsius; }, crossing,
                  [&heater, &room, level](Simulation &now) {
                      heater.set(now.now(), level);
                      room.disturb();
                  });
    };
    at(19.0, Crossing::down, 1.0);
    at(21.0, Crossing::up, 0.0);
    sim.run_until(10.0); // warm-up
    usual.clear();
    heater.clear(sim.now());
    sim.clear_statistics();
    sim.run_until(10.0 + 168.0);
    return {usual.mean(), heater.mean(sim.now())};
}

} // namespace

int main() {
    Stat through;
    Stat heated;
    for (const Week &one :
         replicate(Plan{.count = 20}, [](const Replication &run) { return week(run.seed); })) {
        through(one.through);
        heated(one.heated);
    }
    const Interval hours = t_interval(through);
    const Interval share = t_interval(heated);
    std::printf(
        "An order takes %.3f h +- %.3f; the heater is on %.4f +- %.4f of the time (95 %%, 20 weeks)\n",
        hours.mean, hours.half, share.mean, share.half);
}
