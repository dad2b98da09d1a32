#include "check.hpp"

#include "widthwise/sim/continuous.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/process.hpp"
#include "widthwise/sim/roots.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {

void turning(double, std::span<const double> y, std::span<double> rate) {
    rate[0] = -y[1];
    rate[1] = y[0];
}

/// Height and speed.
void falling(double, std::span<const double> y, std::span<double> rate) {
    rate[0] = y[1];
    rate[1] = -9.81;
}

Process reader(Simulation &sim, Continuous &circle, double every, double &worst) {
    for (;;) {
        co_await wait(every);
        worst = std::max(worst, std::fabs(circle[0] - math::cos(sim.now())));
        worst = std::max(worst, std::fabs(circle.integrator().time() - sim.now()));
    }
}

} // namespace

TEST("a zero between two points is found to the last digits") {
    const double root = brent([](double x) { return x * x * x - 2.0; }, 0.0, 2.0, -2.0, 6.0, 0.0);
    CHECK(std::fabs(root - 1.2599210498948732) < 1e-15);
    int calls = 0;
    const auto cliff = [&calls](double x) {
        ++calls;
        return x < 0.3 ? -1e-9 : 1e9; // nothing a parabola could follow
    };
    CHECK(std::fabs(brent(cliff, 0.0, 1.0, -1e-9, 1e9, 0.0) - 0.3) < 1e-15);
    CHECK(calls < 300);
    CHECK_EQUAL(brent([](double x) { return x; }, -1.0, 1.0, -1.0, 1.0, 0.0), 0.0);
}

TEST("processes see the continuous state at their own time") {
    for (const Method method : {Method::rke, Method::rkf8, Method::abm4, Method::rodas4}) {
        Simulation sim;
        Continuous circle(sim, method, turning, {1.0, 0.0}, {.relative = 1e-9, .absolute = 1e-9});
        double worst = 0.0;
        sim.start(reader(sim, circle, 0.37, worst), "reader");
        sim.run_until(10.0);
        CHECK(worst > 0.0);
        CHECK(worst < 1e-6);
        CHECK_EQUAL(circle.integrator().time(), 10.0);
    }
}

TEST("crossings are reported in their direction, at their times, in step with discrete events") {
    Simulation sim;
    Continuous circle(sim, Method::vern7, turning, {1.0, 0.0}, {.relative = 1e-12, .absolute = 1e-12});
    std::string trace;
    double worst = 0.0;
    const auto record = [&](const char *what, double time) {
        return [&trace, &worst, what, time](Simulation &s) {
            trace += what;
            worst = std::max(worst, std::fabs(std::remainder(s.now() - time, 2.0 * std::numbers::pi)));
        };
    };
    const auto height = [](double, auto y) { return y[1]; };
    const auto across = [](double, auto y) { return y[0]; };
    circle.when(height, Crossing::up, record("u", 0.0));
    circle.when(height, Crossing::down, record("d", std::numbers::pi));
    circle.when(across, Crossing::down, record("l", std::numbers::pi / 2));
    circle.when(across, Crossing::up, record("r", 3 * std::numbers::pi / 2));
    sim.at(1.0, [&] { trace += "1"; });
    sim.at(4.0, [&] { trace += "4"; });
    sim.run_until(4.2 * std::numbers::pi);
    CHECK_EQUAL(trace, std::string("1ld4ruldru"));
    CHECK(worst < 1e-10);
}

TEST("a crossing that a discrete event falls beside is reported once, by every method") {
    constexpr Method methods[] = {Method::euler, Method::rke,   Method::rkf3,  Method::rkf5, Method::rkf8,
                                  Method::tsit5, Method::vern7, Method::vern8, Method::abm4, Method::rodas4};
    for (const Method method : methods)
        for (int i = 1; i <= 20; ++i)
            for (const int looks : {1, 3, 10}) {
                // The tank is full at one of the looks: they are as far apart as their sums are rounded.
                const double rate = 0.05 * i;
                Simulation sim;
                Continuous tank(sim, method,
                                [rate](double, auto, auto to) {
                                    to[0] = rate;
                                    to[1] = 0.0;
                                },
                                {0.0, 0.0});
                int full = 0;
                tank.when([](double, auto y) { return y[0] - 1.0; }, i % 2 ? Crossing::up : Crossing::either,
                          [&](Simulation &) { ++full; });
                const double between = 1.0 / rate / looks;
                double summed = 0.0;
                for (int look = 1; look <= looks + 2; ++look) {
                    summed += between;
                    sim.at(i % 3 ? summed : look * between, [&] { tank.set(1, tank[1] + 1.0); });
                }
                sim.run_until(1.6 / rate);
                CHECK_EQUAL(full, 1);
            }
}

