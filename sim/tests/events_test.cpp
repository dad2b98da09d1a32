#include "check.hpp"

#include "widthwise/sim/events.hpp"

#include <limits>
#include <memory>
#include <vector>

using namespace widthwise::sim;

TEST("an event is moved, cancelled, and schedules itself again") {
    Simulation sim;
    std::vector<double> times;
    Event *self = nullptr;
    Event event(sim, [&](Simulation &s) {
        times.push_back(s.now());
        if (times.size() < 3)
            self->after(1.5);
    });
    self = &event;
    CHECK(!event.pending());
    event.at(5.0);
    event.at(2.0); // instead
    CHECK(event.pending());
    sim.run();
    CHECK(times == (std::vector{2.0, 3.5, 5.0}));
    CHECK(!event.pending());
    event.after(1.0);
    event.cancel();
    event.cancel();
    sim.run();
    CHECK_EQUAL(times.size(), 3u);
    CHECK_THROWS(event.at(1.0), TimeBackwards);
}

TEST("an event and a sampler keep their time where another is refused") {
    Simulation sim(Options{.start = 1.0});
    std::vector<double> times;
    Event event(sim, [&](Simulation &s) { times.push_back(s.now()); });
    event.at(2.0);
    CHECK_THROWS(event.at(0.5), TimeBackwards);
    CHECK_THROWS(event.at(std::numeric_limits<double>::quiet_NaN()), BadTime);
    CHECK_THROWS(event.after(-1.0), TimeBackwards);
    CHECK(event.pending());
    std::vector<double> samples;
    Sampler sampler(sim, 1.0, [&](Simulation &s) { samples.push_back(s.now()); });
    sampler.start(0.5);
    CHECK_THROWS(sampler.start(std::numeric_limits<double>::infinity()), BadTime);
    sim.run_until(3.0);
    CHECK(times == (std::vector{2.0}));
    CHECK(samples == (std::vector{1.5, 2.5}));
}

TEST("a sampler's times do not drift, and end when it is stopped or gone") {
    Simulation sim;
    double last = 0.0;
    std::size_t count = 0;
    auto sampler = std::make_unique<Sampler>(sim, 0.1, [&](Simulation &s) {
        last = s.now();
        ++count;
    });
    sampler->start(0.5);
    sim.run_until(0.4);
    CHECK_EQUAL(count, 0u);
    sim.run_until(10000.45);
    CHECK_EQUAL(count, 100000u);
    CHECK_EQUAL(last, 0.5 + 99999 * 0.1);
    sampler->stop();
    CHECK(!sampler->running());
    sim.run_until(10001.0);
    CHECK_EQUAL(count, 100000u);
    sampler->start();
    sampler.reset();
    sim.run();
    CHECK_EQUAL(count, 100000u);
    Sampler once(sim, 1.0, [&](Simulation &) { once.stop(); });
    once.start();
    sim.run();
    CHECK(!once.running());
    CHECK_THROWS(Sampler(sim, 0.0, [](Simulation &) {}), BadRequest);
}
