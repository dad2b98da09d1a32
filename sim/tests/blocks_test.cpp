#include "check.hpp"

#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/math.hpp"
#include "widthwise/sim/second_order.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {

const Control tight = {.relative = 1e-11, .absolute = 1e-12};

/// A diagram with x = sin t, computed from the time.
struct Swing {
    Simulation sim;
    Diagram d;
    Signal x;
    Swing() : d(sim, Method::vern7, tight), x(d.function([](double t) { return math::sin(t); }, d.time())) {}

    double integral(Signal of, double end) {
        const Signal whole = d.integrator(of, 0.0);
        d.start();
        sim.run_until(end);
        return whole.value();
    }
};

std::string complaint(const std::function<void()> &deed) {
    try {
        deed();
    } catch (const SimulationError &error) {
        return error.what();
    }
    return "";
}

} // namespace

TEST("an oscillator written as an expression moves as its closed form") {
    Simulation sim;
    Diagram d(sim, Method::vern8, tight);
    const Signal x = d.integrator(1.0);
    const Signal v = d.integrator(0.0);
    d.connect(x, v);
    d.connect(v, -4.0 * x - 0.4 * v);
    d.start();
    sim.run_until(3.0);
    const double omega = std::sqrt(4.0 - 0.04);
    check::near(__FILE__, __LINE__, x.value(),
                std::exp(-0.6) * (std::cos(3.0 * omega) + 0.2 / omega * std::sin(3.0 * omega)), 1e-9);
}

TEST("a second-order system is integrated as it is written") {
    Integrator pendulum(Method::vern8, second_order([](double, auto x, auto v, auto a) {
                            a[0] = -x[0] - 0.0 * v[0];
                            a[1] = -9.0 * x[1];
                        }),
                        phase({1.0, 0.0}, {0.0, 3.0}), 0.0, tight);
    pendulum.advance(2.0);
    check::near(__FILE__, __LINE__, pendulum.state()[0], std::cos(2.0), 1e-10);
    check::near(__FILE__, __LINE__, pendulum.state()[1], std::sin(6.0), 1e-10);
    check::near(__FILE__, __LINE__, pendulum.state()[2], -std::sin(2.0), 1e-10);
    Integrator odd(Method::rke, second_order([](double, auto, auto, auto) {}), {1.0, 2.0, 3.0});
    CHECK_THROWS(odd.advance(1.0), BadRequest);
}

TEST("a variable changed by a process takes effect at that time") {
    Simulation sim;
    Diagram d(sim, Method::tsit5, tight);
    const Signal slope = d.variable(1.0);
    const Signal x = d.integrator(2.0 * slope / 4.0 + (slope - 1.0), 0.0);
    d.start();
    sim.at(1.5, [&] { d.set(slope, -3.0); });
    sim.at(2.0, [&] { d.set(x, 10.0); });
    sim.run_until(1.5);
    check::near(__FILE__, __LINE__, x.value(), 0.75, 1e-13);
    sim.run_until(3.0);
    check::near(__FILE__, __LINE__, x.value(), 10.0 - 5.5, 1e-12);
}

TEST("a limit, a dead zone and a polyline have their kinks where they are crossed") {
    const double pi = 3.14159265358979323846;
    // The integral of sin cut at 1/2: two thirds of the half wave are level.
    const double level = 2.0 * (1.0 - std::cos(pi / 6.0)) + 0.5 * (2.0 * pi / 3.0);
    {
        Swing s;
        check::near(__FILE__, __LINE__, s.integral(s.d.limit(s.x, -0.25, 0.5), pi), level, 1e-9);
    }
    {
        Swing s;
        check::near(__FILE__, __LINE__, s.integral(s.d.dead_zone(s.x, -0.25, 0.5), pi), 2.0 - level, 1e-9);
    }
    {
        Swing s; // |x|, as far as 1
        check::near(__FILE__, __LINE__,
                    s.integral(s.d.polyline(s.x, {{-1.0, 1.0}, {0.0, 0.0}, {1.0, 1.0}}), 2.0 * pi), 4.0,
                    1e-8);
    }
}