TEST("a guard that turns round at its crossing, or is set there, crosses again") {
    Simulation sim;
    Continuous tank(sim, Method::rke,
                    [](double, auto y, auto rate) {
                        rate[0] = y[1];
                        rate[1] = 0.0;
                    },
                    {0.0, 0.65});
    std::string trace;
    const auto guard = [](double, auto y) { return y[0] - 1.0; };
    const double full = 1.0 / 0.65;
    tank.when(guard, Crossing::up, [&](Simulation &) { trace += "u"; });
    tank.when(guard, Crossing::down, [&](Simulation &) { trace += "d"; });
    sim.at(std::nextafter(full, 2.0), [&] { tank.set(0, 0.0); });
    sim.at(std::nextafter(2.0 * full, 4.0), [&] { tank.set(1, -0.65); });
    sim.at(3.0 * full, [&] { tank.set(1, 0.65); });
    sim.run_until(2.0 * full - 0.01);
    CHECK_EQUAL(trace, std::string("u"));
    sim.run_until(3.5 * full);
    CHECK(trace == "uu" || trace == "uud"); // turned round at the crossing
    sim.run_until(5.0 * full);
    CHECK(trace == "uuu" || trace == "uudu");
}

TEST("a guard that is flat where it crosses is located on the integrator's own steps, too") {
    for (const Method method : {Method::euler, Method::rkf8, Method::vern7, Method::vern8}) {
        Simulation sim;
        Continuous circle(sim, method, turning, {0.0, -1.0}, {.relative = 1e-4, .absolute = 1e-4});
        int reported = 0;
        const auto flat = [](double, auto y) { return (y[0] - 0.6) * (y[0] - 0.6) * (y[0] - 0.6); };
        circle.when(flat, Crossing::up, [&](Simulation &) {
            ++reported;
            check::near(__FILE__, __LINE__, circle[0], 0.6, 1e-12);
        });
        sim.run_until(4.0);
        CHECK_EQUAL(reported, 1);
    }
}

TEST("a guard that touches zero from where it is not watched, or jumps over it, is not reported") {
    Simulation sim;
    Continuous line(sim, Method::rkf5, [](double, auto, auto rate) { rate[0] = 1.0; }, {-2.0});
    int reported = 0;
    line.when([](double, auto y) { return y[0]; }, Crossing::either, [&](Simulation &) { ++reported; });
    sim.at(1.0, [&] { line.set(0, 1.0); });  // over it
    sim.at(3.0, [&] { line.set(0, -1.0); }); // and back
    sim.run_until(3.5);
    CHECK_EQUAL(reported, 0);
    sim.run_until(5.0);
    CHECK_EQUAL(reported, 1);
    CHECK_EQUAL(line[0], 1.0);
}

TEST("each impact of a bouncing ball is where the closed form has it") {
    Simulation sim;
    Continuous ball(sim, Method::rke, falling, {1.0, 0.0});
    std::vector<double> impacts;
    ball.when([](double, auto y) { return y[0]; }, Crossing::down,
              [&](Simulation &s) {
                  impacts.push_back(s.now());
                  ball.set(1, -0.8 * ball[1]);
              });
    sim.run_until(3.5);
    const double fall = std::sqrt(2.0 / 9.81);
    double expected = fall;
    double flight = 2.0 * fall;
    CHECK(impacts.size() >= 8);
    for (const double impact : impacts) {
        CHECK(std::fabs(impact - expected) < 1e-11);
        flight *= 0.8;
        expected += flight;
    }
}

