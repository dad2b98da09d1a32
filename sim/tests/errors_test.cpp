#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/store.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using namespace widthwise::sim;
using check::message;
using event_trace::everywhere_with_seed_42;

namespace {

Process waits_after_two(Simulation &, double time) {
    co_await wait(2.0);
    co_await wait(time);
}

} // namespace

TEST("a wait into the past names process, time and seed") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        sim.start(waits_after_two(sim, -0.5), "clerk");
        CHECK_EQUAL(message<TimeBackwards>(sim),
                    std::string("time would run backwards to 1.5: process \"clerk\" (1) at time 2, seed 42"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a time that is not a number, or infinite, is refused") {
    everywhere_with_seed_42([](const Options &options) {
        for (const double time : {std::nan(""), std::numeric_limits<double>::infinity()}) {
            Simulation sim(options);
            sim.start(waits_after_two(sim, time), "clerk");
            CHECK(message<BadTime>(sim).find("process \"clerk\" (1) at time 2, seed 42") !=
                  std::string::npos);
        }
    });
    Simulation sim;
    CHECK_THROWS(sim.after(std::nan(""), [] {}), BadTime);
    CHECK_THROWS(sim.after(-1.0, [] {}), TimeBackwards);
    CHECK_THROWS(sim.run_until(std::nan("")), BadTime);
    CHECK_THROWS(Simulation(Options{.start = std::nan("")}), BadTime);
}

TEST("a release without seize names the facility and the process") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        Facility till(sim, "till");
        const auto rogue = [](Simulation &, Facility &t) -> Process {
            co_await wait(1.0);
            t.release();
        };
        sim.start(rogue(sim, till), "rogue");
        CHECK_EQUAL(
            message<ReleaseWithoutSeize>(sim),
            std::string(
                "facility \"till\" was released by a process that does not hold it: process \"rogue\" (1) "
                "at time 1, seed 42"));
    });
    Simulation sim;
    Facility till(sim, "till");
    CHECK_THROWS(till.release(), ReleaseWithoutSeize); // outside of every process
    Store store(sim, 2);
    CHECK_THROWS(store.leave(), ReleaseWithoutSeize);
}

TEST("an error may be caught where it is made, and the process goes on") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        double ended = 0.0;
        const auto forgiving = [](Simulation &s, double &end) -> Process {
            bool caught = false;
            try {
                co_await wait(-1.0);
            } catch (const TimeBackwards &) {
                caught = true;
            }
            if (caught)
                co_await wait(3.0);
            end = s.now();
        };
        sim.start(forgiving(sim, ended));
        sim.run();
        CHECK_EQUAL(ended, 3.0);
    });
}

TEST("an exception that leaves a process comes out of run with the original nested") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        const auto thrower = [](Simulation &) -> Process {
            co_await wait(1.5);
            throw std::logic_error("no more cheese");
        };
        sim.start(thrower(sim), "mouse");
        sim.start(waits_after_two(sim, 7.0), "other");
        std::string nested;
        try {
            sim.run();
        } catch (const ProcessFailed &failed) {
            CHECK_EQUAL(std::string(failed.what()),
                        std::string("an exception left a process: no more cheese: process "
                                    "\"mouse\" (1) at time 1.5, seed 42"));
            CHECK_EQUAL(failed.where().process, std::string("mouse"));
            try {
                std::rethrow_if_nested(failed);
            } catch (const std::logic_error &original) {
                nested = original.what();
            }
        }
        CHECK_EQUAL(nested, std::string("no more cheese"));
        sim.run(); // the others go on
        CHECK_EQUAL(sim.now(), 9.0);
    });
}

TEST("a process that ends while it holds a facility is reported, and the facility is free again") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        Facility till(sim, "till");
        const auto forgetful = [](Simulation &, Facility &t) -> Process {
            co_await t.seize();
            co_await wait(1.0);
        };
        sim.start(forgetful(sim, till), "forgetful");
        CHECK_EQUAL(message<EndedWhileHolding>(sim),
                    std::string("a process ended while it held facility \"till\": process \"forgetful\" (1) "
                                "at time 1, seed 42"));
        CHECK(!till.busy());
    });
}

TEST("a process used after its end is named by its number") {
    Simulation sim;
    const ProcessRef ref = sim.start(waits_after_two(sim, 1.0), "brief");
    sim.run();
    CHECK_THROWS(ref.activate(), UsedAfterEnd);
    CHECK_THROWS(ref.interrupt(), UsedAfterEnd);
    CHECK_THROWS(ref.cancel(), UsedAfterEnd);
    CHECK_THROWS((void)ref.place(), UsedAfterEnd);
    CHECK_THROWS(ProcessRef().activate(), UsedAfterEnd);
    try {
        ref.activate();
    } catch (const UsedAfterEnd &error) {
        CHECK_EQUAL(std::string(error.what()),
                    "activate of process 1 after its end: no process at time 3, seed 1");
    }
    const EventRef call = sim.at(4.0, [] {});
    call.cancel();
    try {
        call.cancel();
        CHECK(false);
    } catch (const UsedAfterEnd &error) {
        CHECK(std::string(error.what())
                  .find("which is no longer scheduled: it has happened or was cancelled") !=
              std::string::npos);
    }
    // Its memory may be another's by now: that one is not taken for it.
    const ProcessRef next = sim.start(waits_after_two(sim, 1.0));
    CHECK(!ref.alive());
    CHECK(next.alive());
}

