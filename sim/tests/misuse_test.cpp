// What a model does wrong without meaning to: each is an error that names what it was done to, and when.
#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/events.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/store.hpp"

#include <cmath>
#include <deque>
#include <optional>
#include <string>

using namespace widthwise::sim;
using check::message;
using event_trace::everywhere_with_seed_42;

namespace {

bool holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

Process waits(Simulation &, double time) { co_await wait(time); }

Process seizes_all(Simulation &, std::deque<Facility> &all, bool gives_back) {
    for (Facility &each : all)
        co_await each.seize();
    co_await wait(1.0);
    for (Facility &each : all)
        if (gives_back)
            each.release();
}

} // namespace

TEST("a process may hold any number of facilities") {
    everywhere_with_seed_42([](const Options &options) {
        for (const std::size_t count : {255u, 256u, 257u, 600u}) {
            Simulation sim(options);
            std::deque<Facility> all;
            for (std::size_t i = 0; i < count; ++i)
                all.emplace_back(sim, std::to_string(i));
            sim.start(seizes_all(sim, all, true), "hoarder");
            sim.run();
            sim.start(seizes_all(sim, all, false), "forgetful");
            CHECK_EQUAL(message<EndedWhileHolding>(sim),
                        "a process ended while it held facility \"0\" and " + std::to_string(count - 1) +
                            " more: process \"forgetful\" (2) at time 2, seed 42");
            for (const Facility &each : all)
                CHECK(!each.busy());
        }
    });
}

namespace {

template <class Make> Process awaits_twice(Simulation &, Make make) {
    auto once = make();
    co_await once;
    co_await wait(1.0);
    co_await once;
}

template <class Make> std::string twice(const Options &options, Make make) {
    Simulation sim(options);
    sim.start(awaits_twice(sim, make), "clerk");
    return message<WrongState>(sim);
}

} // namespace

TEST("what has been awaited is not awaited again") {
    everywhere_with_seed_42([](const Options &options) {
        CHECK_EQUAL(twice(options, [] { return wait(2.0); }),
                    std::string("a wait for time was awaited a second time; write wait(...) where it is "
                                "awaited: process \"clerk\" (1) at time 3, seed 42"));
        CHECK_EQUAL(twice(options, [] { return wait(0.0); }),
                    std::string("a wait for time was awaited a second time; write wait(...) where it is "
                                "awaited: process \"clerk\" (1) at time 1, seed 42"));
        CHECK_EQUAL(twice(options, [] { return any_of(wait(2.0)); }),
                    std::string("a wait was awaited a second time; make a new one where it is awaited: "
                                "process \"clerk\" (1) at time 3, seed 42"));
    });
}

TEST("what has been awaited at a resource is not awaited again, and the resource is named") {
    everywhere_with_seed_42([](const Options &options) {
        const auto error = [&](auto make) {
            Simulation sim(options);
            const auto made = make(sim);
            const auto clerk = [](Simulation &, decltype(made) resource) -> Process {
                auto once = resource->ask();
                co_await once;
                co_await wait(1.0);
                co_await once;
            };
            sim.start(clerk(sim, made), "clerk");
            return message<WrongState>(sim);
        };
        struct Till {
            Facility facility;
            explicit Till(Simulation &sim) : facility(sim, "till") {}
            auto ask() { return facility.seize(); }
        };
        struct Shelf {
            Store store;
            explicit Shelf(Simulation &sim) : store(sim, 3, "shelf") {}
            auto ask() { return store.enter(); }
        };
        struct Pass {
            Semaphore semaphore;
            explicit Pass(Simulation &sim) : semaphore(sim, 3, "pass") {}
            auto ask() { return semaphore.acquire(); }
        };
        struct Gate {
            Barrier barrier;
            explicit Gate(Simulation &sim) : barrier(sim, 1, "gate") {}
            auto ask() { return barrier.arrive(); }
        };
        const std::string rest =
            " was awaited a second time; make a new one where it is awaited: process \"clerk\" (1) at "
            "time 1, seed 42";
        // The simulation goes after what is made in it.
        CHECK_EQUAL(error([](Simulation &sim) { return std::make_shared<Shelf>(sim); }),
                    "the wait for store \"shelf\"" + rest);
        CHECK_EQUAL(error([](Simulation &sim) { return std::make_shared<Pass>(sim); }),
                    "the wait for semaphore \"pass\"" + rest);
        CHECK_EQUAL(error([](Simulation &sim) { return std::make_shared<Gate>(sim); }),
                    "the wait for barrier \"gate\"" + rest);
        CHECK_EQUAL(error([](Simulation &sim) { return std::make_shared<Till>(sim); }),
                    "the wait for facility \"till\"" + rest);
    });
}

