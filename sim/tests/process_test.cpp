#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/store.hpp"

#include <any>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>

using namespace widthwise::sim;
using namespace event_trace;

namespace {

/// Counts how many are alive.
struct Token {
    int *count;
    explicit Token(int &c) : count(&c) { ++*count; }
    ~Token() { --*count; }
    Token(const Token &) = delete;
    Token &operator=(const Token &) = delete;
};

Task<int> at_once(Simulation &, int value) { co_return value + 1; }

Task<int> after_a_while(Simulation &sim, int value) {
    co_await wait(1.0);
    co_return co_await at_once(sim, value);
}

Process counts(Simulation &sim, int &count) {
    for (int i = 0; i < 20000; ++i)
        count = co_await at_once(sim, count);
    for (int i = 0; i < 2000; ++i)
        count = co_await after_a_while(sim, count);
}

} // namespace

TEST("processes happen in the order of time, then priority, then start") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        sim.start(say(sim, trace, "late", 2.0));
        sim.start(say(sim, trace, "first", 1.0));
        sim.start(say(sim, trace, "second", 1.0));
        sim.start(say(sim, trace, "important", 1.0), "important", 0.0, 7);
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("1:important 1:first 1:second 2:late"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("scheduled calls happen, may schedule more, and may be cancelled") {
    Simulation sim;
    EventTrace trace(sim);
    sim.after(2.0, [&] { trace("two"); });
    sim.at(1.0, [&](Simulation &s) {
        trace("one");
        s.after(0.5, [&] { trace("half"); });
    });
    const EventRef never = sim.after(1.2, [&] { trace("never"); });
    CHECK(never.pending());
    never.cancel();
    CHECK(!never.pending());
    sim.run();
    CHECK_EQUAL(trace.text(), std::string("1:one 1.5:half 2:two"));
    CHECK_THROWS(never.cancel(), UsedAfterEnd);
}

TEST("run_until stops the clock at its time and does what is due then") {
    Simulation sim;
    EventTrace trace(sim);
    for (const double t : {1.0, 2.0, 3.0})
        sim.start(say(sim, trace, "x", t));
    sim.run_until(2.0);
    CHECK_EQUAL(trace.text(), std::string("1:x 2:x"));
    sim.run_until(2.5);
    CHECK_EQUAL(sim.now(), 2.5);
    CHECK_THROWS(sim.run_until(1.0), TimeBackwards);
    sim.run();
    CHECK_EQUAL(sim.now(), 3.0);
}

TEST("stop ends the run after the present event, and the run can go on") {
    Simulation sim;
    EventTrace trace(sim);
    sim.after(1.0, [&] {
        trace("stop");
        sim.stop();
    });
    sim.after(1.0, [&] { trace("later"); });
    sim.run_until(5.0);
    CHECK_EQUAL(trace.text(), std::string("1:stop"));
    CHECK_EQUAL(sim.now(), 1.0);
    CHECK(sim.step());
    CHECK(!sim.step());
    CHECK_EQUAL(trace.text(), std::string("1:stop 1:later"));
}

TEST("passive processes go on when activated, waiting ones before their time") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        const auto sleeper = [](Simulation &, EventTrace &trace) -> Process {
            trace("sleeps");
            co_await passivate();
            trace("woken");
            co_await wait(100.0);
            trace("early");
        };
        const ProcessRef ref = sim.start(sleeper(sim, trace), "sleeper");
        sim.after(2.0, [=] { ref.activate(); });
        sim.after(3.0, [=] { ref.activate(); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:sleeps 2:woken 3:early"));
        CHECK(!ref.alive());
    });
}

