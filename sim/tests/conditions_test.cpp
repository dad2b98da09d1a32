#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/store.hpp"

#include <memory>
#include <string>

using namespace widthwise::sim;
using namespace event_trace;

namespace {

Process either(Simulation &, EventTrace &trace, const int &x, const bool &stop) {
    const auto which =
        co_await any_of(wait_until([&] { return x > 3; }), wait_until([&] { return x > 3 || stop; }));
    trace("went on with " + std::to_string(which));
}

Process impatient(Simulation &, EventTrace &trace, Facility &facility) {
    try {
        co_await any_of(facility.seize(), wait(-1.0));
    } catch (const TimeBackwards &) {
        trace("refused");
    }
    co_await wait(100.0);
}

Process wants_all(Simulation &, EventTrace &trace, Facility &facility, Store &store) {
    try {
        co_await all_of(facility.seize(), store.enter(9));
    } catch (const BadRequest &) {
        trace(facility.busy() ? "kept" : "given back");
    }
}

/// Has four of the store's places.
Process holds(Simulation &, Facility &facility, double time) {
    co_await facility.seize();
    co_await wait(time);
    facility.release();
}

Process hog(Simulation &, Store &store, double time) {
    co_await store.enter(4);
    co_await wait(time);
    store.leave(4);
}

/// Waits for what `make` returns, then 10 longer.
template <class Make> Process taker(Simulation &, EventTrace &trace, Make make) {
    try {
        if constexpr (std::is_void_v<decltype(make().result())>) {
            co_await make();
            trace("all");
        } else {
            const auto which = co_await make();
            trace("first " + std::to_string(which));
        }
    } catch (const Interrupted &) {
        trace("interrupted");
    }
    co_await wait(10.0);
    trace("end");
}

} // namespace

TEST("any_of goes on with the first and withdraws from the others") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        const auto patient = [](Simulation &, EventTrace &trace, Facility &t, std::string name,
                                double patience) -> Process {
            const auto which = co_await any_of(t.seize(), wait(patience));
            trace(name + (which == 0 ? " served" : " left"));
            if (which == 0) {
                co_await wait(1.0);
                t.release();
            }
        };
        sim.start(use(sim, trace, till, "a", 4.0));
        sim.start(patient(sim, trace, till, "b", 3.0));
        sim.start(patient(sim, trace, till, "c", 5.0));
        sim.start(patient(sim, trace, till, "d", 4.0)); // its patience and the service end together
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 3:b left 4:a- 4:c served 4:d left"));
        CHECK_EQUAL(till.waiting(), 0u);
    });
}

TEST("all_of goes on when it has everything, and an interrupt gives back the part it had") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility left(sim, "left");
        Facility right(sim, "right");
        const auto both = [](Simulation &, EventTrace &trace, Facility &l, Facility &r,
                             std::string name) -> Process {
            bool interrupted = false;
            try {
                co_await all_of(l.seize(), r.seize(), wait(1.0));
            } catch (const Interrupted &) {
                interrupted = true;
            }
            trace(name + (interrupted ? " interrupted" : " has both"));
            if (interrupted)
                co_return;
            l.release();
            r.release();
        };
        sim.start(use(sim, trace, right, "a", 3.0));
        const ProcessRef first = sim.start(both(sim, trace, left, right, "first"));
        sim.start(both(sim, trace, left, right, "second"), {}, 0.5);
        sim.after(2.0, [=] { first.interrupt(); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 2:first interrupted 3:a- 3:second has both"));
        CHECK(!left.busy() && !right.busy());
    });
}

TEST("wait_until goes on after the event that made its condition true") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        int level = 0;
        const auto watcher = [](Simulation &, EventTrace &trace, int &l, int wanted) -> Process {
            co_await wait_until([&l, wanted] { return l >= wanted; });
            trace("reached " + std::to_string(wanted));
        };
        sim.start(watcher(sim, trace, level, 0));
        sim.start(watcher(sim, trace, level, 2));
        sim.start(watcher(sim, trace, level, 1));
        for (const double t : {1.0, 2.0})
            sim.after(t, [&] { ++level; });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:reached 0 1:reached 1 2:reached 2"));
    });
}

