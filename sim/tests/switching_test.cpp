#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/function.hpp"
#include "widthwise/sim/store.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace widthwise::sim;

namespace {

template <class Body> void on_stacks(Body body) {
    for (const Switching switching : available_switching())
        if (switching != Switching::Coroutine)
            body(Options{.seed = 3, .switching = switching});
}

/// Uses so much stack, for as long as a wait lasts.
[[gnu::noinline]] int deep(Self &self, int depth) {
    volatile char room[1000];
    room[0] = static_cast<char>(depth);
    if (depth == 0) {
        self.wait(1.0);
        return 0;
    }
    const int below = deep(self, depth - 1);
    return below + (room[0] == static_cast<char>(depth) ? 1 : 0);
}

struct Counted {
    int *count;
    explicit Counted(int &c) : count(&c) { ++*count; }
    ~Counted() { --*count; }
    Counted(const Counted &) = delete;
};

} // namespace

TEST("plain functions are processes wherever there are stacks") {
    on_stacks([](const Options &options) {
        Simulation sim(options);
        Facility till(sim, "till");
        std::string trace;
        for (const char *name : {"a", "b"})
            sim.start(function(sim,
                               [&, name](Self &self) {
                                   self(till.seize());
                                   trace += name;
                                   self.wait(2.0);
                                   till.release();
                                   trace += self.now() == 2.0 ? "2" : "4";
                               }),
                      name);
        sim.run();
        CHECK_EQUAL(trace, std::string("a2b4"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("on coroutines a plain function is refused, and the message names the remedy") {
    Simulation sim;
    try {
        sim.start(function(sim, [](Self &self) { self.wait(1.0); }));
        CHECK(false);
    } catch (const SwitchingUnavailable &error) {
        CHECK(std::strstr(error.what(), "choose a stackful back-end") != nullptr);
    }
}

TEST("locals survive waits, deep in the stack") {
    on_stacks([](const Options &options) {
        Simulation sim(options);
        int sum = 0;
        for (int i = 0; i < 8; ++i)
            sim.start(function(sim, [&sum](Self &self) { sum += deep(self, 30); }));
        sim.run();
        CHECK_EQUAL(sum, 240);
    });
}

TEST("floating-point registers and exceptions in flight belong to their process") {
    on_stacks([](const Options &options) {
        Simulation sim(options);
        std::string trace;
        for (int i = 1; i <= 3; ++i)
            sim.start(function(sim, [&trace, i](Self &self) {
                try {
                    throw i;
                } catch (int mine) {
                    self.wait(4.0 - i); // waits while an exception is being handled
                    try {
                        throw;
                    } catch (int again) {
                        trace += again == mine && mine == i ? "y" : "n";
                    }
                }
                CHECK_EQUAL(std::uncaught_exceptions(), 0);
            }));
        sim.run();
        CHECK_EQUAL(trace, std::string("yyy"));
    });
}

TEST("a plain function's locals are destroyed when it is cancelled, or its simulation is") {
    on_stacks([](const Options &options) {
        int alive = 0;
        {
            Simulation sim(options);
            const auto body = [&alive](Self &self) {
                const Counted counted(alive);
                try {
                    self.wait(10.0);
                } catch (const std::exception &) {
                    // Unwinding is no std::exception, so that this does not stop it.
                }
                self.wait(10.0);
            };
            const ProcessRef first = sim.start(function(sim, body));
            sim.start(function(sim, body));
            sim.start(function(sim, body));
            sim.run_until(1.0);
            CHECK_EQUAL(alive, 3);
            first.cancel();
            CHECK_EQUAL(alive, 2);
            sim.run_until(12.0);
        }
        CHECK_EQUAL(alive, 0);
    });
}

#if !defined(__SANITIZE_ADDRESS__)
namespace {
[[gnu::noinline]] int bottomless(volatile int *depth) {
    volatile int here = *depth + 1;
    if (here == 0)
        return 0; // the compiler would object to a recursion without end
    return bottomless(&here) + here;
}
} // namespace

TEST("a stack overflow is an error that names the process, on every back-end") {
    on_stacks([](const Options &options) {
        Simulation sim(options);
        double survivor = 0.0;
        sim.start(function(sim,
                           [](Self &self) {
                               self.wait(2.0);
                               volatile int depth = 0;
                               bottomless(&depth);
                           }),
                  "glutton");
        sim.start(function(sim, [&](Self &self) {
            self.wait(5.0);
            survivor = self.now();
        }));
        std::string what;
        try {
            sim.run();
        } catch (const StackOverflow &error) {
            what = error.what();
        }
        CHECK_EQUAL(
            what,
            std::string("the stack of 65536 bytes overflowed: process \"glutton\" (1) at time 2, seed 3"));
        sim.run();
        CHECK_EQUAL(survivor, 5.0);
    });
}

TEST("a simulation destroys the processes that a process owned whose stack overflowed") {
    on_stacks([](const Options &options) {
        int alive = 0;
        {
            Simulation sim(options);
            sim.start(function(sim, [&alive](Self &self) {
                const auto counted = std::make_shared<Counted>(alive);
                const Process never = function(self.sim(), [counted](Self &) {});
                const Process owner =
                    function(self.sim(), [owned = std::make_shared<Process>(
                                              function(self.sim(), [counted](Self &) {}))](Self &) {});
                volatile int depth = 0;
                bottomless(&depth);
            }));
            CHECK_THROWS(sim.run(), StackOverflow);
            CHECK_EQUAL(sim.alive(), 3u);
        }
        CHECK_EQUAL(alive, 1); // a local of the lost stack
    });
}

TEST("a stack may overflow while its process is destroyed") {
    on_stacks([](const Options &options) {
        struct Deep {
            ~Deep() {
                volatile int depth = 0;
                bottomless(&depth);
            }
        };
        const auto body = [](Self &self) {
            const Deep deep;
            self.wait(1.0);
        };
        Simulation sim(options);
        const ProcessRef first = sim.start(function(sim, body));
        sim.start(function(sim, body));
        sim.run_until(0.5);
        first.cancel();
        CHECK_EQUAL(sim.alive(), 1u);
        CHECK_THROWS(sim.run_until(0.6), StackOverflow);
    });
}
#endif

TEST("a stack size that no process can have is refused") {
    for (const Switching switching : available_switching()) {
        if (switching == Switching::Coroutine)
            continue;
        for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2 + 1})
            CHECK_THROWS(Simulation({.switching = switching, .stack_size = size}), BadRequest);
    }
}

TEST("the stack size asked for is the size a process gets") {
    on_stacks([](const Options &base) {
        Options options = base;
        options.stack_size = std::size_t{1} << 20;
        Simulation sim(options);
        int sum = 0;
        sim.start(function(sim, [&sum](Self &self) { sum += deep(self, 600); }));
        sim.run();
        CHECK_EQUAL(sum, 600);
    });
}

TEST("a simulation may be built on one thread, run on another and destroyed on a third") {
    for (const Switching switching : available_switching()) {
        int alive = 0;
        Options options;
        options.switching = switching;
        auto sim = std::make_unique<Simulation>(options);
        const auto body = [](Simulation &, int &count) -> Process {
            const Counted counted(count);
            co_await wait(1.0);
            co_await wait(1.0);
        };
        sim->start(body(*sim, alive));
        sim->run_until(0.5);
        std::thread([&] { sim->run_until(1.5); }).join();
        CHECK_EQUAL(alive, 1);
        std::thread([&] { sim.reset(); }).join();
        CHECK_EQUAL(alive, 0);
    }
}

TEST("every back-end has a name, and an unavailable one is refused by name") {
    for (const Switching switching : {Switching::Coroutine, Switching::Assembly, Switching::BoostContext,
                                      Switching::Ucontext, Switching::StackCopy, Switching::Thread})
        CHECK(std::strcmp(name_of(switching), "unknown") != 0);
    bool is_built = false;
    for (const Switching switching : available_switching())
        is_built = is_built || switching == Switching::BoostContext;
    if (is_built)
        Simulation(Options{.switching = Switching::BoostContext}).run();
    else
        CHECK_THROWS(Simulation(Options{.switching = Switching::BoostContext}), SwitchingUnavailable);
}

TEST("one simulation after the other may have its stacks where another's were") {
    const auto deep = [](Simulation &sim, std::size_t locals) {
        return function(sim, [locals](Self &self) {
            std::vector<char> some(locals, 'x');
            char more[512];
            std::snprintf(more, sizeof more, "%c%zu", some[locals / 2], locals);
            self.wait(1.0 + more[0]);
        });
    };
    for (std::size_t round = 0; round < 60; ++round)
        for (const Switching switching : {Switching::Assembly, Switching::Ucontext}) {
            Simulation sim({.switching = switching, .stack_size = 16384 + 4096 * (round % 7)});
            for (std::size_t i = 0; i < 1 + round % 13; ++i)
                sim.start(deep(sim, 10 + i));
            sim.run();
            CHECK_EQUAL(sim.alive(), 0u);
        }
}

namespace {

/// Keeps what a wait throws, and goes on.
template <class Next> Process careless(Simulation &, Next next) {
    try {
        co_await wait(10.0);
    } catch (...) {
    }
    co_await next();
}

/// Cancels another process at the end of its own.
struct Cancels {
    ProcessRef other;
    ~Cancels() {
        if (other)
            other.cancel();
    }
};

Process watched(Simulation &, int &alive) {
    const Counted counted(alive);
    co_await wait(100.0);
}

/// Alive also before it is started.
Process keeps(Simulation &, std::shared_ptr<Counted>) { co_await wait(1.0); }

Process watches(Simulation &sim, int &alive) {
    const Cancels cancels{sim.start(watched(sim, alive))};
    const Counted counted(alive);
    co_await wait(100.0);
}

/// The signal by which `act` ends a process of its own; 0: none.
template <class Act> int ends_by(Act act) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        std::freopen("/dev/null", "w", stderr);
        alarm(60); // instead of a standstill
        act();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

TEST("a process that keeps what unwinds it waits for nothing more") {
    on_stacks([](const Options &options) {
        const auto cancelled = [&](auto next) {
            Simulation sim(options);
            Store store(sim, 1, "store");
            const ProcessRef ref = sim.start(careless(sim, [&] { return next(store); }));
            sim.at(1.0, [=] { ref.cancel(); });
            sim.run();
            CHECK_EQUAL(sim.now(), 1.0);
            CHECK_EQUAL(sim.alive(), 0u);
            CHECK_EQUAL(store.used() + store.waiting(), 0u);
        };
        cancelled([](Store &) { return wait(1.0); });
        cancelled([](Store &) { return passivate(); });
        cancelled([](Store &store) { return store.enter(); });
        cancelled([](Store &store) { return any_of(store.enter(), wait(1.0)); });
    });
}

TEST("a process that waits for ever while it is destroyed ends the program") {
    if (available_switching().size() < 2)
        check::skip("no stacks");
    CHECK_EQUAL(ends_by([] {
                    Simulation sim(Options{.switching = available_switching()[1]});
                    const auto endless = [](Self &self) {
                        for (;;)
                            try {
                                self.wait(1.0);
                            } catch (...) {
                            }
                    };
                    sim.start(function(sim, endless));
                    sim.run_until(5.0);
                }),
                SIGABRT);
}

TEST("a local's destructor may cancel another process, also outside of run()") {
    event_trace::everywhere([](const Options &options) {
        for (const bool cancels : {true, false}) {
            int alive = 0;
            {
                Simulation sim(options);
                const ProcessRef ref = sim.start(watches(sim, alive));
                sim.run_until(1.0);
                CHECK_EQUAL(alive, 2);
                if (cancels) {
                    ref.cancel();
                    CHECK_EQUAL(alive, 0);
                    CHECK_EQUAL(sim.alive(), 0u);
                }
            }
            CHECK_EQUAL(alive, 0);
        }
    });
}

TEST("a simulation may be destroyed with processes that others own, or that destructors start") {
    event_trace::everywhere([](const Options &options) {
        struct Starts {
            Simulation &sim;
            int &alive;
            ~Starts() { sim.start(keeps(sim, std::make_shared<Counted>(alive))); }
        };
        const auto owner = [](Simulation &sim, int &alive) -> Process {
            const Starts starts{sim, alive};
            const Process owned = keeps(sim, std::make_shared<Counted>(alive));
            co_await wait(100.0);
        };
        int alive = 0;
        {
            Simulation sim(options);
            for (int i = 0; i < 3; ++i)
                sim.start(owner(sim, alive));
            sim.at(50.0,
                   [owned = std::make_shared<Process>(keeps(sim, std::make_shared<Counted>(alive)))] {});
            sim.run_until(1.0);
            CHECK_EQUAL(alive, 4);
        }
        CHECK_EQUAL(alive, 0);
    });
}

TEST("a process that is not started and outlives its simulation ends the program") {
    CHECK_EQUAL(ends_by([] {
                    int alive = 0;
                    std::optional<Process> later;
                    Simulation sim;
                    later.emplace(watched(sim, alive));
                }),
                SIGABRT);
}