TEST("an interrupted wait throws, with the cause, and what had been granted goes back") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        const auto waiter = [](Simulation &, EventTrace &trace, Facility &t) -> Process {
            std::string why;
            try {
                co_await t.seize();
            } catch (const Interrupted &interrupted) {
                why = std::any_cast<std::string>(interrupted.cause());
            }
            trace(why);
        };
        sim.start(use(sim, trace, till, "a", 4.0));
        const ProcessRef first = sim.start(waiter(sim, trace, till));
        const ProcessRef second = sim.start(waiter(sim, trace, till));
        sim.after(1.0, [=] { first.interrupt(std::string("fire")); });
        // At 4 the till is given to the second; before it can go on, it is interrupted.
        sim.after(1.0,
                  [second](Simulation &s) { s.at(4.0, [=] { second.interrupt(std::string("flood")); }); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:a+ 1:fire 4:a- 4:flood"));
        CHECK(!till.busy());
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a cancelled process is gone at once, with its locals, and gives back what it holds") {
    everywhere([](const Options &options) {
        int alive = 0;
        Simulation sim(options);
        EventTrace trace(sim);
        Facility till(sim, "till");
        const auto holder = [](Simulation &, Facility &t, int &count) -> Process {
            const Token token(count);
            co_await t.seize();
            co_await wait(100.0);
            t.release();
        };
        const ProcessRef ref = sim.start(holder(sim, till, alive));
        const ProcessRef queued = sim.start(holder(sim, till, alive));
        sim.start(use(sim, trace, till, "b", 1.0));
        sim.after(5.0, [&, ref, queued] {
            CHECK_EQUAL(alive, 2);
            queued.cancel();
            ref.cancel();
            CHECK(!ref.alive());
        });
        sim.after(5.0, [&] { CHECK_EQUAL(alive, 0); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("5:b+ 6:b-"));
        CHECK_THROWS(ref.cancel(), UsedAfterEnd);
    });
}

TEST("a process that cancels itself ends at its next wait") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        int alive = 0;
        const auto suicidal = [](Simulation &s, EventTrace &trace, int &count) -> Process {
            const Token token(count);
            s.current().cancel();
            trace("still here");
            co_await wait(1.0);
            trace("never");
        };
        sim.start(suicidal(sim, trace, alive));
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("0:still here"));
        CHECK_EQUAL(alive, 0);
    });
}

TEST("tasks are parts of a process: they return values, throw, and nest") {
    everywhere([](const Options &options) {
        struct Parts {
            static Task<int> leaf(Simulation &sim, double time) {
                co_await wait(time);
                if (time > 1.5)
                    throw std::runtime_error("too long");
                co_return static_cast<int>(10.0 * sim.now());
            }
            static Task<int> branch(Simulation &sim) {
                const int one = co_await leaf(sim, 1.0);
                const int two = co_await leaf(sim, 1.0);
                co_return one + two;
            }
            static Process trunk(Simulation &sim, EventTrace &trace) {
                trace(std::to_string(co_await branch(sim)));
                std::string what;
                try {
                    co_await leaf(sim, 2.0);
                } catch (const std::runtime_error &error) {
                    what = error.what();
                }
                trace(what);
            }
        };
        Simulation sim(options);
        EventTrace trace(sim);
        sim.start(Parts::trunk(sim, trace));
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("2:30 4:too long"));
    });
}

TEST("tasks that are awaited many times leave nothing on the stack, optimised or not") {
    everywhere([](const Options &options) {
        if (options.switching == Switching::Thread)
            return; // the same as the others, slowly
        Simulation sim(options);
        int count = 0;
        sim.start(counts(sim, count));
        sim.run();
        CHECK_EQUAL(count, 22000);
    });
}

TEST("a process that joins another continues at its end, however it ends") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        const auto joiner = [](Simulation &, EventTrace &trace, ProcessRef other,
                               std::string name) -> Process {
            co_await join(other);
            trace(name);
        };
        const ProcessRef ends = sim.start(say(sim, trace, "end", 1.0));
        const ProcessRef cancelled = sim.start(say(sim, trace, "never", 9.0));
        sim.start(joiner(sim, trace, ends, "joined"));
        sim.start(joiner(sim, trace, cancelled, "joined the cancelled"));
        sim.start(joiner(sim, trace, ends, "at once"), {}, 3.0);
        sim.after(2.0, [=] { cancelled.cancel(); });
        sim.run();
        CHECK_EQUAL(trace.text(), std::string("1:end 1:joined 2:joined the cancelled 3:at once"));
    });
}

TEST("a simulation may be destroyed at any moment, and the locals of all its processes with it") {
    everywhere([](const Options &options) {
        int alive = 0;
        for (int steps = 0; steps < 40; ++steps) {
            {
                Simulation sim(options);
                Facility till(sim, "till");
                Store store(sim, 1, "store");
                Queue queue(sim, "queue");
                struct Parts {
                    static Task<> part(Simulation &, Store &s, int &count) {
                        const Token token(count);
                        co_await s.enter();
                        co_await wait(1.0);
                        s.leave();
                    }
                    static Process whole(Simulation &sim, Facility &t, Store &s, Queue &q, int &count) {
                        const Token token(count);
                        co_await any_of(t.seize(), wait(2.5));
                        co_await part(sim, s, count);
                        co_await wait_until([] { return false; });
                        co_await q.wait();
                    }
                };
                for (int i = 0; i < 4; ++i)
                    sim.start(Parts::whole(sim, till, store, queue, alive), {}, i);
                auto never_started = Parts::whole(sim, till, store, queue, alive);
                const ProcessRef adopted = sim.adopt(Parts::whole(sim, till, store, queue, alive));
                for (int i = 0; i < steps && sim.step(); ++i) {
                }
                (void)adopted;
            }
            CHECK_EQUAL(alive, 0);
        }
    });
}