TEST("a state that is no number comes out of run, with model time and seed") {
    Simulation sim(Options{.seed = 7});
    Continuous bad(
        sim, Method::tsit5,
        [](double t, auto, auto rate) { rate[0] = t < 2.5 ? 1.0 : std::numeric_limits<double>::quiet_NaN(); },
        {0.0});
    try {
        sim.run_until(5.0);
        check::fail(__FILE__, __LINE__, "NaN went unnoticed");
    } catch (const BadState &error) {
        CHECK(std::fabs(error.where().time - 2.5) < 1e-6);
        CHECK_EQUAL(error.where().seed, 7u);
    }
    CHECK_THROWS(bad.set(1, 0.0), BadRequest);
    CHECK_THROWS(sim.run_until(6.0), WrongState);
}

TEST("a derivative that becomes no number is a bad state in every method") {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        for (const Method method :
             {Method::euler, Method::rke, Method::tsit5, Method::abm4, Method::rodas4}) {
            Simulation sim;
            const Continuous model(sim, method,
                                   [&](double t, auto, auto rate) { rate[0] = t > 0.5 ? bad : 1.0; }, {1.0});
            CHECK_THROWS(sim.run_until(2.0), BadState);
        }
}

TEST("after a step the state is known within it") {
    Simulation sim;
    Continuous circle(sim, Method::vern8, turning, {1.0, 0.0}, {.relative = 1e-12, .absolute = 1e-12});
    double cubic = 0.0;
    double dense = 0.0;
    int steps = 0;
    circle.after_steps([&](Simulation &) {
        const double begin = circle.integrator().last_time();
        const double middle = 0.5 * (begin + circle.integrator().time());
        std::vector<double> state(2);
        circle.interpolate(middle, state);
        cubic = std::max(cubic, std::fabs(state[0] - math::cos(middle)));
        circle.dense(middle, state);
        dense = std::max(dense, std::fabs(state[0] - math::cos(middle)));
        ++steps;
        return false;
    });
    sim.run_until(10.0);
    CHECK(steps > 5);
    CHECK(dense < 1e-11);
    CHECK(cubic > 1e-7 && cubic < 1e-2);
}

TEST("step() is one event, wherever in the motion it comes up") {
    Simulation sim;
    Continuous ball(sim, Method::rke, falling, {1.0, 0.0});
    int bounces = 0;
    ball.when([](double, auto y) { return y[0]; }, Crossing::down,
              [&](Simulation &) {
                  ball.set(1, -ball[1]);
                  ++bounces;
              });
    sim.at(10.0, [](Simulation &s) { s.stop(); });
    for (int steps = 1; steps <= 5; ++steps) {
        CHECK(sim.step());
        CHECK_EQUAL(bounces, steps);
        CHECK_EQUAL(sim.events(), static_cast<std::uint64_t>(steps));
    }
    CHECK(sim.now() > 4.0 && sim.now() < 4.1); // nine times the fall of sqrt(2 / 9.81)
}

TEST("a simulation has one continuous model at a time") {
    Simulation sim;
    {
        Continuous circle(sim, Method::rke, turning, {1.0, 0.0});
        CHECK_THROWS(Continuous(sim, Method::rke, turning, {1.0, 0.0}), WrongState);
        sim.run_until(1.0);
        CHECK(std::fabs(circle[0] - math::cos(1.0)) < 1e-5);
    }
    Continuous later(sim, Method::rke, turning, {1.0, 0.0});
    sim.run_until(2.0);
    CHECK(std::fabs(later[0] - math::cos(1.0)) < 1e-5);
}

TEST("a state that is no number at the beginning names the simulation's seed") {
    Simulation sim(Options{.seed = 42});
    try {
        const Continuous never(sim, Method::rke, turning, {1.0, std::numeric_limits<double>::quiet_NaN()});
        CHECK(false);
    } catch (const BadState &error) {
        CHECK_EQUAL(std::string(error.what()),
                    std::string("the state is nan in component 1: no process at time 0, seed 42"));
    }
}

