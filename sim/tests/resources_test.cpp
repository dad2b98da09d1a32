#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/store.hpp"

#include <any>
#include <limits>
#include <memory>
#include <string>
#include <utility>

using namespace widthwise::sim;
using namespace event_trace;

namespace {

Process push(Simulation &, EventTrace &trace, Facility &facility, std::string name, std::int16_t priority,
             double time) {
    co_await facility.preempt(priority);
    trace(name + "+");
    co_await wait(time);
    facility.release();
    trace(name + "-");
}

/// Gives back what it holds when its scope is left.
struct Held {
    Facility &facility;
    ~Held() { facility.release(); }
};

Process held(Simulation &, EventTrace &trace, Facility &facility, std::string name, double time) {
    co_await facility.seize();
    const Held held{facility};
    trace(name + "+");
    co_await wait(time);
}

Process again_and_again(Simulation &, EventTrace &trace, Facility &facility, std::string name) {
    for (;;) {
        try {
            co_await facility.seize();
            co_await wait(5.0);
            facility.release();
            trace(name + "-");
            co_return;
        } catch (const Interrupted &) {
            trace(name + "!");
        }
    }
}

Process pushes_in(Simulation &, EventTrace &trace, Facility &facility, const ProcessRef &other) {
    co_await wait(1.0);
    co_await wait(4.0);
    co_await facility.preempt(5);
    trace("pushed in");
    other.interrupt();
    co_await wait(2.0);
    facility.release();
}

Process lunch(Simulation &, Facility &facility) {
    co_await wait(9.5);
    co_await wait(0.5);
    facility.break_down(true);
    co_await wait(10.0);
    facility.repair();
}

Process acquire_for(Simulation &, Semaphore &semaphore, double time) {
    co_await semaphore.acquire();
    co_await wait(time);
    semaphore.release();
}

Process enter_for(Simulation &, Store &store, double time) {
    co_await store.enter();
    co_await wait(time);
    store.leave();
}

Process both_for(Simulation &, Semaphore &semaphore, Store &store, double time) {
    co_await all_of(semaphore.acquire(), store.enter());
    co_await wait(time);
    semaphore.release();
    store.leave();
}

} // namespace

TEST("a facility serves one at a time, in order of priority and arrival") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        sim.start(use(sim, trace, till, "a", 2.0));
        sim.start(use(sim, trace, till, "b", 2.0));
        sim.start(use(sim, trace, till, "c", 2.0), {}, 1.0, 5);
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 2:a- 2:c+ 4:c- 4:b+ 6:b-"));
        CHECK_EQUAL(till.utilisation(), 1.0);
        CHECK_EQUAL(till.wait_queue().waits().count(), 3);
        CHECK_EQUAL(till.wait_queue().waits().mean(), 5.0 / 3.0);
        CHECK_EQUAL(till.served(), 3u);
    });
}

TEST("a preempted process goes on with what is left of its service") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        sim.start(push(sim, trace, till, "low", 0, 10.0));
        sim.start(push(sim, trace, till, "mid", 1, 2.0), {}, 3.0);
        sim.start(push(sim, trace, till, "high", 2, 1.0), {}, 4.0);
        sim.start(push(sim, trace, till, "low2", 0, 1.0), {}, 4.5);
        sim.run();
        CHECK_EQUAL(trace.text(),
                    std::string("0:low+ 3:mid+ 4:high+ 5:high- 6:mid- 13:low- 13:low2+ 14:low2-"));
        CHECK_EQUAL(till.preemptions(), 2u);
    });
}

TEST("a breakdown stops service, and repair lets it go on") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility machine(sim, "machine");
        sim.start(use(sim, trace, machine, "a", 5.0));
        sim.start(use(sim, trace, machine, "b", 1.0), {}, 3.5);
        sim.after(3.0, [&] { machine.break_down(); });
        sim.after(10.0, [&] { machine.repair(); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 12:a- 12:b+ 13:b-"));
        CHECK_EQUAL(machine.down().mean(14.0), 0.5);
        CHECK_EQUAL(machine.use().integral(13.0), 6.0);
    });
}