TEST("two conditions of one group may come true at once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        int x = 0;
        bool stop = false;
        sim.start(either(sim, trace, x, stop));
        sim.start(either(sim, trace, x, stop));
        sim.at(1.0, [&] { x = 5; });
        sim.at(2.0, [] {});
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("1:went on with 0 1:went on with 0"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a member of a group that cannot begin leaves nobody behind") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        Store store(sim, 3, "store");
        sim.start(use(sim, trace, till, "a", 5.0));
        sim.start(impatient(sim, trace, till));
        sim.start(use(sim, trace, till, "b", 1.0));
        sim.run_until(10.0);
        CHECK_EQUAL(trace.text(), std::string("0:a+ 0:refused 5:a- 5:b+ 6:b-"));
        CHECK_EQUAL(till.waiting(), 0u);
        sim.start(wants_all(sim, trace, till, store));
        sim.run_until(11.0);
        CHECK(trace.text().ends_with(" 10:given back"));
    });
}

TEST("all_of refuses two requests for one facility, whether it is held or not") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Facility till(sim, "till");
        Facility other(sim, "other");
        int refused = 0;
        const auto twice = [](Simulation &, Facility &t, Facility &o, int &count) -> Process {
            try {
                co_await all_of(t.seize(), wait(1.0), o.seize(), t.seize(3));
            } catch (const WrongState &error) {
                count += std::string(error.what()).find("facility \"till\" is asked for twice") == 0 ? 1 : 0;
            }
        };
        sim.start(twice(sim, till, other, refused)); // it is free
        sim.run();
        CHECK_EQUAL(refused, 1);
        sim.start(holds(sim, till, 5.0));
        sim.start(twice(sim, till, other, refused)); // it is held
        sim.run();
        CHECK_EQUAL(refused, 2);
        CHECK(!till.busy() && !other.busy());
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("all_of refuses a request in a group for a facility that another member needs") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        Facility other(sim, "other");
        const auto asks = [](Simulation &, EventTrace &trace, auto make) -> Process {
            try {
                co_await make();
                trace("has it");
            } catch (const WrongState &error) {
                const std::string text = error.what();
                trace(text.find("facility \"till\" is asked for twice") == 0 ? "refused" : text);
            }
        };
        const auto after = [&] { return all_of(till.seize(), any_of(till.seize(), other.seize())); };
        const auto before = [&] { return all_of(any_of(wait(9.0), till.seize()), till.seize()); };
        const auto deep = [&] {
            return all_of(any_of(wait(9.0), all_of(other.seize(), till.seize())),
                          all_of(wait(1.0), till.seize()));
        };
        const auto only = [&] { return all_of(any_of(till.seize(), till.seize(3)), any_of(till.seize())); };
        const auto inside = [&] { return all_of(other.seize(), all_of(till.seize(), till.seize(3))); };
        for (const bool held : {false, true}) {
            if (held)
                sim.start(holds(sim, till, 5.0));
            sim.start(asks(sim, trace, after));
            sim.start(asks(sim, trace, before));
            sim.start(asks(sim, trace, deep));
            sim.start(asks(sim, trace, only));
            sim.start(asks(sim, trace, inside));
            sim.run();
            CHECK(!till.busy() && !other.busy());
            CHECK_EQUAL(sim.alive(), 0u);
        }
        CHECK_EQUAL(trace.text(), std::string("0:refused 0:refused 0:refused 0:refused 0:refused "
                                              "0:refused 0:refused 0:refused 0:refused 0:refused"));
    });
}

TEST("groups within all_of may have a facility as an alternative more than once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility a(sim, "a");
        Facility b(sim, "b");
        Facility c(sim, "c");
        const auto two = [](Simulation &sim, EventTrace &trace, Facility &a, Facility &b,
                            Facility &c) -> Process {
            co_await all_of(any_of(a.seize(), a.seize(3), b.seize()), any_of(a.seize(), c.seize()));
            trace("has two");
            for (Facility *each : {&a, &b, &c})
                if (each->holder() == sim.current())
                    each->release();
        };
        sim.start(holds(sim, a, 9.0));
        sim.start(holds(sim, b, 5.0));
        sim.start(two(sim, trace, a, b, c));
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("5:has two"));
        CHECK_EQUAL(sim.alive(), 0u);
        CHECK_EQUAL(a.served() + b.served() + c.served(), 4u);
        CHECK_EQUAL(a.waiting(), 0u);
    });
}

