// Networks of queues.
#include "model.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/facility.hpp"

#include <memory>
#include <vector>

namespace widthwise::sim::models {
namespace {

// ---------------------------------------------------------------------------------------------------------------
// An open Jackson network of three stations: work comes to the first; from there it goes to the second (0.6)
// or the third; from the second back to the first (0.2) or out; from the third out.

struct Stations {
    Facility first, second, third;
    explicit Stations(Simulation &sim) : first(sim, "first"), second(sim, "second"), third(sim, "third") {}
};

Task<> serve(Simulation &sim, Facility &station, double mean) {
    co_await station.seize();
    co_await wait(exponential(sim.random(), mean));
    station.release();
}

Process job(Simulation &sim, Stations &stations, Stat &sojourns) {
    const double arrived = sim.now();
    for (;;) {
        co_await serve(sim, stations.first, 0.7);
        if (!bernoulli(sim.random(), 0.6)) {
            co_await serve(sim, stations.third, 1.5);
            break;
        }
        co_await serve(sim, stations.second, 1.0);
        if (!bernoulli(sim.random(), 0.2))
            break;
    }
    sojourns(sim.now() - arrived);
}

Process jobs(Simulation &sim, Stations &stations, Stat &sojourns, double count) {
    for (double i = 0; i < count; i += 1.0) {
        co_await wait(exponential(sim.random(), 1.0));
        sim.start(job(sim, stations, sojourns));
    }
}

// ---------------------------------------------------------------------------------------------------------------
// A packet network: a torus of routers, each with a queue for every link to a neighbour, in which packets are
// stored and forwarded along shortest ways, first along one axis, then along the other. Sizes are drawn anew
// on each link (Kleinrock's independence assumption), so that each link is an M/M/1 queue.

constexpr std::size_t side = 8;
constexpr std::size_t directions = 4;

struct Torus {
    std::vector<std::unique_ptr<Facility>> links;
    Stat delays;
    explicit Torus(Simulation &sim) {
        for (std::size_t i = 0; i < side * side * directions; ++i)
            links.push_back(std::make_unique<Facility>(sim, "link"));
    }
    Facility &link(std::size_t row, std::size_t column, std::size_t direction) {
        return *links[(row * side + column) * directions + direction];
    }
};

/// The next step towards `to` on a ring: 1, side - 1 (back), or 0 (there). Half way round, a coin decides:
/// then each direction has an equal share of the load.
std::size_t step(std::size_t from, std::size_t to, bool coin) {
    const std::size_t distance = (to + side - from) % side;
    if (distance == 0)
        return 0;
    if (2 * distance == side)
        return coin ? 1 : side - 1;
    return 2 * distance < side ? 1 : side - 1;
}

Process packet(Simulation &sim, Torus &torus, std::size_t from, std::size_t to) {
    const double sent = sim.now();
    std::size_t row = from / side;
    std::size_t column = from % side;
    const std::size_t target_row = to / side;
    const std::size_t target_column = to % side;
    const bool coin = bernoulli(sim.random(), 0.5);
    while (row != target_row || column != target_column) {
        const bool along_row = column != target_column;
        const std::size_t move = along_row ? step(column, target_column, coin) : step(row, target_row, coin);
        const std::size_t direction = (along_row ? 0u : 2u) + (move == 1 ? 0u : 1u);
        Facility &link = torus.link(row, column, direction);
        co_await link.seize();
        co_await wait(exponential(sim.random(), 1.0));
        link.release();
        (along_row ? column : row) = ((along_row ? column : row) + move) % side;
    }
    torus.delays(sim.now() - sent);
}

Process source(Simulation &sim, Torus &torus, std::size_t node, double interval) {
    for (;;) {
        co_await wait(exponential(sim.random(), interval));
        // Anywhere else, each equally often.
        const std::size_t offset = 1 + sim.random().below(side * side - 1);
        sim.start(packet(sim, torus, node, (node + offset) % (side * side)));
    }
}

} // namespace

/// Mean time in the network.
double jackson(Simulation &sim, double customers) {
    Stations stations(sim);
    Stat sojourns;
    sim.start(jobs(sim, stations, sojourns, customers), "jobs");
    sim.run_until(0.1 * customers);
    sojourns.clear();
    sim.run();
    return sojourns.mean();
}

/// Mean delay of packets, with every link used half of the time.
double packets(Simulation &sim, double time) {
    Torus torus(sim);
    // Mean way: 2 per axis over all targets but the own node: 4 * 64 / 63 links. Each node sends at rate r;
    // there are four links for each node, so each link's load is r * (4 * 64 / 63) / 4 = 64 r / 63, and it is
    // to be 1/2.
    const double nodes = static_cast<double>(side * side);
    const double rate = 0.5 * (nodes - 1.0) / nodes;
    for (std::size_t node = 0; node < side * side; ++node)
        sim.start(source(sim, torus, node, 1.0 / rate), "source");
    sim.run_until(0.1 * time);
    torus.delays.clear();
    sim.run_until(time);
    return torus.delays.mean();
}

} // namespace widthwise::sim::models
