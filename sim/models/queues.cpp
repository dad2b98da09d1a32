// Customers come at random, wait for a server, are served, and go.
#include "model.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/store.hpp"

namespace widthwise::sim::models {
namespace {

using Service = double (*)(Random &);

Process customer(Simulation &sim, Facility &server, Service service, Stat &sojourns) {
    const double arrived = sim.now();
    co_await server.seize();
    co_await wait(service(sim.random()));
    server.release();
    sojourns(sim.now() - arrived);
}

Process arrivals(Simulation &sim, Facility &server, Service service, Stat &sojourns, double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0));
        sim.start(customer(sim, server, service, sojourns));
    }
}

/// Mean time in a system with one server, after a tenth of the customers.
double one_server(Simulation &sim, double customers, Service service) {
    Facility server(sim, "server");
    Stat sojourns;
    sim.start(arrivals(sim, server, service, sojourns, customers), "arrivals");
    sim.run_until(0.1 * customers);
    sojourns.clear();
    sim.run();
    return sojourns.mean();
}

Process caller(Simulation &sim, Store &servers, double service, bool patient, Stat &waits, Stat &lost) {
    const double arrived = sim.now();
    const bool turned_away = !patient && servers.used() == servers.capacity();
    lost(turned_away ? 1.0 : 0.0);
    if (turned_away)
        co_return;
    co_await servers.enter();
    waits(sim.now() - arrived);
    co_await wait(exponential(sim.random(), service));
    servers.leave();
}

Process calls(Simulation &sim, Store &servers, double service, bool patient, Stat &waits, Stat &lost,
              double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0));
        sim.start(caller(sim, servers, service, patient, waits, lost));
    }
}

} // namespace

double mm1(Simulation &sim, double customers) {
    return one_server(sim, customers, [](Random &random) { return exponential(random, 0.8); });
}

double md1(Simulation &sim, double customers) {
    return one_server(sim, customers, [](Random &) { return 0.8; });
}

/// Service: Erlang of two phases, mean 0.8, squared coefficient of variation 1/2.
double mg1(Simulation &sim, double customers) {
    return one_server(sim, customers, [](Random &random) { return erlang(random, 0.4, 2); });
}

/// Mean wait before service.
double mm3(Simulation &sim, double customers) {
    Store servers(sim, 3, "servers");
    Stat waits;
    Stat lost;
    sim.start(calls(sim, servers, 2.4, true, waits, lost, customers), "calls");
    sim.run_until(0.1 * customers);
    waits.clear();
    sim.run();
    return waits.mean();
}

/// Share of calls lost.
double mm3_loss(Simulation &sim, double customers) {
    Store lines(sim, 3, "lines");
    Stat waits;
    Stat lost;
    sim.start(calls(sim, lines, 2.4, false, waits, lost, customers), "calls");
    sim.run();
    return lost.mean();
}

/// Little's law: mean number in line over arrival rate times mean wait, for a run that begins and ends empty.
double little(Simulation &sim, double customers) {
    Facility server(sim, "server");
    Stat sojourns;
    sim.start(arrivals(
                  sim, server, [](Random &random) { return exponential(random, 0.9); }, sojourns, customers),
              "arrivals");
    sim.run();
    const double length = server.wait_queue().length().mean(sim.now());
    const double rate = static_cast<double>(server.wait_queue().waits().count()) / sim.now();
    return length / (rate * server.wait_queue().waits().mean());
}

} // namespace widthwise::sim::models