TEST("a simulation may be destroyed while a group holds a part of what it waits for") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Facility left(sim, "left");
        auto right = std::make_unique<Facility>(sim, "right");
        const auto both = [](Simulation &, Facility &l, Facility &r) -> Process {
            co_await all_of(l.seize(), r.seize());
        };
        EventTrace trace(sim);
        sim.start(use(sim, trace, left, "a", 5.0));
        sim.start(both(sim, left, *right));
        sim.run_until(1.0);
        CHECK(right->busy());
        right.reset();
    });
}

TEST("a group with two requests at one store may be cancelled and interrupted") {
    everywhere([](const Options &options) {
        for (const bool cancels : {true, false}) {
            Simulation sim(options);
            EventTrace trace(sim);
            Store store(sim, 5, "store");
            sim.start(hog(sim, store, 100.0));
            const ProcessRef ref =
                sim.start(taker(sim, trace, [&] { return any_of(store.enter(5), store.enter(1)); }), {}, 1.0);
            sim.at(2.0, [&] { cancels ? ref.cancel() : ref.interrupt(); });
            sim.run_until(50.0);
            CHECK_EQUAL(trace.text(), std::string(cancels ? "" : "2:interrupted 12:end"));
            CHECK_EQUAL(store.used(), 4u);
            CHECK_EQUAL(store.waiting(), 0u);
        }
    });
}

TEST("a request that a withdrawal grants is undone") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Store store(sim, 5, "store");
        Semaphore semaphore(sim, 1, "semaphore");
        sim.start(hog(sim, store, 100.0));
        sim.start(taker(sim, trace, [&] { return any_of(store.enter(5), store.enter(1), wait(10.0)); }), {},
                  1.0);
        sim.start(
            taker(sim, trace, [&] { return any_of(store.enter(5), store.enter(1), semaphore.acquire()); }),
            {}, 30.0);
        sim.run_until(50.0);
        CHECK_EQUAL(trace.text(), std::string("11:first 2 21:end 30:first 2 40:end"));
        CHECK_EQUAL(store.used(), 4u);
        CHECK_EQUAL(store.waiting(), 0u);
    });
}

TEST("a group inside of a group gives its grant to the outer one") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Store a(sim, 4, "a");
        Store b(sim, 4, "b");
        sim.start(hog(sim, a, 1.0));
        sim.start(hog(sim, b, 2.0));
        sim.start(hog(sim, a, 20.0), {}, 20.0); // waits: three places are free
        const auto both = [&] { return any_of(all_of(a.enter(1), b.enter(1)), wait(5.0)); };
        sim.start(taker(sim, trace, both));           // has both
        sim.start(taker(sim, trace, both), {}, 21.0); // gives up, and gives b back
        sim.run_until(50.0);
        CHECK_EQUAL(trace.text(), std::string("2:first 0 12:end 26:first 1 36:end"));
        CHECK_EQUAL(a.used(), 1u); // of the first, which did not leave
        CHECK_EQUAL(b.used(), 1u);
        CHECK_EQUAL(a.waiting(), 1u);
    });
}

TEST("all_of waits for a group inside of it and for its other members") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Store a(sim, 4, "a");
        Store b(sim, 4, "b");
        sim.start(hog(sim, a, 100.0));
        sim.start(hog(sim, b, 3.0));
        const auto either = [&] { return all_of(any_of(a.enter(1), wait(1.0)), b.enter(1)); };
        sim.start(taker(sim, trace, either));
        const ProcessRef cancelled = sim.start(taker(sim, trace, either));
        sim.at(2.0, [=] { cancelled.cancel(); });
        sim.run_until(50.0);
        CHECK_EQUAL(trace.text(), std::string("3:all 13:end"));
        CHECK_EQUAL(b.used(), 1u);
        CHECK_EQUAL(a.waiting() + b.waiting(), 0u);
    });
}

TEST("a member that another member's beginning grants counts") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Barrier barrier(sim, 2, "barrier");
        Queue queue(sim, "queue");
        sim.start(taker(sim, trace, [&] { return all_of(barrier.arrive(), barrier.arrive()); }));
        sim.start(taker(sim, trace,
                        [&] {
                            return any_of(queue.wait(), wait_until([&] {
                                              queue.wake();
                                              return false;
                                          }));
                        }),
                  {}, 1.0);
        sim.run_until(50.0);
        CHECK_EQUAL(trace.text(), std::string("0:all 1:first 0 10:end 11:end"));
    });
}
