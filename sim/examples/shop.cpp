// A shop with one till, with a printed event trace; then a hundred such days, for an interval.
#include <widthwise/sim/conditions.hpp>
#include <widthwise/sim/distributions.hpp>
#include <widthwise/sim/facility.hpp>
#include <widthwise/sim/replications.hpp>

#include <cstdio>

using namespace widthwise::sim;

namespace {

// Minutes. A customer looks around, queues at the till for at most ten, pays, and leaves.
Process customer(Simulation &sim, Facility &till, Stat &lost) {
    co_await wait(uniform(sim.random(), 2.0, 15.0));
    const auto which = co_await any_of(till.seize(), wait(10.0));
    lost(which == 1 ? 1.0 : 0.0);
    if (which == 1)
        co_return;
    co_await wait(exponential(sim.random(), 3.0));
    till.release();
}

Process door(Simulation &sim, Facility &till, Stat &lost) {
    for (;;) {
        co_await wait(exponential(sim.random(), 3.2));
        sim.start(customer(sim, till, lost), "customer");
    }
}

struct Day {
    double lost;
    std::string report;
};

Day day(std::uint64_t seed) {
    Simulation sim(Options{.seed = seed});
    Facility till(sim, "till");
    Stat lost;
    sim.start(door(sim, till, lost), "door");
    sim.run_until(10 * 60.0);
    return {lost.mean(), sim.report()};
}

} // namespace

int main() {
    std::printf("One day:\n%s", day(1).report.c_str());
    const Interval share = estimate(Plan{.count = 100, .seed = 1}, [](const Replication &replication) {
        return day(replication.seed).lost;
    });
    std::printf("Customers who lose patience: %.2f %% +- %.2f (95 %%, 100 days)\n", 100 * share.mean,
                100 * share.half);
}
