#include "check.hpp"

#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/store.hpp"

#include <sstream>
#include <string>

using namespace widthwise::sim;

namespace {

/// What happened, as text: "time:word time:word ...".
class Story {
  public:
    explicit Story(Simulation &sim) : sim_(sim) {}
    void operator()(const std::string &word) {
        std::ostringstream line;
        line << (text_.empty() ? "" : " ") << sim_.now() << ':' << word;
        text_ += line.str();
    }
    [[nodiscard]] const std::string &text() const { return text_; }

  private:
    Simulation &sim_;
    std::string text_;
};

/// Runs a test on every back-end.
template <class Body> void everywhere(Body body) {
    for (const Switching switching : available_switching())
        body(Options{.seed = 1, .switching = switching});
}

/// Counts how many are alive.
struct Token {
    int *count;
    explicit Token(int &c) : count(&c) { ++*count; }
    ~Token() { --*count; }
    Token(const Token &) = delete;
    Token &operator=(const Token &) = delete;
};

Process say(Simulation &, Story &story, std::string word, double after) {
    co_await wait(after);
    story(word);
}

Process use(Simulation &, Story &story, Facility &facility, std::string name, double time) {
    co_await facility.seize();
    story(name + "+");
    co_await wait(time);
    facility.release();
    story(name + "-");
}

Process push(Simulation &, Story &story, Facility &facility, std::string name, std::int16_t priority,
             double time) {
    co_await facility.preempt(priority);
    story(name + "+");
    co_await wait(time);
    facility.release();
    story(name + "-");
}

} // namespace

TEST("processes happen in the order of time, then priority, then start") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        sim.start(say(sim, story, "late", 2.0));
        sim.start(say(sim, story, "first", 1.0));
        sim.start(say(sim, story, "second", 1.0));
        sim.start(say(sim, story, "important", 1.0), "important", 0.0, 7);
        sim.run();
        CHECK_EQUAL(story.text(), std::string("1:important 1:first 1:second 2:late"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("scheduled calls happen, may schedule more, and may be cancelled") {
    Simulation sim;
    Story story(sim);
    sim.after(2.0, [&] { story("two"); });
    sim.at(1.0, [&](Simulation &s) {
        story("one");
        s.after(0.5, [&] { story("half"); });
    });
    const EventRef never = sim.after(1.2, [&] { story("never"); });
    CHECK(never.pending());
    never.cancel();
    CHECK(!never.pending());
    sim.run();
    CHECK_EQUAL(story.text(), std::string("1:one 1.5:half 2:two"));
    CHECK_THROWS(never.cancel(), UsedAfterEnd);
}

TEST("run_until stops the clock at its time and does what is due then") {
    Simulation sim;
    Story story(sim);
    for (const double t : {1.0, 2.0, 3.0})
        sim.start(say(sim, story, "x", t));
    sim.run_until(2.0);
    CHECK_EQUAL(story.text(), std::string("1:x 2:x"));
    sim.run_until(2.5);
    CHECK_EQUAL(sim.now(), 2.5);
    CHECK_THROWS(sim.run_until(1.0), TimeBackwards);
    sim.run();
    CHECK_EQUAL(sim.now(), 3.0);
}

TEST("stop ends the run after the present event, and the run can go on") {
    Simulation sim;
    Story story(sim);
    sim.after(1.0, [&] {
        story("stop");
        sim.stop();
    });
    sim.after(1.0, [&] { story("later"); });
    sim.run_until(5.0);
    CHECK_EQUAL(story.text(), std::string("1:stop"));
    CHECK_EQUAL(sim.now(), 1.0);
    CHECK(sim.step());
    CHECK(!sim.step());
    CHECK_EQUAL(story.text(), std::string("1:stop 1:later"));
}

TEST("a facility serves one at a time, in order of priority and arrival") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        sim.start(use(sim, story, till, "a", 2.0));
        sim.start(use(sim, story, till, "b", 2.0));
        sim.start(use(sim, story, till, "c", 2.0), {}, 1.0, 5);
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 2:a- 2:c+ 4:c- 4:b+ 6:b-"));
        CHECK_EQUAL(till.utilisation(), 1.0);
        CHECK_EQUAL(till.line().waits().count(), 3);
        CHECK_EQUAL(till.line().waits().mean(), 5.0 / 3.0);
        CHECK_EQUAL(till.served(), 3u);
    });
}