TEST("a breakdown may interrupt instead, and then the facility is no longer held") {
    Simulation sim;
    EventTrace trace(sim);
    Facility machine(sim, "machine");
    const auto careful = [](Simulation &, EventTrace &trace, Facility &m) -> Process {
        co_await m.seize();
        bool broken = false;
        try {
            co_await wait(5.0);
        } catch (const Interrupted &interrupted) {
            broken = std::any_cast<Facility::Breakdown>(interrupted.cause()).facility == "machine";
        }
        trace(broken ? "broken" : "done");
    };
    sim.start(careful(sim, trace, machine));
    sim.after(3.0, [&] { machine.break_down(true); });
    sim.run();
    CHECK_EQUAL(trace.text(), std::string("3:broken"));
    CHECK(!machine.busy());
}

TEST("a facility that breaks down takes back what was granted and not yet taken, once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        for (const char *name : {"a", "b", "c"})
            sim.start(again_and_again(sim, trace, till, name), name);
        sim.start(lunch(sim, till));
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("5:a- 10:b- 10:c! 25:c-"));
        CHECK_EQUAL(till.served(), 3u);
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a process preempted and interrupted between its grant and its turn has lost the facility, once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        ProcessRef b;
        sim.start(use(sim, trace, till, "a", 5.0));
        b = sim.start(again_and_again(sim, trace, till, "b"));
        sim.start(pushes_in(sim, trace, till, b));
        sim.start(use(sim, trace, till, "c", 1.0));
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 5:a- 5:pushed in 5:b! 7:c+ 8:c- 13:b-"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a local's destructor may release what its process holds, however that ends") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        const ProcessRef a = sim.start(held(sim, trace, till, "a", 10.0), "a");
        sim.start(held(sim, trace, till, "b", 1.0), "b");
        const ProcessRef c = sim.start(held(sim, trace, till, "c", 10.0), "c");
        sim.at(3.0, [&] { a.cancel(); });
        sim.run_until(5.0);
        c.cancel();
        CHECK(!till.busy());
        sim.start(held(sim, trace, till, "d", 10.0), "d");
        sim.run(); // to the end: the facility goes before the simulation here
        CHECK_EQUAL(trace.text(), std::string("0:a+ 3:b+ 4:c+ 5:d+"));
    });
    for (const Switching switching : available_switching()) {
        auto sim = std::make_unique<Simulation>(Options{.switching = switching});
        EventTrace trace(*sim);
        Facility till(*sim, "till");
        sim->start(held(*sim, trace, till, "a", 10.0));
        sim->run_until(1.0);
        sim.reset(); // before what it holds
    }
}

TEST("a store admits strictly in order") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Store store(sim, 10, "store");
        const auto enter = [](Simulation &, EventTrace &trace, Store &s, std::string name,
                              std::uint64_t places, double time) -> Process {
            co_await s.enter(places);
            trace(name + "+");
            co_await wait(time);
            s.leave(places);
        };
        sim.start(enter(sim, trace, store, "a", 6, 4.0));
        sim.start(enter(sim, trace, store, "b", 8, 1.0)); // must wait for a
        sim.start(enter(sim, trace, store, "c", 2, 1.0)); // would fit, but does not overtake
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 4:b+ 4:c+"));
        CHECK_EQUAL(store.used(), 0u);
        CHECK_EQUAL(store.use().greatest(), 10.0);
    });
}

TEST("a request that is given up lets those behind it into the store") {
    Simulation sim;
    EventTrace trace(sim);
    Store store(sim, 4, "store");
    const auto hopeful = [](Simulation &, EventTrace &trace, Store &s, std::uint64_t places,
                            std::string name) -> Process {
        const auto which = co_await any_of(s.enter(places), wait(3.0));
        trace(name + (which == 0 ? "+" : " gives up"));
    };
    sim.start(hopeful(sim, trace, store, 2, "a"));
    sim.start(hopeful(sim, trace, store, 3, "b"));
    sim.start(hopeful(sim, trace, store, 2, "c"), {}, 1.0);
    sim.run();
    CHECK_EQUAL(trace.text(), std::string("0:a+ 3:b gives up 3:c+"));
    CHECK_EQUAL(store.used(), 4u);
}

