// The forms of a coroutine's body that gcc 11 and 12 misplace, and those that look like them. Functions, not
// lambdas: gcc gives a lambda's body a scope of variables, and the fault does not show.
#include "check.hpp"
#include "event_trace.hpp"

#include "widthwise/sim/conditions.hpp"

#include <string>

using namespace widthwise::sim;

namespace {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
constexpr bool misplaces = true;
#else
constexpr bool misplaces = false;
#endif

// Nothing is declared at the outermost level, and a condition awaits.
Process in_if(Simulation &, int &done) {
    if (co_await any_of(wait(2.0)) == 0)
        done = 1;
}
Process in_while(Simulation &, int &done) {
    while (co_await any_of(wait(2.0)) == 0 && done < 1)
        done = 1;
}
Process in_for(Simulation &, int &done) {
    for (; co_await any_of(wait(2.0)) == 0 && done < 1;)
        done = 1;
}
Process in_do(Simulation &, int &done) {
    do
        ++done;
    while (co_await any_of(wait(2.0)) != 0);
}
Process in_switch(Simulation &, int &done) {
    switch (co_await any_of(wait(2.0))) {
    case 0:
        done = 1;
    }
}
Process in_block(Simulation &, int &done) {
    {
        if (co_await any_of(wait(2.0)) == 0)
            done = 1;
    }
}
Process in_try(Simulation &, int &done) {
    try {
        if (co_await any_of(wait(2.0)) == 0)
            done = 1;
    } catch (...) {
    }
}
Process after_others(Simulation &, int &done) {
    co_await wait(1.0);
    if (co_await any_of(wait(2.0)) == 0)
        done = 1;
}
Process in_many(Simulation &, int &done) {
    if (co_await any_of(wait(1.0)) != 0)
        done = 2;
    if (co_await any_of(wait(1.0)) != 0)
        done = 3;
    if (co_await any_of(wait(1.0)) != 0)
        done = 4;
    if (co_await any_of(wait(1.0)) != 0)
        done = 5;
    if (co_await any_of(wait(1.0)) != 0)
        done = 6;
    if (co_await any_of(wait(1.0)) != 0)
        done = 7;
    if (co_await any_of(wait(1.0)) != 0)
        done = 8;
    if (co_await any_of(wait(1.0)) != 0)
        done = 9;
    if (co_await any_of(wait(1.0)) == 0)
        done = 1;
}
// gcc 11 and 12 misplace a body by some bytes for each such switch; with five and six of them it could look
// alive.
#define SWITCH(value)                                                                                        \
    switch (co_await any_of(wait(1.0))) {                                                                    \
    case 0:                                                                                                  \
        done = value;                                                                                        \
    }
Process in_five_switches(Simulation &, int &done) {
    SWITCH(5);
    SWITCH(4);
    SWITCH(3);
    SWITCH(2);
    SWITCH(1);
}
Process in_six_switches(Simulation &, int &done) {
    SWITCH(6);
    SWITCH(5);
    SWITCH(4);
    SWITCH(3);
    SWITCH(2);
    SWITCH(1);
}
#undef SWITCH

// Something is declared, or the condition awaits no longer.
Process declares_before(Simulation &, int &done) {
    const auto first = co_await any_of(wait(2.0));
    if (first == 0)
        done = 1;
}
Process declares_something(Simulation &, int &done) {
    const int one = 1;
    if (co_await any_of(wait(2.0)) == 0)
        done = one;
}
Process declares_in_condition(Simulation &, int &done) {
    if (const auto first = co_await any_of(wait(2.0)); first == 0)
        done = 1;
}
Process declares_in_handler(Simulation &, int &done) {
    try {
        if (co_await any_of(wait(2.0)) == 0)
            done = 1;
    } catch (const Interrupted &) {
    }
}
Process has_no_condition(Simulation &, int &done) { done = static_cast<int>(co_await any_of(wait(2.0))) + 1; }
Process chooses(Simulation &, int &done) { done = co_await any_of(wait(2.0)) == 0 ? 1 : 2; }

Task<int> task_in_if(Simulation &, int value) {
    if (co_await any_of(wait(2.0)) == 0)
        co_return value;
    co_return 0;
}
Task<> task_in_while(Simulation &, int &done) {
    while (co_await any_of(wait(2.0)) == 0 && done < 1)
        done = 1;
}
Process awaits_tasks(Simulation &sim, int &done) {
    const int value = co_await task_in_if(sim, 1);
    co_await task_in_while(sim, done);
    done = value;
}

/// How a process of this body fares.
template <class Body> std::string outcome(const Options &options, Body body) {
    Simulation sim(options);
    sim.at(1.0, [] {});
    sim.run(); // to a time in the trace
    int done = 0;
    std::string trace;
    try {
        sim.start(body(sim, done), "asks");
        sim.run();
        trace = "done " + std::to_string(done);
    } catch (const BodyMisplaced &error) {
        trace = error.what();
    }
    if (!sim.processes().empty() || sim.alive() != 0)
        trace += "; something is left";
    // What follows has the memory of what was refused.
    int again = 0;
    sim.start(has_no_condition(sim, again));
    sim.run();
    if (again != 1)
        trace += "; nothing runs any more";
    return trace;
}

template <class Body> void is_refused(const Options &options, const char *name, Body body) {
    const std::string trace = outcome(options, body);
    const std::string refusal =
        std::string("the compiler has misplaced the body of the coroutine ") + name +
        ", which declares nothing and awaits in a condition (gcc 11 and 12 do, GCC's PR 106188): "
        "await before the condition, as in `const auto first = co_await ...; if (first == 1)`: "
        "no process at time 1, seed 42";
    CHECK_EQUAL(trace, misplaces ? refusal : "done 1");
}

} // namespace

#define IS_REFUSED(body) is_refused(options, #body, body)
#define RUNS(body) CHECK_EQUAL(outcome(options, body), std::string("done 1"))

TEST(
    "a body that the compiler misplaces is refused by name where it is made, and runs with other compilers") {
    event_trace::everywhere(
        [](const Options &options) {
            IS_REFUSED(in_if);
            IS_REFUSED(in_while);
            IS_REFUSED(in_for);
            IS_REFUSED(in_do);
            IS_REFUSED(in_switch);
            IS_REFUSED(in_block);
            IS_REFUSED(in_try);
            IS_REFUSED(after_others);
            IS_REFUSED(in_many);
            IS_REFUSED(in_five_switches);
            IS_REFUSED(in_six_switches);
        },
        {.seed = 42});
}

TEST("a body that is placed rightly is not refused, whatever it awaits in") {
    event_trace::everywhere([](const Options &options) {
        RUNS(declares_before);
        RUNS(declares_something);
        RUNS(declares_in_condition);
        RUNS(declares_in_handler);
        RUNS(has_no_condition);
        RUNS(chooses);
    });
}

TEST("a misplaced task is refused within the process that makes it") {
    event_trace::everywhere(
        [](const Options &options) {
            Simulation sim(options);
            int done = 0;
            sim.start(awaits_tasks(sim, done), "asks");
            std::string error = "none";
            try {
                sim.run();
            } catch (const BodyMisplaced &misplaced) {
                error = misplaced.what();
            }
            CHECK_EQUAL(sim.alive(), 0u);
            CHECK_EQUAL(done, misplaces ? 0 : 1);
            CHECK_EQUAL(error.find("the body of the coroutine task_in_if") != std::string::npos, misplaces);
            CHECK_EQUAL(error.find("process \"asks\" (1) at time 0, seed 42") != std::string::npos,
                        misplaces);
        },
        {.seed = 42});
}