TEST("a preempted process goes on with what is left of its service") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        sim.start(push(sim, story, till, "low", 0, 10.0));
        sim.start(push(sim, story, till, "mid", 1, 2.0), {}, 3.0);
        sim.start(push(sim, story, till, "high", 2, 1.0), {}, 4.0);
        sim.start(push(sim, story, till, "low2", 0, 1.0), {}, 4.5);
        sim.run();
        CHECK_EQUAL(story.text(),
                    std::string("0:low+ 3:mid+ 4:high+ 5:high- 6:mid- 13:low- 13:low2+ 14:low2-"));
        CHECK_EQUAL(till.preemptions(), 2u);
    });
}

TEST("a breakdown stops service, and repair lets it go on") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility machine(sim, "machine");
        sim.start(use(sim, story, machine, "a", 5.0));
        sim.start(use(sim, story, machine, "b", 1.0), {}, 3.5);
        sim.after(3.0, [&] { machine.break_down(); });
        sim.after(10.0, [&] { machine.repair(); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 12:a- 12:b+ 13:b-"));
        CHECK_EQUAL(machine.down().mean(14.0), 0.5);
        CHECK_EQUAL(machine.use().integral(13.0), 6.0);
    });
}

TEST("a breakdown may interrupt instead, and then the facility is no longer held") {
    Simulation sim;
    Story story(sim);
    Facility machine(sim, "machine");
    const auto careful = [](Simulation &, Story &told, Facility &m) -> Process {
        co_await m.seize();
        bool broken = false;
        try {
            co_await wait(5.0);
        } catch (const Interrupted &interrupted) {
            broken = std::any_cast<Facility::Breakdown>(interrupted.cause()).facility == "machine";
        }
        told(broken ? "broken" : "done");
    };
    sim.start(careful(sim, story, machine));
    sim.after(3.0, [&] { machine.break_down(true); });
    sim.run();
    CHECK_EQUAL(story.text(), std::string("3:broken"));
    CHECK(!machine.busy());
}

TEST("a store admits strictly in order") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Store store(sim, 10, "store");
        const auto enter = [](Simulation &, Story &told, Store &s, std::string name, std::uint64_t places,
                              double time) -> Process {
            co_await s.enter(places);
            told(name + "+");
            co_await wait(time);
            s.leave(places);
        };
        sim.start(enter(sim, story, store, "a", 6, 4.0));
        sim.start(enter(sim, story, store, "b", 8, 1.0)); // must wait for a
        sim.start(enter(sim, story, store, "c", 2, 1.0)); // would fit, but does not overtake
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 4:b+ 4:c+"));
        CHECK_EQUAL(store.used(), 0u);
        CHECK_EQUAL(store.use().greatest(), 10.0);
    });
}

TEST("whoever gives up waiting lets those behind into the store") {
    Simulation sim;
    Story story(sim);
    Store store(sim, 4, "store");
    const auto hopeful = [](Simulation &, Story &told, Store &s, std::uint64_t places,
                            std::string name) -> Process {
        const auto which = co_await any_of(s.enter(places), wait(3.0));
        told(name + (which == 0 ? "+" : " gives up"));
    };
    sim.start(hopeful(sim, story, store, 2, "a"));
    sim.start(hopeful(sim, story, store, 3, "b"));
    sim.start(hopeful(sim, story, store, 2, "c"), {}, 1.0);
    sim.run();
    CHECK_EQUAL(story.text(), std::string("0:a+ 3:b gives up 3:c+"));
    CHECK_EQUAL(store.used(), 4u);
}