TEST("a process and the one that joins it may be cancelled in one event") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        EventTrace trace(sim);
        const auto joiner = [](Simulation &, ProcessRef other) -> Process { co_await join(other); };
        const ProcessRef target = sim.start(say(sim, trace, "never", 9.0));
        const ProcessRef waiting = sim.start(joiner(sim, target));
        sim.after(1.0, [=] {
            target.cancel();
            waiting.cancel();
        });
        sim.run();
        CHECK_EQUAL(sim.alive(), 0u);
        CHECK_EQUAL(sim.now(), 1.0);
    });
}

TEST("a motion moves with the clock, and may stop it early for an event of its own") {
    // A level that rises by 2 for each unit of time, and rings when it crosses 5.
    struct Rising : Motion {
        explicit Rising(EventTrace &s) : trace(&s) {}
        double advance(Simulation &sim, double from, double to) override {
            const double crossing = from + (5.0 - level) / 2.0;
            const double reached = level < 5.0 && crossing <= to ? crossing : to;
            level += 2.0 * (reached - from);
            if (reached == crossing)
                sim.at(reached, [this] { (*trace)("crossed"); });
            return reached;
        }
        EventTrace *trace;
        double level = 0.0;
    };
    Simulation sim;
    EventTrace trace(sim);
    Rising rising(trace);
    sim.set_motion(&rising);
    sim.start(say(sim, trace, "one", 1.0));
    sim.start(say(sim, trace, "three", 3.0));
    sim.run();
    CHECK_EQUAL(trace.text(), std::string("1:one 2.5:crossed 3:three"));
    CHECK_EQUAL(rising.level, 6.0);
    sim.run_until(4.0);
    CHECK_EQUAL(rising.level, 8.0);
    struct Lost : Motion {
        double advance(Simulation &, double, double to) override { return to + 1.0; }
    };
    Lost lost;
    sim.set_motion(&lost);
    CHECK_THROWS(sim.run_until(5.0), BadTime);
}

TEST("two simulations in one program do not know of each other") {
    Simulation first;
    Simulation second;
    EventTrace trace(first);
    const auto outer = [](Simulation &sim, Simulation &inner, EventTrace &trace) -> Process {
        co_await wait(1.0);
        inner.start(say(inner, trace, "inner", 5.0));
        inner.run(); // a simulation within a process of another
        trace("outer");
        CHECK(sim.current().alive());
    };
    first.start(outer(first, second, trace));
    first.run();
    CHECK_EQUAL(first.now(), 1.0);
    CHECK_EQUAL(second.now(), 5.0);
    CHECK_EQUAL(trace.text(), std::string("1:inner 1:outer"));
}

namespace {

struct NoMove {
    NoMove() = default;
    NoMove(NoMove &&) { throw std::runtime_error("no move"); }
};

Process takes(Simulation &, NoMove) { co_await wait(1.0); }

/// Bytes of address space in use.
std::size_t address_space() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// A large frame.
Process roomy(Simulation &, int &sum) {
    char room[1500];
    std::memset(room, 1, sizeof room);
    co_await wait(1.0);
    for (const char each : room)
        sum += each;
}

} // namespace

TEST("a process whose parameter cannot be moved leaves nothing behind") {
    // What the simulation gets is not zero: freeing much makes glibc keep what is freed next.
    for (const std::size_t bytes : {std::size_t{1} << 22, std::size_t{1} << 20, std::size_t{1} << 20}) {
        const std::align_val_t aligned{65536};
        void *memory = ::operator new(bytes, aligned);
        std::memset(memory, 0xff, bytes);
        asm volatile("" : : "r"(memory) : "memory"); // the compiler does not leave the filling out
        ::operator delete(memory, aligned);
    }
    everywhere([](const Options &options) {
        Simulation sim(options);
        CHECK_THROWS((void)takes(sim, NoMove()), std::runtime_error);
        CHECK(sim.processes().empty());
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("processes with large frames share what the system gives") {
    Simulation sim;
    int sum = 0;
    constexpr int many = 2000;
    [[maybe_unused]] const std::size_t before = address_space();
    for (int i = 0; i < many; ++i)
        sim.start(roomy(sim, sum));
#if !defined(__SANITIZE_ADDRESS__)
    CHECK(address_space() < before + std::size_t{many} * 2500 + (8 << 20));
#endif
    CHECK_EQUAL(sim.processes().size(), std::size_t{many});
    sim.run();
    CHECK_EQUAL(sum, many * 1500);
}