TEST("what a process cannot do in its state is refused") {
    Simulation sim;
    Facility till(sim, "till");
    const auto twice = [](Simulation &, Facility &t) -> Process {
        co_await t.seize();
        co_await t.seize();
    };
    sim.start(twice(sim, till), "twice");
    CHECK(message<WrongState>(sim).find("was seized by the process that holds it") != std::string::npos);
    const ProcessRef fresh = sim.adopt(waits_after_two(sim, 1.0), "fresh");
    CHECK_THROWS(fresh.interrupt(), WrongState); // it has not begun
    Queue queue(sim);
    const auto stays = [](Simulation &, Queue &q) -> Process { co_await q.wait(); };
    const ProcessRef waiting = sim.start(stays(sim, queue));
    sim.run();
    CHECK_THROWS(waiting.activate(), WrongState); // it waits in a queue
    const auto joins_itself = [](Simulation &s) -> Process { co_await join(s.current()); };
    sim.start(joins_itself(sim));
    CHECK(message<WrongState>(sim).find("its own end") != std::string::npos);
    const auto runs = [](Simulation &s) -> Process {
        s.run();
        co_return;
    };
    sim.start(runs(sim));
    CHECK(message<WrongState>(sim).find("from within itself") != std::string::npos);
    Store store(sim, 3, "shelf");
    const auto greedy = [](Simulation &, Store &s) -> Process { co_await s.enter(4); };
    sim.start(greedy(sim, store));
    CHECK(message<BadRequest>(sim).find("store \"shelf\" has 3 places, not 4") != std::string::npos);
    CHECK_THROWS(Barrier(sim, 0), BadRequest);
    Process given = waits_after_two(sim, 1.0);
    sim.start(std::move(given));
    CHECK_THROWS(sim.start(std::move(given)), WrongState); // it has been given away
    Simulation other;
    CHECK_THROWS(other.start(waits_after_two(sim, 1.0)), WrongState); // it is another's
}

TEST("a condition that cannot be tested is its process's failure") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        const auto waiter = [](Simulation &own) -> Process {
            co_await wait_until([&own] {
                if (own.now() == 3.0)
                    throw std::runtime_error("no such thing");
                return false;
            });
        };
        sim.start(waiter(sim), "clerk");
        sim.at(3.0, [] {});
        CHECK_EQUAL(
            message<ProcessFailed>(sim),
            std::string(
                "an exception left a process: no such thing: process \"clerk\" (1) at time 3, seed 42"));
        CHECK_EQUAL(sim.alive(), 0u);
        sim.run(); // it is not tested any more
    });
}

TEST("a facility cannot be taken from a process that waits for something other than time") {
    Simulation sim;
    Facility till(sim, "till");
    Queue queue(sim);
    const auto dawdler = [](Simulation &, Facility &t, Queue &q) -> Process {
        co_await t.seize();
        co_await q.wait();
    };
    const auto pusher = [](Simulation &, Facility &t) -> Process { co_await t.preempt(5); };
    sim.start(dawdler(sim, till, queue), "dawdler");
    sim.start(pusher(sim, till), "pusher", 1.0);
    CHECK(message<WrongState>(sim).find("waits for something other than time: process \"dawdler\"") !=
          std::string::npos);
}

TEST("processes that still wait when nothing is scheduled can be listed") {
    everywhere_with_seed_42([](const Options &options) {
        Simulation sim(options);
        Facility left(sim, "left");
        Facility right(sim, "right");
        const auto philosopher = [](Simulation &, Facility &one, Facility &other) -> Process {
            co_await one.seize();
            co_await wait(1.0);
            co_await other.seize();
            other.release();
            one.release();
        };
        sim.start(philosopher(sim, left, right), "Kant");
        sim.start(waits_after_two(sim, 1.0), "clerk");
        sim.start(philosopher(sim, right, left), "Hume");
        sim.run();
        CHECK_EQUAL(sim.alive(), 2u);
        std::string waiting_names;
        for (const ProcessRef &one : sim.processes())
            waiting_names += one.name() + (one.place() == Place::Waiting ? " waits; " : " does not; ");
        CHECK_EQUAL(waiting_names, std::string("Kant waits; Hume waits; "));
    });
}

TEST("a negative delay is refused however small it is beside the time") {
    everywhere_with_seed_42([](const Options &given) {
        Options options = given;
        options.start = 1e6;
        const auto refused = [&](auto make) {
            Simulation sim(options);
            const auto waits = [](Simulation &, decltype(make) what) -> Process { co_await what(); };
            sim.start(waits(sim, make), "clerk");
            return message<TimeBackwards>(sim);
        };
        const std::string expected =
            "time would run backwards by 9.9999999999999998e-13: process \"clerk\" (1) "
            "at time 1000000, seed 42";
        CHECK_EQUAL(refused([] { return wait(-1e-12); }), expected);
        CHECK_EQUAL(refused([] { return any_of(wait(-1e-12)); }), expected);
        Simulation sim(options);
        CHECK_THROWS(sim.after(-1e-12, [] {}), TimeBackwards);
        sim.after(-0.0, [] {});
        sim.after(1e-12, [] {});
        sim.run();
        CHECK_EQUAL(sim.events(), 2u);
    });
}