TEST("passive processes go on when activated, waiting ones before their time") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        const auto sleeper = [](Simulation &, Story &told) -> Process {
            told("sleeps");
            co_await passivate();
            told("woken");
            co_await wait(100.0);
            told("early");
        };
        const ProcessRef ref = sim.start(sleeper(sim, story), "sleeper");
        sim.after(2.0, [=] { ref.activate(); });
        sim.after(3.0, [=] { ref.activate(); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:sleeps 2:woken 3:early"));
        CHECK(!ref.alive());
    });
}

TEST("an interrupted wait throws, with the cause, and what had been granted goes back") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        const auto waiter = [](Simulation &, Story &told, Facility &t) -> Process {
            std::string why;
            try {
                co_await t.seize();
            } catch (const Interrupted &interrupted) {
                why = std::any_cast<std::string>(interrupted.cause());
            }
            told(why);
        };
        sim.start(use(sim, story, till, "a", 4.0));
        const ProcessRef first = sim.start(waiter(sim, story, till));
        const ProcessRef second = sim.start(waiter(sim, story, till));
        sim.after(1.0, [=] { first.interrupt(std::string("fire")); });
        // At 4 the till is given to the second; before it can go on, it is interrupted.
        sim.after(1.0,
                  [second](Simulation &s) { s.at(4.0, [=] { second.interrupt(std::string("flood")); }); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 1:fire 4:a- 4:flood"));
        CHECK(!till.busy());
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a cancelled process is gone at once, with its locals, and gives back what it holds") {
    everywhere([](const Options &options) {
        int alive = 0;
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        const auto holder = [](Simulation &, Facility &t, int &count) -> Process {
            const Token token(count);
            co_await t.seize();
            co_await wait(100.0);
            t.release();
        };
        const ProcessRef ref = sim.start(holder(sim, till, alive));
        const ProcessRef queued = sim.start(holder(sim, till, alive));
        sim.start(use(sim, story, till, "b", 1.0));
        sim.after(5.0, [&, ref, queued] {
            CHECK_EQUAL(alive, 2);
            queued.cancel();
            ref.cancel();
            CHECK(!ref.alive());
        });
        sim.after(5.0, [&] { CHECK_EQUAL(alive, 0); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("5:b+ 6:b-"));
        CHECK_THROWS(ref.cancel(), UsedAfterEnd);
    });
}

TEST("a process that cancels itself ends at its next wait") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        int alive = 0;
        const auto suicidal = [](Simulation &s, Story &told, int &count) -> Process {
            const Token token(count);
            s.current().cancel();
            told("still here");
            co_await wait(1.0);
            told("never");
        };
        sim.start(suicidal(sim, story, alive));
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:still here"));
        CHECK_EQUAL(alive, 0);
    });
}

TEST("any_of goes on with the first and withdraws from the others") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        const auto patient = [](Simulation &, Story &told, Facility &t, std::string name,
                                double patience) -> Process {
            const auto which = co_await any_of(t.seize(), wait(patience));
            told(name + (which == 0 ? " served" : " left"));
            if (which == 0) {
                co_await wait(1.0);
                t.release();
            }
        };
        sim.start(use(sim, story, till, "a", 4.0));
        sim.start(patient(sim, story, till, "b", 3.0));
        sim.start(patient(sim, story, till, "c", 5.0));
        sim.start(patient(sim, story, till, "d", 4.0)); // its patience and the service end together
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 3:b left 4:a- 4:c served 4:d left"));
        CHECK_EQUAL(till.waiting(), 0u);
    });
}