TEST("barriers open when all have come, semaphores count, queues are woken in order") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Barrier barrier(sim, 3);
        Semaphore semaphore(sim, 1);
        Queue queue(sim, "queue");
        const auto walker = [](Simulation &, EventTrace &trace, Barrier &b, Semaphore &s, Queue &q,
                               std::string name, double time) -> Process {
            co_await wait(time);
            co_await b.arrive();
            co_await s.acquire();
            trace(name + " acquired");
            co_await wait(1.0);
            s.release();
            co_await q.wait();
            trace(name + " woken");
        };
        for (const auto &[name, time] : {std::pair{"a", 1.0}, std::pair{"b", 3.0}, std::pair{"c", 2.0}})
            sim.start(walker(sim, trace, barrier, semaphore, queue, name, time));
        sim.after(10.0, [&] {
            CHECK_EQUAL(queue.size(), 3u);
            CHECK(queue.wake().alive());
            queue.wake_all();
            CHECK(!queue.wake());
        });
        sim.run();
        CHECK_EQUAL(trace.text(),
                    std::string("3:b acquired 4:a acquired 5:c acquired 10:b woken 10:a woken 10:c woken"));
        CHECK_EQUAL(barrier.openings(), 1u);
    });
}

TEST("what was granted to a process that is cancelled before it goes on is given back") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Semaphore semaphore(sim, 1, "semaphore");
        Store store(sim, 1, "store");
        sim.start(acquire_for(sim, semaphore, 5.0));
        sim.start(enter_for(sim, store, 5.0));
        const ProcessRef b = sim.start(acquire_for(sim, semaphore, 5.0));
        const ProcessRef c = sim.start(enter_for(sim, store, 5.0));
        const ProcessRef d = sim.start(both_for(sim, semaphore, store, 5.0));
        // After b and c have been granted, and before they go on.
        sim.at(1.0, [&](Simulation &s) {
            s.at(5.0, [&] {
                CHECK(semaphore.waiting() == 1 && store.waiting() == 1); // d alone
                b.cancel();
                c.cancel();
            });
        });
        sim.run_until(7.0);
        CHECK(!b.alive() && !c.alive() && d.alive());
        const ProcessRef e = sim.start(both_for(sim, semaphore, store, 5.0));
        sim.at(8.0, [&](Simulation &s) {
            s.at(10.0, [&] {
                CHECK(!d.alive());
                e.cancel();
            });
        });
        sim.run();
        CHECK_EQUAL(semaphore.count(), 1u);
        CHECK_EQUAL(store.used(), 0u);
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("resources may go before the processes that wait in them") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        {
            Facility till(sim, "till");
            sim.start(use(sim, trace, till, "a", 5.0));
            sim.start(use(sim, trace, till, "b", 5.0));
            sim.run_until(1.0);
        }
        CHECK_EQUAL(sim.report(), std::string());
        CHECK_EQUAL(sim.alive(), 2u);
    });
}

TEST("reports name every resource, with its figures") {
    Simulation sim;
    EventTrace trace(sim);
    Facility till(sim, "till");
    Store store(sim, 3, "shelf");
    sim.start(use(sim, trace, till, "a", 2.0));
    sim.start(use(sim, trace, till, "b", 2.0));
    sim.run_until(8.0);
    CHECK_EQUAL(
        sim.report(),
        std::string(
            "facility \"till\"  utilisation 0.5  served 2  preemptions 0  down 0\n"
            "    wait queue  mean length 0.25  longest 1  now 0  mean wait 1  longest wait 2  served 2\n"
            "store \"shelf\"  capacity 3  utilisation 0  used 0  most used 0\n"
            "    wait queue  mean length 0  longest 0  now 0  mean wait 0  longest wait 0  served 0\n"));
    sim.clear_statistics();
    CHECK_EQUAL(till.served(), 0u);
}

TEST("a store may be without a limit") {
    Simulation sim;
    Store any(sim, std::numeric_limits<std::uint64_t>::max(), "any");
    const auto enters = [](Simulation &, Store &store) -> Process { co_await store.enter(3); };
    sim.start(enters(sim, any));
    sim.run_until(1.0);
    CHECK(any.utilisation() > 0.0 && any.utilisation() < 1e-18);
    Store most(sim, std::numeric_limits<std::uint64_t>::max(), "most");
    const auto fills = [](Simulation &, Store &store) -> Process { co_await store.enter(store.capacity()); };
    sim.start(fills(sim, most));
    sim.run_until(2.0);
    CHECK_EQUAL(most.use().greatest(), 0x1p64);
    CHECK_EQUAL(most.use().level(), 0x1p64);
}