TEST("a quantiser, a relay and friction jump where they should and nowhere else") {
    const double pi = 3.14159265358979323846;
    {
        Swing s; // 0 to asin(1/2), then 1
        check::near(__FILE__, __LINE__, s.integral(s.d.quantiser(s.x, 1.0), pi), 2.0 * pi / 3.0, 1e-9);
    }
    {
        Swing s; // on at 1/2, off at -1/2: from pi/6 to 7 pi/6
        check::near(__FILE__, __LINE__, s.integral(s.d.relay(s.x, -0.5, 0.5, 0.0, 1.0), 2.0 * pi), pi, 1e-9);
    }
    {
        Swing
            s; // three levels: up at pi/3 (of x = .866), down at 5 pi/6 (.5), to -1 at 4 pi/3, up at 11 pi/6
        const double r = std::sqrt(0.75);
        const Signal relay = s.d.relay(s.x, {-r, -0.5, 0.5, r, -10.0, 1.0});
        check::near(__FILE__, __LINE__, s.integral(relay, 2.0 * pi), pi / 2.0 - 10.0 * (pi / 2.0), 1e-8);
    }
    {
        Swing s; // sin + sign(sin) * 2 or 3
        check::near(__FILE__, __LINE__, s.integral(s.d.friction(s.x, -3.0, 2.0), 1.5 * pi),
                    1.0 + 2.0 * pi - 1.5 * pi, 1e-9);
    }
}

TEST("backlash stands still while x turns round, and hysteresis ends at its levels") {
    const double pi = 3.14159265358979323846;
    {
        Swing s;
        const Signal y = s.d.backlash(s.x, -0.25, 0.25, 2.0);
        s.d.start();
        s.sim.run_until(pi / 2.0 + 0.3); // x has turned; the play is not yet taken up
        check::near(__FILE__, __LINE__, y.value(), 1.5, 1e-9);
        s.sim.run_until(pi);
        check::near(__FILE__, __LINE__, y.value(), 0.5, 1e-9);
        s.sim.run_until(2.0 * pi);
        check::near(__FILE__, __LINE__, y.value(), -0.5, 1e-9);
    }
    {
        Swing s;
        const Signal y = s.d.hysteresis(s.x, -0.25, 0.25, 2.0, -1.0, 1.0);
        s.d.start();
        s.sim.run_until(pi / 2.0);
        check::near(__FILE__, __LINE__, y.value(), 1.0, 1e-9);
        s.sim.run_until(pi - std::asin(0.3)); // leaves the level where x = 1/4
        check::near(__FILE__, __LINE__, y.value(), 1.0, 1e-9);
        s.sim.run_until(pi);
        check::near(__FILE__, __LINE__, y.value(), 0.5, 1e-9);
    }
}

TEST("a relay in a circle with an integrator switches for ever, at the times of the closed form") {
    // x' = -relay(x): between -1 and 1, a period of 4.
    Simulation sim;
    Diagram d(sim, Method::rke);
    const Signal x = d.integrator(0.0);
    const Signal relay = d.relay(x, -1.0, 1.0, -1.0, 1.0);
    d.connect(x, -relay);
    d.start();
    std::vector<double> turns;
    int switched = 0;
    d.when(relay, Crossing::either, [&](Simulation &s) {
        check::near(__FILE__, __LINE__, s.now(), 1.0 + 2.0 * switched, 1e-9);
        check::near(__FILE__, __LINE__, relay.value(), switched % 2 == 0 ? 1.0 : -1.0, 0.0);
        ++switched;
    });
    for (const double t : {0.9, 1.1, 2.9, 3.1, 4.9, 101.0}) {
        sim.run_until(t);
        turns.push_back(x.value());
    }
    const double expected[] = {0.9, 0.9, -0.9, -0.9, 0.9, 1.0};
    for (std::size_t i = 0; i < turns.size(); ++i)
        check::near(__FILE__, __LINE__, turns[i], expected[i], 1e-9);
    sim.run_until(102.0);
    CHECK_EQUAL(switched, 51);
}