TEST("all_of goes on when it has everything, and an interrupt gives back the part it had") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility left(sim, "left");
        Facility right(sim, "right");
        const auto both = [](Simulation &, Story &told, Facility &l, Facility &r,
                             std::string name) -> Process {
            bool interrupted = false;
            try {
                co_await all_of(l.seize(), r.seize(), wait(1.0));
            } catch (const Interrupted &) {
                interrupted = true;
            }
            told(name + (interrupted ? " interrupted" : " has both"));
            if (interrupted)
                co_return;
            l.release();
            r.release();
        };
        sim.start(use(sim, story, right, "a", 3.0));
        const ProcessRef first = sim.start(both(sim, story, left, right, "first"));
        sim.start(both(sim, story, left, right, "second"), {}, 0.5);
        sim.after(2.0, [=] { first.interrupt(); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 2:first interrupted 3:a- 3:second has both"));
        CHECK(!left.busy() && !right.busy());
    });
}

TEST("wait_until goes on after the event that made its condition true") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        int level = 0;
        const auto watcher = [](Simulation &, Story &told, int &l, int wanted) -> Process {
            co_await wait_until([&l, wanted] { return l >= wanted; });
            told("reached " + std::to_string(wanted));
        };
        sim.start(watcher(sim, story, level, 0));
        sim.start(watcher(sim, story, level, 2));
        sim.start(watcher(sim, story, level, 1));
        for (const double t : {1.0, 2.0})
            sim.after(t, [&] { ++level; });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:reached 0 1:reached 1 2:reached 2"));
    });
}

TEST("barriers open when all have come, semaphores count, queues are woken in order") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Barrier barrier(sim, 3);
        Semaphore semaphore(sim, 1);
        Queue queue(sim, "queue");
        const auto walker = [](Simulation &, Story &told, Barrier &b, Semaphore &s, Queue &q,
                               std::string name, double time) -> Process {
            co_await wait(time);
            co_await b.arrive();
            co_await s.acquire();
            told(name + " acquired");
            co_await wait(1.0);
            s.release();
            co_await q.wait();
            told(name + " woken");
        };
        for (const auto &[name, time] : {std::pair{"a", 1.0}, std::pair{"b", 3.0}, std::pair{"c", 2.0}})
            sim.start(walker(sim, story, barrier, semaphore, queue, name, time));
        sim.after(10.0, [&] {
            CHECK_EQUAL(queue.size(), 3u);
            CHECK(queue.wake().alive());
            queue.wake_all();
            CHECK(!queue.wake());
        });
        sim.run();
        CHECK_EQUAL(story.text(),
                    std::string("3:b acquired 4:a acquired 5:c acquired 10:b woken 10:a woken 10:c woken"));
        CHECK_EQUAL(barrier.openings(), 1u);
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
            static Process trunk(Simulation &sim, Story &told) {
                told(std::to_string(co_await branch(sim)));
                std::string what;
                try {
                    co_await leaf(sim, 2.0);
                } catch (const std::runtime_error &error) {
                    what = error.what();
                }
                told(what);
            }
        };
        Simulation sim(options);
        Story story(sim);
        sim.start(Parts::trunk(sim, story));
        sim.run();
        CHECK_EQUAL(story.text(), std::string("2:30 4:too long"));
    });
}

TEST("whoever joins a process goes on at its end, however it ends") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        const auto joiner = [](Simulation &, Story &told, ProcessRef other, std::string name) -> Process {
            co_await join(other);
            told(name);
        };
        const ProcessRef ends = sim.start(say(sim, story, "end", 1.0));
        const ProcessRef cancelled = sim.start(say(sim, story, "never", 9.0));
        sim.start(joiner(sim, story, ends, "joined"));
        sim.start(joiner(sim, story, cancelled, "joined the cancelled"));
        sim.start(joiner(sim, story, ends, "at once"), {}, 3.0);
        sim.after(2.0, [=] { cancelled.cancel(); });
        sim.run();
        CHECK_EQUAL(story.text(), std::string("1:end 1:joined 2:joined the cancelled 3:at once"));
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

