// Customers that give up, are preempted, or find the server broken; and machines that wait for their
// repair.
#include "model.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"

namespace widthwise::sim::models {
namespace {

Process impatient(Simulation &sim, Facility &server, Stat &lost) {
    const auto which = co_await any_of(server.seize(), wait(exponential(sim.random(), 2.0)));
    lost(which == 1 ? 1.0 : 0.0);
    if (which == 1)
        co_return;
    co_await wait(exponential(sim.random(), 1.0));
    server.release();
}

Process impatient_arrivals(Simulation &sim, Facility &server, Stat &lost, double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0));
        sim.start(impatient(sim, server, lost));
    }
}

Process ranked(Simulation &sim, Facility &server, std::int16_t rank, Stat &sojourns) {
    const double arrived = sim.now();
    co_await server.preempt(rank);
    co_await wait(exponential(sim.random(), 1.0));
    server.release();
    sojourns(sim.now() - arrived);
}

Process ranked_arrivals(Simulation &sim, Facility &server, Stat &low, Stat &high, double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0 / 0.7));
        const bool important = bernoulli(sim.random(), 3.0 / 7.0);
        sim.start(ranked(sim, server, important ? 1 : 0, important ? high : low));
    }
}

Process client(Simulation &sim, Facility &server, Stat &sojourns) {
    const double arrived = sim.now();
    co_await server.seize();
    co_await wait(exponential(sim.random(), 1.0));
    server.release();
    sojourns(sim.now() - arrived);
}

Process client_arrivals(Simulation &sim, Facility &server, Stat &sojourns, double count, bool &over) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 2.0));
        sim.start(client(sim, server, sojourns));
    }
    over = true;
}

Process failures(Simulation &sim, Facility &server, const bool &over) {
    while (!over) {
        co_await wait(exponential(sim.random(), 10.0));
        server.break_down();
        co_await wait(exponential(sim.random(), 2.0));
        server.repair();
    }
}

Process machine(Simulation &sim, Facility &mechanic, Queue &workshop, TStat &working) {
    for (;;) {
        co_await wait(exponential(sim.random(), 10.0));
        working.add(sim.now(), -1.0);
        co_await mechanic.seize();
        co_await wait(exponential(sim.random(), 2.0));
        mechanic.release();
        workshop.wake();
        working.add(sim.now(), 1.0);
    }
}

/// Writes down every repair: a passive process that is woken from a queue, and sometimes interrupted.
Process clerk(Simulation &sim, Queue &workshop, double &written) {
    for (;;) {
        bool tired = false;
        try {
            co_await workshop.wait();
            written += 1.0;
        } catch (const Interrupted &) {
            tired = true; // a coroutine cannot wait within a handler
        }
        if (tired)
            co_await wait(0.5);
        sim.trace(written);
    }
}

Process bell(Simulation &, ProcessRef clerk) {
    for (;;) {
        co_await wait(40.0);
        if (clerk.place() == Place::Waiting)
            clerk.interrupt();
    }
}

} // namespace

/// Share of customers who give up: M/M/1 with exponential patience (Erlang A with one server).
double impatience(Simulation &sim, double customers) {
    Facility server(sim, "server");
    Stat lost;
    sim.start(impatient_arrivals(sim, server, lost, customers), "arrivals");
    sim.run();
    return lost.mean();
}

/// Mean time in the system of the unimportant, whom the important push aside.
double preemption(Simulation &sim, double customers) {
    Facility server(sim, "server");
    Stat low;
    Stat high;
    sim.start(ranked_arrivals(sim, server, low, high, customers), "arrivals");
    sim.run_until(0.1 * customers / 0.7);
    low.clear();
    sim.run();
    return low.mean();
}

/// Mean time in the system when the server breaks at random, in use or not, and service goes on after the
/// repair.
double breakdowns(Simulation &sim, double customers) {
    Facility server(sim, "server");
    Stat sojourns;
    bool over = false;
    sim.start(client_arrivals(sim, server, sojourns, customers, over), "arrivals");
    sim.start(failures(sim, server, over), "failures");
    sim.run_until(0.1 * customers * 2.0);
    sojourns.clear();
    sim.run();
    return sojourns.mean();
}

/// Mean number of five machines that work, with one mechanic.
double repair(Simulation &sim, double time) {
    Facility mechanic(sim, "mechanic");
    Queue workshop(sim, "workshop");
    TStat working(sim.now(), 5.0);
    double written = 0.0;
    for (int i = 0; i < 5; ++i)
        sim.start(machine(sim, mechanic, workshop, working), "machine");
    const ProcessRef writer = sim.start(clerk(sim, workshop, written), "clerk");
    sim.start(bell(sim, writer), "bell");
    sim.run_until(0.1 * time);
    working.clear(sim.now());
    sim.run_until(time);
    return working.mean(sim.now());
}

} // namespace widthwise::sim::models