TEST("a facility is preempted from a holder that the same event has cancelled") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        Facility door(sim, "door");
        struct Released {
            Facility &facility;
            ~Released() { facility.release(); }
        };
        const auto holds = [](Simulation &, Facility &till, Facility &door) -> Process {
            co_await till.seize();
            const Released released{till};
            co_await door.seize();
        };
        const auto boss = [](Simulation &, EventTrace &trace, Facility &till, ProcessRef holder) -> Process {
            holder.cancel();
            co_await till.preempt(9);
            trace("has it");
            co_await wait(1.0);
            till.release();
        };
        sim.start(use(sim, trace, door, "a", 5.0));
        const ProcessRef holder = sim.start(holds(sim, till, door));
        sim.start(boss(sim, trace, till, holder), {}, 1.0);
        sim.start(use(sim, trace, till, "b", 1.0), {}, 1.0);
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 1:has it 2:b+ 3:b- 5:a-"));
        CHECK_EQUAL(till.preemptions(), 0u);
        CHECK_EQUAL(till.served(), 2u); // the cancelled one was not
    });
}

TEST("a facility has served those that released it, not those that were stopped for good") {
    everywhere([](const Options &options) {
        struct Released {
            Facility &facility;
            ~Released() { facility.release(); }
        };
        const auto plain = [](Simulation &, Facility &till) -> Process {
            co_await till.seize();
            co_await wait(5.0);
            till.release();
        };
        const auto guarded = [](Simulation &, Facility &till) -> Process {
            co_await till.seize();
            const Released released{till};
            co_await wait(5.0);
        };
        const auto patient = [](Simulation &sim, Facility &till) -> Process {
            co_await till.seize();
            try {
                co_await wait(5.0);
            } catch (const Interrupted &) {
            }
            if (till.holder() == sim.current())
                till.release();
        };
        const auto leaves = [](Simulation &, Facility &till) -> Process { co_await till.seize(); };
        Simulation sim(options);
        Facility till(sim, "till");
        const auto cancelled = [&](ProcessRef holder) {
            sim.run_until(sim.now() + 1.0);
            CHECK(till.holder() == holder);
            holder.cancel();
            sim.run();
            CHECK(!till.busy());
        };
        cancelled(sim.start(plain(sim, till)));
        cancelled(sim.start(guarded(sim, till)));
        CHECK_EQUAL(till.served(), 0u);

        sim.start(patient(sim, till));
        sim.after(1.0, [&] { till.break_down(true); });
        sim.run();
        till.repair();
        CHECK_EQUAL(till.served(), 0u);

        sim.start(leaves(sim, till));
        CHECK_THROWS(sim.run(), EndedWhileHolding);
        CHECK(!till.busy());
        CHECK_EQUAL(till.served(), 0u);

        sim.start(plain(sim, till));
        sim.start(guarded(sim, till));
        const ProcessRef interrupted = sim.start(patient(sim, till));
        sim.after(11.0, [=] { interrupted.interrupt(); });
        sim.run();
        CHECK_EQUAL(till.served(), 3u);
    });
}

TEST("an interrupted process learns from holder() whether it was preempted at that time") {
    everywhere([](const Options &options) {
        for (const bool preempted : {true, false}) {
            Simulation sim(options);
            Facility till(sim, "till");
            const auto clerk = [](Simulation &sim, Facility &till, bool lost) -> Process {
                co_await till.seize();
                bool interrupted = false;
                try {
                    co_await wait(5.0);
                } catch (const Interrupted &) {
                    interrupted = true;
                }
                CHECK(interrupted);
                CHECK_EQUAL(till.holder() == sim.current(), !lost);
                if (!lost)
                    till.release();
            };
            const ProcessRef ref = sim.start(clerk(sim, till, preempted));
            EventTrace trace(sim);
            if (preempted)
                sim.start(push(sim, trace, till, "boss", 9, 3.0), {}, 1.0);
            sim.at(2.0, [=] { ref.interrupt(); });
            sim.run();
            CHECK(!till.busy());
        }
    });
}