TEST("resources may go before the processes that wait in them") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        {
            Facility till(sim, "till");
            sim.start(use(sim, story, till, "a", 5.0));
            sim.start(use(sim, story, till, "b", 5.0));
            sim.run_until(1.0);
        }
        CHECK_EQUAL(sim.report(), std::string());
        CHECK_EQUAL(sim.alive(), 2u);
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
        Story story(sim);
        sim.start(use(sim, story, left, "a", 5.0));
        sim.start(both(sim, left, *right));
        sim.run_until(1.0);
        CHECK(right->busy());
        right.reset();
    });
}

TEST("a process and the one that joins it may be cancelled in one event") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        const auto joiner = [](Simulation &, ProcessRef other) -> Process { co_await join(other); };
        const ProcessRef target = sim.start(say(sim, story, "never", 9.0));
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

TEST("reports name every resource, with its figures") {
    Simulation sim;
    Story story(sim);
    Facility till(sim, "till");
    Store store(sim, 3, "shelf");
    sim.start(use(sim, story, till, "a", 2.0));
    sim.start(use(sim, story, till, "b", 2.0));
    sim.run_until(8.0);
    CHECK_EQUAL(
        sim.report(),
        std::string("facility \"till\"  utilisation 0.5  served 2  preemptions 0  down 0\n"
                    "    line  mean length 0.25  longest 1  now 0  mean wait 1  longest wait 2  served 2\n"
                    "store \"shelf\"  capacity 3  utilisation 0  used 0  most used 0\n"
                    "    line  mean length 0  longest 0  now 0  mean wait 0  longest wait 0  served 0\n"));
    sim.clear_statistics();
    CHECK_EQUAL(till.served(), 0u);
}

TEST("a motion moves with the clock, and may stop it early for an event of its own") {
    // A level that rises by 2 for each unit of time, and rings when it crosses 5.
    struct Rising : Motion {
        explicit Rising(Story &s) : story(&s) {}
        double advance(Simulation &sim, double from, double to) override {
            const double crossing = from + (5.0 - level) / 2.0;
            const double reached = level < 5.0 && crossing <= to ? crossing : to;
            level += 2.0 * (reached - from);
            if (reached == crossing)
                sim.at(reached, [this] { (*story)("crossed"); });
            return reached;
        }
        Story *story;
        double level = 0.0;
    };
    Simulation sim;
    Story story(sim);
    Rising rising(story);
    sim.set_motion(&rising);
    sim.start(say(sim, story, "one", 1.0));
    sim.start(say(sim, story, "three", 3.0));
    sim.run();
    CHECK_EQUAL(story.text(), std::string("1:one 2.5:crossed 3:three"));
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
    Story story(first);
    const auto outer = [](Simulation &sim, Simulation &inner, Story &told) -> Process {
        co_await wait(1.0);
        inner.start(say(inner, told, "inner", 5.0));
        inner.run(); // a simulation within a process of another
        told("outer");
        CHECK(sim.current().alive());
    };
    first.start(outer(first, second, story));
    first.run();
    CHECK_EQUAL(first.now(), 1.0);
    CHECK_EQUAL(second.now(), 5.0);
    CHECK_EQUAL(story.text(), std::string("1:inner 1:outer"));
}