TEST("what has been awaited is no member of a group either, and a task is awaited once") {
    everywhere_with_seed_42([](const Options &options) {
        const auto grouped = [](Simulation &, Store &store) -> Process {
            auto once = store.enter();
            co_await once;
            co_await any_of(once, wait(1.0));
        };
        Simulation sim(options);
        Store shelf(sim, 3, "shelf");
        sim.start(grouped(sim, shelf), "clerk");
        CHECK(holds(message<WrongState>(sim), "the wait for store \"shelf\" was awaited a second time"));
        struct Parts {
            static Task<int> part(Simulation &) { co_return 1; }
        };
        const auto again = [](Simulation &own) -> Process {
            Task<int> part = Parts::part(own);
            co_await std::move(part);
            co_await std::move(part);
        };
        sim.start(again(sim), "clerk");
        CHECK(holds(message<WrongState>(sim), "a task was awaited a second time"));
    });
}

TEST("a process cannot wait at another simulation's resource") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation there(options);
        Facility till(there, "till");
        Store shelf(there, 1, "shelf");
        Queue queue(there, "queue");
        Semaphore pass(there, 1, "pass");
        Barrier gate(there, 1, "gate");
        Simulation here(options);
        const auto foreign = [](Simulation &, auto ask) -> Process {
            co_await wait(1.0);
            co_await ask();
        };
        const auto error = [&](auto ask) {
            here.start(foreign(here, ask), "foreign");
            return message<WrongState>(here);
        };
        const std::string rest = " was asked by a process of another simulation than the one it was made "
                                 "in: process \"foreign\" ";
        CHECK_EQUAL(error([&] { return till.seize(); }),
                    "facility \"till\"" + rest + "(1) at time 1, seed 42");
        CHECK_EQUAL(error([&] { return till.preempt(1); }),
                    "facility \"till\"" + rest + "(2) at time 2, seed 42");
        CHECK_EQUAL(error([&] { return shelf.enter(); }),
                    "store \"shelf\"" + rest + "(3) at time 3, seed 42");
        CHECK_EQUAL(error([&] { return queue.wait(); }), "queue \"queue\"" + rest + "(4) at time 4, seed 42");
        CHECK_EQUAL(error([&] { return pass.acquire(); }),
                    "semaphore \"pass\"" + rest + "(5) at time 5, seed 42");
        CHECK_EQUAL(error([&] { return gate.arrive(); }),
                    "barrier \"gate\"" + rest + "(6) at time 6, seed 42");
        const ProcessRef other = there.start(waits(there, 1.0));
        CHECK(holds(error([&] { return join(other); }), "the end of another simulation's process 1"));
        other.cancel();
        CHECK(!till.busy());
        CHECK_EQUAL(shelf.used(), 0u);
    });
}

TEST("a store has room for something") {
    Simulation sim(Options{.seed = 42});
    try {
        const Store nothing(sim, 0, "shelf");
        CHECK(!"a store without room was made");
    } catch (const BadRequest &error) {
        CHECK_EQUAL(std::string(error.what()),
                    "store \"shelf\" needs a capacity of at least 1: no process at time 0, seed 42");
    }
    CHECK_EQUAL(sim.report(), std::string());
}

