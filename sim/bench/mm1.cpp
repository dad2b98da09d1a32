// M/M/1 at 0.9 with a million customers, written as a user would write it. Prints seconds and the mean time
// in the system; bench/mm1_simpy.py is the same model.
#include "timing.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/facility.hpp"

#include <cstdlib>

using namespace widthwise::sim;

namespace {

Process customer(Simulation &sim, Facility &server, Stat &sojourns) {
    const double arrived = sim.now();
    co_await server.seize();
    co_await wait(exponential(sim.random(), 0.9));
    server.release();
    sojourns(sim.now() - arrived);
}

Process arrivals(Simulation &sim, Facility &server, Stat &sojourns, int count) {
    for (int i = 0; i < count; ++i) {
        co_await wait(exponential(sim.random(), 1.0));
        sim.start(customer(sim, server, sojourns));
    }
}

} // namespace

int main(int count, char **arguments) {
    const int customers = count > 1 ? std::atoi(arguments[1]) : 1000000;
    const double began = bench::seconds();
    Simulation sim;
    Facility server(sim, "server");
    Stat sojourns;
    sim.start(arrivals(sim, server, sojourns, customers));
    sim.run();
    std::printf("%.4f s  mean %.4f  %llu events\n", bench::seconds() - began, sojourns.mean(),
                static_cast<unsigned long long>(sim.events()));
}