namespace {

Process either(Simulation &, Story &story, const int &x, const bool &stop) {
    const auto which =
        co_await any_of(wait_until([&] { return x > 3; }), wait_until([&] { return x > 3 || stop; }));
    story("went on with " + std::to_string(which));
}

/// Gives back what it holds when its scope is left.
struct Held {
    Facility &facility;
    ~Held() { facility.release(); }
};

Process held(Simulation &, Story &story, Facility &facility, std::string name, double time) {
    co_await facility.seize();
    const Held held{facility};
    story(name + "+");
    co_await wait(time);
}

Process again_and_again(Simulation &, Story &story, Facility &facility, std::string name) {
    for (;;) {
        try {
            co_await facility.seize();
            co_await wait(5.0);
            facility.release();
            story(name + "-");
            co_return;
        } catch (const Interrupted &) {
            story(name + "!");
        }
    }
}

Process pushes_in(Simulation &, Story &story, Facility &facility, const ProcessRef &other) {
    co_await wait(1.0);
    co_await wait(4.0);
    co_await facility.preempt(5);
    story("pushed in");
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

Process impatient(Simulation &, Story &story, Facility &facility) {
    try {
        co_await any_of(facility.seize(), wait(-1.0));
    } catch (const TimeBackwards &) {
        story("refused");
    }
    co_await wait(100.0);
}

Process wants_all(Simulation &, Story &story, Facility &facility, Store &store) {
    try {
        co_await all_of(facility.seize(), store.enter(9));
    } catch (const BadRequest &) {
        story(facility.busy() ? "kept" : "given back");
    }
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

TEST("two conditions of one group may come true at once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        int x = 0;
        bool stop = false;
        sim.start(either(sim, story, x, stop));
        sim.start(either(sim, story, x, stop));
        sim.at(1.0, [&] { x = 5; });
        sim.at(2.0, [] {});
        sim.run();
        CHECK_EQUAL(story.text(), std::string("1:went on with 0 1:went on with 0"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a local's destructor may release what its process holds, however that ends") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        const ProcessRef a = sim.start(held(sim, story, till, "a", 10.0), "a");
        sim.start(held(sim, story, till, "b", 1.0), "b");
        const ProcessRef c = sim.start(held(sim, story, till, "c", 10.0), "c");
        sim.at(3.0, [&] { a.cancel(); });
        sim.run_until(5.0);
        c.cancel();
        CHECK(!till.busy());
        sim.start(held(sim, story, till, "d", 10.0), "d");
        sim.run(); // to the end: the facility goes before the simulation here
        CHECK_EQUAL(story.text(), std::string("0:a+ 3:b+ 4:c+ 5:d+"));
    });
    for (const Switching switching : available_switching()) {
        auto sim = std::make_unique<Simulation>(Options{.switching = switching});
        Story story(*sim);
        Facility till(*sim, "till");
        sim->start(held(*sim, story, till, "a", 10.0));
        sim->run_until(1.0);
        sim.reset(); // before what it holds
    }
}

TEST("a facility that breaks down takes back what was granted and not yet taken, once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        for (const char *name : {"a", "b", "c"})
            sim.start(again_and_again(sim, story, till, name), name);
        sim.start(lunch(sim, till));
        sim.run();
        CHECK_EQUAL(story.text(), std::string("5:a- 10:b- 10:c! 25:c-"));
        CHECK_EQUAL(till.served(), 3u);
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("who is pushed aside and interrupted between a grant and its turn has lost the facility, once") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        ProcessRef b;
        sim.start(use(sim, story, till, "a", 5.0));
        b = sim.start(again_and_again(sim, story, till, "b"));
        sim.start(pushes_in(sim, story, till, b));
        sim.start(use(sim, story, till, "c", 1.0));
        sim.run();
        CHECK_EQUAL(story.text(), std::string("0:a+ 5:a- 5:pushed in 5:b! 7:c+ 8:c- 13:b-"));
        CHECK_EQUAL(sim.alive(), 0u);
    });
}

TEST("a member of a group that cannot begin leaves nobody behind") {
    everywhere([](const Options &options) {
        Simulation sim(options);
        Story story(sim);
        Facility till(sim, "till");
        Store store(sim, 3, "store");
        sim.start(use(sim, story, till, "a", 5.0));
        sim.start(impatient(sim, story, till));
        sim.start(use(sim, story, till, "b", 1.0));
        sim.run_until(10.0);
        CHECK_EQUAL(story.text(), std::string("0:a+ 0:refused 5:a- 5:b+ 6:b-"));
        CHECK_EQUAL(till.waiting(), 0u);
        sim.start(wants_all(sim, story, till, store));
        sim.run_until(11.0);
        CHECK(story.text().ends_with(" 10:given back"));
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

namespace {

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

TEST("parts told again and again leave nothing on the stack, optimised or not") {
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
