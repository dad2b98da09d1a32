// Processes that wait for each other.
#include "model.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"

#include <array>
#include <memory>

namespace widthwise::sim::models {
namespace {

Process philosopher(Simulation &sim, Semaphore &room, Facility &left, Facility &right, TStat &eating) {
    for (;;) {
        co_await wait(exponential(sim.random(), 2.0));
        co_await room.acquire();
        co_await all_of(left.seize(), right.seize());
        eating.add(sim.now(), 1.0);
        co_await wait(exponential(sim.random(), 1.0));
        eating.add(sim.now(), -1.0);
        left.release();
        right.release();
        room.release();
    }
}

Process worker(Simulation &sim, Barrier &barrier, double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0));
        co_await barrier.arrive();
    }
}

Task<double> leg(Simulation &sim) {
    const double began = sim.now();
    co_await wait(uniform(sim.random(), 0.5, 1.5));
    co_return sim.now() - began;
}

Process runner(Simulation &sim, double &baton, double mine, double &total) {
    co_await wait_until([&baton, mine] { return baton == mine; });
    total += co_await leg(sim);
    baton += 1.0;
}

Process race(Simulation &sim, double count, double &total) {
    for (double i = 0; i < count; i += 1.0) {
        double baton = 0.0;
        std::array<ProcessRef, 4> team;
        for (std::size_t k = team.size(); k-- > 0;)
            team[k] = sim.start(runner(sim, baton, static_cast<double>(k), total), "runner");
        for (const ProcessRef member : team)
            co_await join(member);
    }
}

} // namespace

/// Mean number eating at a table of five, of whom at most four may reach for forks.
double philosophers(Simulation &sim, double time) {
    constexpr std::size_t seats = 5;
    std::array<std::unique_ptr<Facility>, seats> forks;
    for (auto &fork : forks)
        fork = std::make_unique<Facility>(sim, "fork");
    Semaphore room(sim, seats - 1, "room");
    TStat eating(sim.now());
    for (std::size_t i = 0; i < seats; ++i)
        sim.start(philosopher(sim, room, *forks[i], *forks[(i + 1) % seats], eating), "philosopher");
    sim.run_until(time);
    // Each fork is used by two: its utilisation is at least 2/5 of the mean number eating (it is also held
    // while its partner is waited for); no philosopher may eat without two forks.
    return eating.greatest();
}

/// Mean length of a round in which four workers wait for the slowest.
double rounds(Simulation &sim, double count) {
    Barrier barrier(sim, 4, "barrier");
    for (int i = 0; i < 4; ++i)
        sim.start(worker(sim, barrier, count), "worker");
    sim.run();
    return sim.now() / static_cast<double>(static_cast<std::int64_t>(barrier.openings()));
}

/// Mean time of a relay of four, each of whom waits until the baton comes.
double relay(Simulation &sim, double count) {
    double total = 0.0;
    sim.start(race(sim, count, total), "race");
    sim.run();
    sim.trace(total);
    return sim.now() / count;
}

} // namespace widthwise::sim::models