TEST("what jumps through zero since a block switches is a crossing, called once at that time") {
    struct Case {
        double time;
        Signal (*guard)(Diagram &, Signal);
    };
    const Case cases[] = {
        {3.0, [](Diagram &d, Signal x) { return d.relay(x, 1.0, 3.0, -1.0, 1.0); }},
        {3.0,
         [](Diagram &d, Signal x) {
             return d.relay(x, {-1.0, 0.5, 1.0, 3.0, -1.0, 1.0}) - 0.5;
         }},
        {2.5, [](Diagram &d, Signal x) { return d.quantiser(x, 1.0) - 2.5; }},
        {2.0, [](Diagram &d, Signal x) { return d.friction(x - 2.0, -1.0, 1.0); }},
        {4.0, [](Diagram &d, Signal x) { return d.z_delay(x, 1.0) - 2.5; }},
        {4.0, [](Diagram &d, Signal x) { return d.delay(d.relay(x, 1.0, 3.0, -1.0, 1.0), 1.0, -1.0); }},
        {3.0, [](Diagram &d, Signal x) { return x - 3.0 + d.relay(x, 1.0, 3.0, 0.0, 1.0); }},
    };
    for (const Case &each : cases)
        for (const Method method : {Method::euler, Method::rke, Method::vern8, Method::abm4, Method::rodas4})
            for (const Crossing crossing : {Crossing::up, Crossing::down, Crossing::either}) {
                Simulation sim;
                Diagram d(sim, method);
                const Signal guard = each.guard(d, d.integrator(d.constant(1.0), 0.0));
                d.start();
                int calls = 0;
                d.when(guard, crossing, [&](Simulation &s) {
                    ++calls;
                    CHECK(guard.value() > -1e-9);
                    check::near(__FILE__, __LINE__, s.now(), each.time, 1e-9);
                });
                sim.run_until(5.5);
                CHECK_EQUAL(calls, crossing == Crossing::down ? 0 : 1);
            }
}

TEST("what jumps at one time is looked at together, and what set() moves through zero does not cross") {
    Simulation sim;
    Diagram d(sim);
    const Signal x = d.integrator(d.constant(1.0), 0.0);
    const Signal stairs = d.z_delay(x, 1.0);
    const Signal none = d.delay(stairs, 1.0) - d.z_delay(stairs, 1.0); // both jump at whole times
    const Signal variable = d.variable(-1.0);
    const Signal switched = d.relay(variable, -0.5, 0.5, -1.0, 1.0);
    const Signal later = d.delay(switched, 1.0, -1.0);
    const Signal unmoved[] = {none + 0.5, none - 0.5, variable, switched};
    d.start();
    int calls = 0;
    const auto count = [&](Simulation &) { ++calls; };
    for (const Signal same : unmoved)
        d.when(same, Crossing::either, count);
    std::vector<double> heard;
    d.when(later, Crossing::up, [&](Simulation &s) { heard.push_back(s.now()); });
    sim.at(2.0, [&] { d.set(variable, 1.0); });
    sim.run_until(5.0);
    CHECK_EQUAL(calls, 0);
    CHECK_EQUAL(heard.size(), 1u);
    for (const double time : heard)
        check::near(__FILE__, __LINE__, time, 3.0, 1e-12);
}

TEST("friction may act in one direction only, and never with the movement") {
    const double pi = 3.14159265358979323846;
    Swing s;
    check::near(__FILE__, __LINE__, s.integral(s.d.friction(s.x, 0.0, 2.0), 2.0 * pi), 2.0 * pi, 1e-9);
    Swing other;
    CHECK_THROWS(other.d.friction(other.x, -1.0, -0.5), BadRequest);
    CHECK_THROWS(other.d.friction(other.x, 0.5, 1.0), BadRequest);
    CHECK_THROWS(other.d.friction(other.x, std::numeric_limits<double>::quiet_NaN(), 1.0), BadRequest);
}

TEST("friction brings a body to rest and keeps it there, to and fro, in finitely many steps") {
    Simulation sim;
    Diagram d(sim, Method::rke, tight);
    const Signal v = d.integrator(1.0);
    d.connect(v, -d.friction(v, -1.0, 1.0)); // at rest after ln 2
    d.start();
    sim.run_until(0.5);
    check::near(__FILE__, __LINE__, v.value(), 2.0 * std::exp(-0.5) - 1.0, 1e-9);
    sim.run_until(3.0);
    check::near(__FILE__, __LINE__, v.value(), 0.0, 1e-3);
}