TEST("a guard that jumps, or is steep, is located as any other") {
    const double pi = std::numbers::pi;
    using Guard = Continuous::Guard;
    const Guard guards[] = {
        [](double, auto y) { return y[0] >= 0.6 ? 1.0 : -1.0; },
        [](double, auto y) { return y[0] >= 0.6 ? 0.0 : -1.0; },
        [](double, auto y) { return y[0] >= 0.6 ? 1.0 : -1e-9; },
        [](double, auto y) { return y[0] >= 0.6 ? y[0] - 0.5 : y[0] - 2.0; },
        [](double, auto y) { return std::tanh(1e6 * (y[0] - 0.6)); },
    };
    for (const Guard &guard : guards)
        for (const Method method : {Method::rkf5, Method::vern8, Method::rodas4}) {
            Simulation sim;
            Continuous circle(sim, method, turning, {0.0, -1.0}, {.relative = 1e-9, .absolute = 1e-9});
            std::vector<double> times;
            circle.when(guard, Crossing::up, [&](Simulation &s) {
                CHECK(circle[0] > 0.6 - 1e-12);
                times.push_back(s.now());
            });
            sim.run_until(2.5 * pi); // the state's first component is the time's sine
            CHECK_EQUAL(times.size(), 2u);
            for (std::size_t i = 0; i < times.size(); ++i)
                check::near(__FILE__, __LINE__, times[i], std::asin(0.6) + 2.0 * pi * static_cast<double>(i),
                            1e-6);
        }
}

TEST("a crossing is on the integrator's own steps, however far off their cubic is") {
    const double first = std::asin(0.9);
    for (const Crossing crossing : {Crossing::up, Crossing::down, Crossing::either})
        for (const double step : {0.0, 2.5}) {
            Simulation sim;
            Continuous circle(sim, Method::vern8, turning, {0.0, -1.0}, {.relative = 1e-3, .step = step});
            int found = 0;
            const auto guard = [](double, auto y) { return y[0] - 0.9; };
            circle.when(guard, crossing, [&](Simulation &s) {
                ++found;
                CHECK(std::fabs(circle[0] - 0.9) < 1e-9);
                const double turn = std::fmod(s.now(), 2.0 * std::numbers::pi);
                check::near(__FILE__, __LINE__, turn, circle[1] < 0.0 ? first : std::numbers::pi - first,
                            1e-2);
            });
            sim.run_until(10.0);
            CHECK(found >= 1);
        }
}

TEST("where only the cubic of a step crosses, no action is called, and other guards are located") {
    // Some of the angles are passed between where the cubic crosses and where that is known.
    constexpr int angles = 24;
    for (int i = 0; i < 3 * angles; ++i) {
        const Crossing crossing = std::array{Crossing::up, Crossing::down, Crossing::either}.at(i % 3);
        const double angle = std::numbers::pi * (i / 3) / angles;
        Simulation sim;
        Continuous circle(sim, Method::vern8, turning, {0.0, -1.0}, {.relative = 1e-3, .step = 2.5});
        int left = 0;
        circle.when([](double, auto y) { return y[0] * y[0] + y[1] * y[1] - 0.9; }, crossing,
                    [&](Simulation &) { ++left; });
        std::vector<double> zeros;
        circle.when([angle](double, auto y) { return y[0] * std::cos(angle) + y[1] * std::sin(angle); },
                    Crossing::either, [&](Simulation &s) { zeros.push_back(s.now()); });
        sim.run_until(10.0);
        CHECK_EQUAL(left, 0);
        CHECK(zeros.size() == 3 || zeros.size() == 4);
        for (const double zero : zeros) {
            const double half_turns = (zero - angle) / std::numbers::pi;
            CHECK(std::fabs(half_turns - std::round(half_turns)) < 3e-3);
        }
    }
}

TEST("a model runs up to the far end of time, or until it is stopped") {
    Simulation sim;
    Continuous circle(sim, Method::rke, turning, {1.0, 0.0});
    circle.when([](double, auto y) { return y[0]; }, Crossing::down, [](Simulation &s) { s.stop(); });
    sim.run_until(1e300);
    check::near(__FILE__, __LINE__, sim.now(), 0.5 * std::numbers::pi, 1e-5);
}