TEST("NaN out of a model is refused where it decides something") {
    everywhere_with_seed_42([](const Options &options) {
        const double nan = std::nan("");
        Simulation sim(options);
        const auto patient = [](Simulation &, double time) -> Process { co_await any_of(wait(time)); };
        sim.start(patient(sim, nan), "patient");
        CHECK(holds(message<BadTime>(sim), "process \"patient\" (1) at time 0, seed 42"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
    Simulation sim(Options{.seed = 42});
    Continuous ball(sim, Method::rke, [](double, auto, auto rate) { rate[0] = -1.0; }, {2.0});
    ball.when([](double, auto) { return 1.0; }, Crossing::down, [](Simulation &) {});
    ball.when([](double, auto y) { return y[0] > 1.0 ? y[0] : std::nan(""); }, Crossing::down,
              [](Simulation &) {});
    std::string error;
    try {
        sim.run_until(5.0);
    } catch (const BadState &bad) {
        error = bad.what();
        CHECK(bad.where().time >= 1.0 && bad.where().time <= 5.0);
    }
    CHECK(holds(error, "guard 1 of when() is NaN: no process at time "));
}

TEST("NaN at the input of a block is refused") {
    Simulation sim(Options{.seed = 42});
    Diagram d(sim);
    const Signal x = d.integrator(1.0);
    d.connect(x, d.constant(-1.0));
    const Signal root = d.function([](double v) { return v >= 0.0 ? v : std::nan(""); }, x);
    (void)d.limit(root, 0.0, 10.0);
    d.start();
    std::string error;
    try {
        sim.run_until(3.0);
    } catch (const BadState &bad) {
        error = bad.what();
        CHECK(bad.where().time >= 1.0 && bad.where().time <= 3.0);
    }
    CHECK(holds(error, "the function (2), which the block (3) takes in, is NaN: no process at time "));
}

// ---------------------------------------------------------------------------------------------------------------

namespace {

Process spins(Simulation &, double from) {
    co_await wait(from);
    for (;;)
        co_await wait(0.0);
}

Process turns(Simulation &, std::uint64_t &count, std::uint64_t most) {
    for (count = 0; count < most; ++count)
        co_await wait(0.0);
}

struct Echo {
    Simulation *sim;
    void operator()() { sim->after(0.0, *this); }
};

} // namespace

TEST("a loop of turns at one time is stopped and named") {
    everywhere_with_seed_42([](Options options) {
        options.most_at_once = 1600;
        for (const Listing listing : {Listing::Automatic, Listing::Calendar, Listing::Ladder}) {
            options.listing = listing;
            Simulation sim(options);
            sim.start(waits(sim, 10.0), "late");
            sim.start(spins(sim, 2.0), "spinner");
            const std::string error = message<SameTimeLoop>(sim);
            CHECK(holds(error, "at least "));
            CHECK(holds(error, " events have happened at one time, and the next is a turn of a process; if "
                               "this is no loop, set Options::most_at_once: process \"spinner\" (2) at time "
                               "2, seed 42"));
            CHECK(sim.events() >= 1600 && sim.events() <= 1900);
            // After the error a second run() may have as many again.
            const auto before = sim.events();
            CHECK_EQUAL(message<SameTimeLoop>(sim).empty(), false);
            CHECK(sim.events() - before >= 1600 && sim.events() - before <= 1900);
        }
    });
}

TEST("a loop of calls at one time is stopped and named") {
    Simulation sim(Options{.seed = 42, .most_at_once = 1600});
    sim.at(3.0, Echo{&sim});
    CHECK(holds(message<SameTimeLoop>(sim), "Echo (event "));
    Simulation other(Options{.seed = 42, .most_at_once = 1600});
    Event bell(
        other, [&](Simulation &) { bell.after(0.0); }, 0, "bell");
    bell.at(3.0);
    const std::string error = message<SameTimeLoop>(other);
    CHECK(holds(error, "the next is the call of \"bell\" (event "));
    CHECK(holds(error, ": no process at time 3, seed 42"));
    // Timers of groups, too.
    Simulation third(Options{.seed = 42, .most_at_once = 1600});
    const auto groups = [](Simulation &) -> Process {
        for (;;)
            co_await any_of(wait(0.0), wait(1.0));
    };
    third.start(groups(third), "waiter");
    CHECK(holds(message<SameTimeLoop>(third), "process \"waiter\" (1) at time 0"));
}

TEST("many events are no loop while time goes on, or there are not too many at once") {
    everywhere_with_seed_42([](Options options) {
        options.most_at_once = 1600;
        Simulation sim(options);
        std::uint64_t count = 0;
        for (int i = 0; i < 20; ++i)
            sim.start(turns(sim, count, 1500), {}, i);
        sim.run();
        CHECK_EQUAL(count, 1500u);
        CHECK_EQUAL(sim.now(), 19.0);
    });
}

TEST("ten million events at one time are stopped unless something else is asked for") {
    Simulation sim;
    sim.start(spins(sim, 2.0), "spinner");
    CHECK(holds(message<SameTimeLoop>(sim), "process \"spinner\" (1) at time 2"));
    CHECK(sim.events() >= 10'000'000 && sim.events() <= 11'300'000);
    CHECK_THROWS(Simulation(Options{.most_at_once = 0}), BadRequest);
    Simulation patient(Options{.most_at_once = 100'000'000});
    std::uint64_t count = 0;
    patient.start(turns(patient, count, 12'000'000));
    patient.run();
    CHECK_EQUAL(count, 12'000'000u);
}

// ---------------------------------------------------------------------------------------------------------------

namespace {

struct Chain {
    static constexpr int million = 1'000'000;

    /// `left` tasks deep, with something to be destroyed at each depth.
    static Task<int> link(Simulation &sim, int left, double pause, int &alive) {
        struct Counted {
            int &count;
            explicit Counted(int &c) : count(c) { ++count; }
            ~Counted() { --count; }
        };
        const Counted counted(alive);
        int below = 0;
        if (left > 1) {
            below = co_await link(sim, left - 1, pause, alive);
        } else if (pause > 0.0) {
            co_await wait(pause);
        }
        co_return below + 1;
    }

    static Process whole(Simulation &sim, int links, double pause, int &alive, int &result) {
        for (int i = 0; i < 2; ++i)
            result += co_await link(sim, links, pause, alive);
        co_await wait(1.0);
    }

    static Process forgiving(Simulation &sim, int links, int &alive, int &result) {
        try {
            result = co_await link(sim, links, 5.0, alive);
        } catch (const Interrupted &) {
            result = -1;
        }
    }
};

} // namespace

TEST("a chain of a million tasks needs no more stack than a short one") {
    everywhere_with_seed_42([](const Options &options) {
        for (const double pause : {0.0, 1.0}) {
            Simulation sim(options);
            int alive = 0;
            int result = 0;
            sim.start(Chain::whole(sim, Chain::million, pause, alive, result), "chain");
            sim.run();
            CHECK_EQUAL(result, 2 * Chain::million);
            CHECK_EQUAL(alive, 0);
            CHECK_EQUAL(sim.now(), 2.0 * pause + 1.0);
        }
    });
}

TEST("a chain of a million tasks is cancelled and destroyed, the innermost first") {
    for (const bool cancelled : {true, false}) {
        int alive = 0;
        int result = 0;
        {
            Simulation sim;
            const ProcessRef chain =
                sim.start(Chain::whole(sim, Chain::million, 5.0, alive, result), "chain");
            sim.run_until(1.0);
            CHECK_EQUAL(alive, Chain::million);
            if (cancelled)
                chain.cancel();
        }
        CHECK_EQUAL(alive, 0);
        CHECK_EQUAL(result, 0);
    }
}

TEST("an interrupt goes through a long chain of tasks, and so does the end of its process") {
    everywhere_with_seed_42([](const Options &options) {
        constexpr int links = 20'000;
        int alive = 0;
        int result = 0;
        Simulation sim(options);
        const ProcessRef chain = sim.start(Chain::forgiving(sim, links, alive, result), "chain");
        sim.run_until(1.0);
        CHECK_EQUAL(alive, links);
        chain.interrupt();
        sim.run();
        CHECK_EQUAL(alive, 0);
        CHECK_EQUAL(result, -1);
        const ProcessRef other = sim.start(Chain::forgiving(sim, links, alive, result), "chain");
        sim.run_until(2.0);
        other.cancel();
        sim.run();
        CHECK_EQUAL(alive, 0);
    });
}

TEST("a chain of tasks is one event, and other events keep their order") {
    everywhere_with_seed_42([](Options options) {
        options.trace = true;
        std::uint64_t hashes[2];
        int k = 0;
        for (const int links : {2, 1000}) {
            Simulation sim(options);
            int alive = 0;
            int result = 0;
            event_trace::EventTrace trace(sim);
            sim.start(Chain::whole(sim, links, 1.0, alive, result));
            sim.start(event_trace::say(sim, trace, "a", 1.0));
            CHECK(sim.step());
            CHECK_EQUAL(alive, links);
            sim.run();
            hashes[k++] = sim.trace_hash();
        }
        CHECK_EQUAL(hashes[0], hashes[1]);
    });
}

TEST("a resource that outlives its simulation is named when it is used") {
    std::optional<Simulation> sim(std::in_place);
    Facility till(*sim, "till");
    Store store(*sim, 3, "shelf");
    Queue queue(*sim, "line");
    Semaphore semaphore(*sim, 1, "licence");
    sim.reset();
    CHECK_THROWS(till.release(), WrongState);
    CHECK_THROWS(till.break_down(), WrongState);
    CHECK_THROWS(store.clear_statistics(), WrongState);
    CHECK_THROWS(till.break_down(), WrongState); // the first one changed nothing
    CHECK_THROWS(till.repair(), WrongState);
    CHECK_THROWS(queue.wake(), WrongState);
    CHECK_THROWS(queue.wake_all(), WrongState);
    CHECK_THROWS(semaphore.release(), WrongState);
    CHECK_EQUAL(semaphore.count(), 1u);
    std::string error;
    try {
        (void)store.report();
    } catch (const WrongState &wrong) {
        error = wrong.what();
    }
    CHECK(holds(error, "store \"shelf\" was used after its simulation had been destroyed"));
    CHECK_THROWS(static_cast<void>(till.utilisation()), WrongState);
}