TEST("a delayed equation follows the polynomials of the method of steps") {
    // y' = -y(t - 1), y = 1 before 0.
    Simulation sim;
    Diagram d(sim, Method::rkf5, {.relative = 1e-10, .absolute = 1e-10});
    const Signal y = d.integrator(1.0);
    d.connect(y, -d.delay(y, 1.0, 1.0));
    d.start();
    sim.run_until(0.5);
    check::near(__FILE__, __LINE__, y.value(), 0.5, 1e-9);
    sim.run_until(2.0);
    check::near(__FILE__, __LINE__, y.value(), -0.5, 1e-9);
    sim.run_until(3.0);
    check::near(__FILE__, __LINE__, y.value(), 1.0 - 3.0 + 2.0 - 1.0 / 6.0, 1e-9);
    // sum (-1)^k (t - k + 1)^k / k! up to k = floor(t) + 1
    sim.run_until(6.0);
    double exact = 0.0;
    double factorial = 1.0;
    for (int k = 0; k <= 7; ++k) {
        factorial *= k > 0 ? k : 1;
        exact += (k % 2 == 0 ? 1.0 : -1.0) * std::pow(6.0 - k + 1.0, k) / factorial;
    }
    check::near(__FILE__, __LINE__, y.value(), exact, 5e-8);
}

TEST("what comes out of a delay is as accurate as the steps are asked to be, by every method") {
    for (const Method method : {Method::rkf3, Method::rke, Method::rkf5, Method::tsit5, Method::vern7,
                                Method::rkf8, Method::vern8, Method::abm4, Method::rodas4})
        for (const double tolerance : {1e-5, 1e-7, 1e-9}) {
            Simulation sim;
            Diagram d(sim, method, {.relative = 0.0, .absolute = tolerance});
            // sin t, and a signal that no state has: sin 3t of the states, 4 later.
            const Signal x = d.integrator(0.0);
            const Signal v = d.integrator(1.0);
            d.connect(x, v);
            d.connect(v, -1.0 * x);
            const Signal late = d.delay(3.0 * x - 4.0 * x * x * x, 4.0);
            const Signal other =
                d.delay(d.function([](double t) { return math::sin(2.0 * t); }, d.time()), 4.0);
            d.start();
            double worst = 0.0;
            double input = 0.0;
            for (double t = 4.1; t < 12.0; t += 0.07) {
                sim.run_until(t);
                input = std::max(input, std::fabs(x.value() - std::sin(t)));
                worst = std::max(worst, std::fabs(late.value() - std::sin(3.0 * (t - 4.0))));
                worst = std::max(worst, std::fabs(other.value() - std::sin(2.0 * (t - 4.0))));
            }
            // What goes in is off by as much as its equations, of which three times is in the first signal.
            if (!(worst < 3.0 * tolerance + 10.0 * input))
                check::fail(__FILE__, __LINE__,
                            std::string(name_of(method)) + " at " + std::to_string(tolerance * 1e9) +
                                "e-9 is off by " + std::to_string(worst * 1e9) + "e-9");
        }
}

TEST("a delayed equation keeps its method's order") {
    const auto error = [](Method method, double step) {
        Simulation sim;
        Diagram d(sim, method, {.step = step});
        const Signal x = d.integrator(0.0);
        const Signal v = d.integrator(3.0);
        d.connect(x, v);
        d.connect(v, -9.0 * x);
        const Signal whole = d.integrator(d.delay(x, 2.0), 0.0); // of sin 3(t - 2), from 2 on
        d.start();
        sim.run_until(7.0);
        return std::fabs(whole.value() - (1.0 - std::cos(15.0)) / 3.0);
    };
    struct Row {
        Method method;
        double step;
    };
    for (const Row row :
         {Row{Method::euler, 1.0 / 64.0}, Row{Method::rkf3, 1.0 / 16.0}, Row{Method::rke, 1.0 / 8.0},
          Row{Method::tsit5, 1.0 / 8.0}, Row{Method::rkf5, 1.0 / 8.0}, Row{Method::vern7, 1.0 / 4.0},
          Row{Method::vern8, 1.0 / 4.0}, Row{Method::rkf8, 1.0 / 4.0}}) {
        const double order = std::log2(error(row.method, row.step) / error(row.method, 0.5 * row.step));
        if (!(order > order_of(row.method) - 0.5))
            check::fail(__FILE__, __LINE__,
                        std::string(name_of(row.method)) + " has order " + std::to_string(order));
    }
}

TEST("steps are chosen for what a delay remembers, too") {
    // Nothing but the delay needs short steps: what is integrated has none of it.
    const auto steps = [](double tolerance) {
        Simulation sim;
        Diagram d(sim, Method::vern7, {.relative = 0.0, .absolute = tolerance});
        (void)d.integrator(d.constant(1.0), 0.0);
        const Signal late = d.delay(d.function([](double t) { return math::sin(8.0 * t); }, d.time()), 6.0);
        d.start();
        double worst = 0.0;
        for (double t = 6.1; t < 12.0; t += 0.07) {
            sim.run_until(t);
            worst = std::max(worst, std::fabs(late.value() - std::sin(8.0 * (t - 6.0))));
        }
        CHECK(worst < 3.0 * tolerance);
        return d.motion().integrator().steps();
    };
    CHECK(steps(1e-10) > steps(1e-4));
}

TEST("a delay that no step is short enough for is an error") {
    Simulation sim(Options{.seed = 42});
    Diagram d(sim, Method::rke, {.relative = 0.0, .absolute = 1e-9});
    // It jumps at 1, and no block announces it.
    const Signal jump = d.function([](double t) { return t < 1.0 ? 0.0 : 1.0; }, d.time());
    (void)d.integrator(d.delay(jump, 5.0), 0.0);
    d.start();
    const std::string message = complaint([&] { sim.run_until(3.0); });
    CHECK(message.find("what a delay remembers is not accurate enough") != std::string::npos);
    CHECK(message.find("seed 42") != std::string::npos);
}

TEST("a delay brings a jump through, later") {
    Simulation sim;
    Diagram d(sim);
    const Signal step = d.variable(0.0);
    const Signal later = d.delay(step, 0.5);
    const Signal whole = d.integrator(later, 0.0);
    d.start();
    sim.at(1.0, [&] { d.set(step, 2.0); });
    sim.run_until(1.25);
    check::near(__FILE__, __LINE__, later.value(), 0.0, 0.0);
    sim.run_until(3.0);
    check::near(__FILE__, __LINE__, later.value(), 2.0, 1e-12);
    check::near(__FILE__, __LINE__, whole.value(), 3.0, 1e-12);
}

TEST("a jump passes any number of delays, located exactly, whatever their lags are") {
    // (0.3 + 1) - 1 is not 0.3, and 2 + 1.21 + 0.5 is the sum of no one delay's lags.
    struct Row {
        double when;
        std::vector<double> lags;
    };
    for (const Row &row : {Row{0.3, {1.0, 1.0}}, Row{2.0, {1.21, 0.5}}, Row{1.1, std::vector<double>(8, 0.5)},
                           Row{0.7, {0.1, 0.7, 1.9, 0.3, 0.1, 0.2}}})
        for (const Method method :
             {Method::rke, Method::rkf5, Method::tsit5, Method::vern8, Method::rodas4, Method::abm4}) {
            Simulation sim;
            Diagram d(sim, method);
            const Signal v = d.variable(3.0);
            Signal late = v;
            double out = row.when;
            for (const double lag : row.lags) {
                late = d.delay(2.0 * late - 3.0, lag, 3.0);
                out += lag;
            }
            const Signal whole = d.integrator(late, 0.0);
            d.start();
            sim.at(row.when, [&] { d.set(v, 2.0); });
            sim.run_until(out + 1.0);
            const double low = 3.0 - static_cast<double>(std::uint64_t{1} << row.lags.size());
            check::near(__FILE__, __LINE__, whole.value(), 3.0 * out + low, 1e-8);
        }
}

TEST("jumps at rounded times through delays of rounded lags are located, too") {
    Random random(3);
    for (int i = 0; i < 200; ++i) {
        const double when = (1 + random.below(30)) * 0.1;
        const double lag = (1 + random.below(30)) * 0.1;
        Simulation sim;
        Diagram d(sim);
        const Signal v = d.variable(3.0);
        const Signal whole = d.integrator(d.delay(d.delay(d.delay(v, lag, 3.0), lag, 3.0), lag, 3.0), 0.0);
        d.start();
        sim.at(when, [&] { d.set(v, 1.0); });
        const double out = when + 3.0 * lag;
        sim.run_until(out + 1.0);
        check::near(__FILE__, __LINE__, whole.value(), 3.0 * out + 1.0, 1e-11);
    }
}

TEST("a jump in a circle of delays is followed as long as it is one") {
    const auto circle = [](double share, double end) {
        Simulation sim;
        Diagram d(sim);
        const Signal v = d.variable(0.0);
        const Signal y = d.wire();
        d.connect(y, v + share * d.delay(y, 1.0));
        const Signal whole = d.integrator(y, 0.0);
        d.start();
        sim.at(0.3, [&] { d.set(v, 1.0); });
        sim.run_until(end);
        return std::pair{whole.value(), sim.events()};
    };
    double comb = 0.0;
    for (int k = 0; k < 12; ++k)
        comb += 2.0 * (1.0 - std::pow(0.5, k + 1));
    check::near(__FILE__, __LINE__, circle(0.5, 12.3).first, comb, 1e-11);
    check::near(__FILE__, __LINE__, circle(1.0, 12.3).first, 78.0, 1e-11);
    CHECK_EQUAL(circle(0.5, 1000.0).second, circle(0.5, 100.0).second); // it has become small
    CHECK(circle(1.0, 1000.0).second < 3000);                           // one a lag for each jump
}

TEST("what jumps behind a delay jumps when the delay brings the jump: relays and further delays") {
    Simulation sim;
    Diagram d(sim);
    const Signal v = d.variable(0.0);
    const Signal relay = d.relay(d.delay(v, 0.75), 0.4, 0.6, 0.0, 1.0);
    const Signal switched = d.integrator(relay, 0.0);
    const Signal later = d.integrator(d.delay(relay, 0.3), 0.0);
    d.start();
    sim.at(0.25, [&] { d.set(v, 1.0); });
    sim.at(1.5, [&] { d.set(v, 0.0); });
    sim.run_until(5.0);
    check::near(__FILE__, __LINE__, switched.value(), 1.25, 1e-12);
    check::near(__FILE__, __LINE__, later.value(), 1.25, 1e-12);
}

TEST("a sampled delay jumps behind delays, too") {
    Simulation sim;
    Diagram d(sim, Method::vern8);
    const Signal count = d.wire();
    const Signal sampled = d.z_delay(count, 0.3);
    d.connect(count, sampled + 1.0);
    const Signal whole = d.integrator(d.delay(d.delay(sampled, 0.47), 0.21), 0.0);
    d.start();
    sim.run_until(0.47 + 0.21 + 6.0);
    check::near(__FILE__, __LINE__, whole.value(), 0.3 * 190.0, 1e-11);
}

TEST("a sampled delay holds what was there one sampling ago") {
    Simulation sim;
    Diagram d(sim);
    const Signal x = d.integrator(d.constant(1.0), 0.0); // the time
    const Signal z = d.z_delay(x, 0.5, -1.0);
    d.start();
    std::vector<double> seen;
    for (const double t : {0.4, 0.6, 1.1, 1.4, 1.6}) {
        sim.run_until(t);
        seen.push_back(z.value());
    }
    const double expected[] = {-1.0, 0.0, 0.5, 0.5, 1.0};
    for (std::size_t i = 0; i < seen.size(); ++i)
        check::near(__FILE__, __LINE__, seen[i], expected[i], 1e-12);
}

TEST("sampled delays in a row and in a circle sample together, in whatever order they are made") {
    for (const bool first : {true, false}) {
        Simulation sim;
        Diagram d(sim);
        const Signal x = d.integrator(d.constant(1.0), 0.0); // the time
        const Signal wire = d.wire();
        const Signal before = d.z_delay(first ? x : wire, 1.0);
        const Signal behind = d.z_delay(first ? wire : x, 1.0);
        d.connect(wire, first ? before : behind);
        const Signal last = first ? behind : before;
        const Signal circle = d.wire();
        const Signal there = d.z_delay(circle, 1.0, 1.0);
        const Signal back = d.z_delay(there, 1.0, 2.0);
        d.connect(circle, back);
        const Signal counted = d.wire();
        const Signal count = d.z_delay(counted, 1.0);
        d.connect(counted, count + 1.0);
        d.start();
        sim.run_until(5.5);
        check::near(__FILE__, __LINE__, last.value(), 3.0, 1e-12);
        CHECK_EQUAL(there.value() + 10.0 * back.value(), 12.0);
        CHECK_EQUAL(count.value(), 5.0);
        sim.run_until(6.5);
        CHECK_EQUAL(there.value() + 10.0 * back.value(), 21.0);
    }
}

TEST("a quantiser takes what is far beyond its step, and refuses what has no nearest multiple") {
    const auto rounded = [](double x, double step) {
        Simulation sim(Options{.seed = 42});
        Diagram d(sim);
        const Signal q = d.quantiser(d.integrator(d.constant(1.0), x), step);
        d.start();
        sim.run_until(2.25 * step);
        return q.value();
    };
    CHECK_EQUAL(rounded(3000.0, 1e-6), 1e-6 * 3000000002.0);
    CHECK_THROWS(rounded(1e10, 1e-6), BadState);
    CHECK_EQUAL(rounded(-3e9, 1.0), -3e9 + 2.0);
}

TEST("a quantiser refuses NaN as such") {
    Simulation sim(Options{.seed = 42});
    Diagram d(sim);
    d.quantiser(d.function([](double t) { return t - std::numeric_limits<double>::quiet_NaN(); }, d.time()),
                1.0);
    CHECK_EQUAL(
        complaint([&] { d.start(); }),
        std::string("the function (1), which the block (2) takes in, is NaN: no process at time 0, seed 42"));
}

TEST("each solver finds what an algebraic loop equals") {
    for (const Solving method :
         {Solving::iterations, Solving::bisect, Solving::regula_falsi, Solving::newton}) {
        Simulation sim;
        Diagram d(sim, Method::rke, tight);
        const Signal t = d.time();
        const Signal z = d.loop({.method = method, .low = -2.0, .high = 2.0, .tolerance = 1e-13}, 0.5);
        const Signal cosine = d.function([](double x) { return math::cos(x); }, z);
        d.connect(z, cosine * (1.0 - 0.1 * t)); // z = (1 - t/10) cos z
        const Signal whole = d.integrator(z, 0.0);
        d.start();
        check::near(__FILE__, __LINE__, z.value(), 0.73908513321516064, 1e-12);
        sim.run_until(2.0);
        check::near(__FILE__, __LINE__, z.value() - 0.8 * std::cos(z.value()), 0.0, 1e-12);
        CHECK(whole.value() > 1.0 && whole.value() < 2.0 * 0.74);
    }
}

TEST("a loop within a loop is solved within it") {
    // a = (b + 1) / 3, b = (a + c) / 4, c = b / 2: three unknowns, two of them loops.
    Simulation sim;
    Diagram d(sim);
    const Signal a = d.loop({.method = Solving::newton, .tolerance = 1e-13});
    const Signal b = d.loop({.method = Solving::iterations, .tolerance = 1e-14});
    d.connect(a, (b + 1.0) / 3.0);
    d.connect(b, (a + b / 2.0) / 4.0);
    const Signal twice = 2.0 * a;
    d.start();
    check::near(__FILE__, __LINE__, twice.value(), 2.0 * 7.0 / 19.0, 1e-11);
    check::near(__FILE__, __LINE__, b.value(), 2.0 / 19.0, 1e-11);
}

TEST("a circle that nothing solves, and a search without an end, are errors that name the remedy") {
    {
        Simulation sim;
        Diagram d(sim);
        const Signal z = d.loop({});
        const Signal other = d.loop({});
        d.connect(z, other + 1.0);
        CHECK(complaint([&] { d.start(); }).find("loop (1) has no input") != std::string::npos);
    }
    {
        Simulation sim;
        Diagram d(sim);
        const Signal back = d.wire();
        d.connect(back, 0.5 * back + 1.0);
        CHECK_THROWS(d.start(), AlgebraicLoop);
    }
    {
        // The same circle through an integrator is none.
        Simulation sim;
        Diagram d(sim, Method::tsit5, tight);
        const Signal back = d.wire();
        const Signal x = d.integrator(-0.5 * back, 1.0);
        d.connect(back, 2.0 * x);
        d.start();
        sim.run_until(1.0);
        check::near(__FILE__, __LINE__, back.value(), 2.0 * std::exp(-1.0), 1e-9);
    }
    {
        Simulation sim;
        Diagram d(sim);
        const Signal z = d.loop({.method = Solving::iterations, .most = 50}, 1.0);
        d.connect(z, 2.0 * z + 1.0);
        CHECK_THROWS(d.start(), NoConvergence);
    }
    {
        Simulation sim;
        Diagram d(sim);
        const Signal z = d.loop({.method = Solving::bisect, .low = 2.0, .high = 3.0});
        d.connect(z, 0.5 * z);
        CHECK(complaint([&] { d.start(); }).find("no solution is known to lie between") != std::string::npos);
    }
    {
        Simulation sim;
        Diagram d(sim);
        Diagram other(sim);
        CHECK_THROWS(d.integrator(other.constant(1.0), 0.0), BadRequest);
        CHECK_THROWS(d.quantiser(d.constant(1.0), 0.0), BadRequest);
        CHECK_THROWS(d.delay(d.constant(1.0), 0.0), BadRequest);
        CHECK_THROWS(static_cast<void>(d.constant(1.0).value()), BadRequest);
        CHECK_THROWS(d.connect(d.constant(1.0), d.constant(1.0)), BadRequest);
    }
}

TEST("a diagram may go before its simulation, whatever is still scheduled for it") {
    Simulation sim;
    {
        Diagram d(sim);
        const Signal x = d.integrator(1.0);
        d.connect(x, -d.delay(x, 1.0, 1.0) + d.z_delay(x, 0.3));
        d.start();
        sim.run_until(2.5);
    }
    sim.run_until(10.0);
    CHECK_EQUAL(sim.now(), 10.0);
}

TEST("a diagram of every block has the same bits in every ABI") {
    Simulation sim(Options{.trace = true});
    Diagram d(sim, Method::tsit5, {.relative = 1e-8, .absolute = 1e-8});
    const Signal x = d.integrator(0.0);
    const Signal wave =
        d.function([](double t) { return 2.0 * math::sin(t) + math::cos(3.0 * t); }, d.time());
    const Signal z = d.loop({.method = Solving::regula_falsi, .low = -9.0, .high = 9.0});
    d.connect(z, 0.5 * d.function([](double v) { return math::cos(v); }, z) + 0.1 * wave);
    const Signal sum = d.limit(wave, -1.0, 1.5) + d.dead_zone(wave, -0.5, 0.5) + d.quantiser(wave, 0.5) +
                       d.relay(wave, -0.5, 0.5, -1.0, 1.0) + d.friction(wave, -0.1, 0.2) +
                       d.polyline(wave, {{-1.0, 0.0}, {0.0, 2.0}, {2.0, 1.0}}) +
                       d.hysteresis(wave, -0.2, 0.2, 1.0, -1.0, 1.0) + d.backlash(wave, -0.3, 0.3) +
                       d.delay(wave, 0.7) + d.z_delay(wave, 0.25) + z;
    d.connect(x, sum - x);
    d.start();
    check::Hash hash;
    for (double t = 0.25; t <= 10.0; t += 0.25) {
        sim.run_until(t);
        hash(x.value());
        hash(sum.value());
    }
    hash(sim.trace_hash());
    CHECK_GOLDEN("blocks.all", hash.value());
}
