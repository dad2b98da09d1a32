#include "check.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/runge_kutta.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {

constexpr Method all_methods[] = {Method::euler, Method::rke,   Method::rkf3,  Method::rkf5, Method::rkf8,
                                  Method::tsit5, Method::vern7, Method::vern8, Method::abm4, Method::rodas4};

void circle(double, std::span<const double> y, std::span<double> rate) {
    rate[0] = -y[1];
    rate[1] = y[0];
}

/// A nonlinear circle with explicit time, drawn to the unit circle from both sides.
void drawn_circle(double t, std::span<const double> y, std::span<double> rate) {
    const double x = y[0] - math::cos(t);
    const double off = 1.0 - y[0] * y[0] - y[1] * y[1];
    rate[0] = -y[1] + y[0] * off;
    rate[1] = y[0] + y[1] * off - 0.5 * x;
}

void drawn_circle_by(double t, std::span<const double> y, std::span<double> j, std::span<double> by_time) {
    const double off = 1.0 - y[0] * y[0] - y[1] * y[1];
    j[0] = off - 2.0 * y[0] * y[0];
    j[1] = -1.0 - 2.0 * y[0] * y[1];
    j[2] = 1.0 - 2.0 * y[0] * y[1] - 0.5;
    j[3] = off - 2.0 * y[1] * y[1];
    by_time[0] = 0.0;
    by_time[1] = -0.5 * math::sin(t);
}

/// A limit cycle: errors of the amplitude die, those of the phase add up. Rotated, so that nothing is special
/// about the axes, and of uneven strength, so that nothing is special about any point of the circle.
void cycle(double, std::span<const double> y, std::span<double> rate) {
    const double off = (1.0 - y[0] * y[0] - y[1] * y[1]) * (1.0 + 0.5 * y[0]);
    rate[0] = -y[1] + (y[0] - 0.5 * y[1]) * off;
    rate[1] = y[0] + (y[1] + 0.5 * y[0]) * off;
}

/// How far from (cos, sin) one is after a time.
double distance_after(Method method, const Derivative &f, double end, int steps) {
    Control control;
    control.step = end / steps;
    Integrator integrator(method, f, {1.0, 0.0}, 0.0, control);
    integrator.advance(end);
    CHECK_EQUAL(integrator.steps(), static_cast<std::uint64_t>(steps));
    return std::hypot(integrator.state()[0] - math::cos(end), integrator.state()[1] - math::sin(end));
}

void check_order(Method method, const Derivative &f, double end) {
    const double coarse = distance_after(method, f, end, 10000);
    const double fine = distance_after(method, f, end, 20000);
    const double measured = std::log2(coarse / fine);
    if (!(std::fabs(measured - order_of(method)) < 0.1))
        check::fail(__FILE__, __LINE__,
                    std::string(name_of(method)) + " has order " + check::shown(measured) + ", errors " +
                        check::shown(coarse) + ", " + check::shown(fine));
}

} // namespace

TEST("every method has the order it claims, by halving the step over ten thousand steps on a circle") {
    for (const Method method : all_methods) {
        // So long that the error is far above round-off, so short that it is far below one.
        const int order = order_of(method);
        const double end = order == 1 ? 1.0 : order <= 4 ? 100.0 : order == 5 ? 250.0 : 2000.0;
        check_order(method, circle, method == Method::vern8 ? 6000.0 : end);
    }
}

TEST("on a nonlinear cycle, too, where higher terms leave the leading one to be seen") {
    for (const Method method : {Method::euler, Method::rke, Method::rkf3, Method::abm4, Method::rodas4})
        check_order(method, cycle, order_of(method) == 1 ? 1.0 : 100.0);
    check_order(Method::rkf5, cycle, 250.0);
}

TEST("a smaller tolerance makes a smaller error, with steps of the method's own choice") {
    for (const Method method : all_methods) {
        if (method == Method::euler)
            continue;
        double last = 1.0;
        for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
            Control control;
            control.relative = control.absolute = tolerance;
            Integrator integrator(method, circle, {1.0, 0.0}, 0.0, control);
            integrator.advance(2.0 * std::numbers::pi);
            const double error = std::hypot(integrator.state()[0] - 1.0, integrator.state()[1]);
            if (!(error < 1000.0 * tolerance))
                check::fail(__FILE__, __LINE__,
                            std::string(name_of(method)) + " errs by " + check::shown(error) + " at " +
                                check::shown(tolerance));
            CHECK(error < 0.2 * last);
            last = error;
            CHECK_EQUAL(integrator.time(), 2.0 * std::numbers::pi);
        }
    }
}

TEST("the Arenstorf orbit closes") {
    // Hairer, Norsett and Wanner I, II.0: the restricted problem of three bodies.
    constexpr double mu = 0.012277471;
    constexpr double period = 17.0652165601579625588917206249;
    const auto f = [](double, std::span<const double> y, std::span<double> rate) {
        const double nu = 1.0 - mu;
        const double r1 = (y[0] + mu) * (y[0] + mu) + y[1] * y[1];
        const double r2 = (y[0] - nu) * (y[0] - nu) + y[1] * y[1];
        const double d1 = r1 * math::sqrt(r1);
        const double d2 = r2 * math::sqrt(r2);
        rate[0] = y[2];
        rate[1] = y[3];
        rate[2] = y[0] + 2.0 * y[3] - nu * (y[0] + mu) / d1 - mu * (y[0] - nu) / d2;
        rate[3] = y[1] - 2.0 * y[2] - nu * y[1] / d1 - mu * y[1] / d2;
    };
    for (const Method method : {Method::rkf8, Method::vern8, Method::vern7, Method::tsit5}) {
        Control control;
        control.relative = control.absolute = 1e-13;
        Integrator orbit(method, f, {0.994, 0.0, 0.0, -2.00158510637908252240537862224}, 0.0, control);
        orbit.advance(period);
        const double miss = std::hypot(orbit.state()[0] - 0.994, orbit.state()[1]);
        if (!(miss < 1e-5))
            check::fail(__FILE__, __LINE__,
                        std::string(name_of(method)) + " misses by " + check::shown(miss));
    }
}

TEST("a million steps of a tenth make a hundred thousand, to the last bit") {
    Control control;
    control.step = 0.1;
    Integrator clock(
        Method::euler, [](double, auto, auto rate) { rate[0] = 1.0; }, {0.0}, 0.0, control);
    for (int i = 0; i < 1000000; ++i)
        clock.step(1e9);
    CHECK_EQUAL(clock.time(), 100000.0);
    CHECK_EQUAL(clock.state()[0], 100000.0);
}

TEST("between the ends of a step the state is known to fourth order, and a step may be taken again shorter") {
    const auto worst = [](double h) {
        Control control;
        control.step = h;
        Integrator integrator(Method::rkf8, circle, {1.0, 0.0}, 0.0, control);
        integrator.step(10.0);
        double most = 0.0;
        std::vector<double> between(2);
        for (int i = 0; i <= 8; ++i) {
            const double t = h * i / 8.0;
            integrator.interpolate(t, between);
            most = std::max(most, std::fabs(between[0] - math::cos(t)));
        }
        return most;
    };
    const double order = std::log2(worst(0.2) / worst(0.1));
    CHECK(std::fabs(order - 4.0) < 0.1);
    Control control;
    control.step = 0.2;
    for (const Method method : all_methods) {
        Integrator integrator(method, circle, {1.0, 0.0}, 0.0, control);
        integrator.step(10.0);
        integrator.retake(0.05);
        CHECK_EQUAL(integrator.time(), 0.05);
        if (order_of(method) >= 4)
            CHECK(std::fabs(integrator.state()[0] - math::cos(0.05)) < 1e-8);
        integrator.advance(1.0);
        CHECK_EQUAL(integrator.time(), 1.0);
        CHECK_THROWS(integrator.retake(0.3), BadTime);
    }
}

TEST("dense output is as accurate as the steps, and changes nothing") {
    for (const Method method : all_methods) {
        const double tolerance = order_of(method) < 4 ? 1e-6 : 1e-10;
        const Control control{.relative = tolerance, .absolute = tolerance};
        Integrator one(method, circle, {1.0, 0.0}, 0.0, control);
        Integrator other(method, circle, {1.0, 0.0}, 0.0, control);
        double at_ends = 0.0;
        double between_ends = 0.0;
        std::vector<double> between(2);
        while (one.time() < 5.0) {
            one.step(5.0);
            other.step(5.0);
            at_ends = std::max(at_ends, std::fabs(one.state()[0] - math::cos(one.time())));
            for (int i = 0; i <= 8; ++i) {
                const double t = one.last_time() + (one.time() - one.last_time()) * i / 8.0;
                one.dense(t, between);
                between_ends = std::max(between_ends, std::fabs(between[0] - math::cos(t)));
            }
        }
        if (!(between_ends <= at_ends + 3.0 * tolerance))
            check::fail(__FILE__, __LINE__,
                        std::string(name_of(method)) + ": " + check::shown(between_ends) + " between, " +
                            check::shown(at_ends) + " at the ends");
        CHECK_EQUAL(one.state()[0], other.state()[0]);
        CHECK_EQUAL(one.steps(), other.steps());
        CHECK_THROWS(one.dense(one.last_time() - 0.1, between), BadTime);
        CHECK_THROWS(one.dense(one.time() + 0.1, between), BadTime);
    }
}

TEST("a state that runs away, or is no number, is an error that names the model time") {
    for (const Method method : all_methods) {
        // y' = y^2 has a pole at 1.
        Integrator pole(
            method, [](double, auto y, auto rate) { rate[0] = y[0] * y[0]; }, {1.0}, 0.0);
        try {
            pole.advance(2.0);
            check::fail(__FILE__, __LINE__, std::string(name_of(method)) + " integrates over a pole");
        } catch (const SimulationError &error) {
            CHECK(std::fabs(error.where().time - 1.0) < 0.01);
            CHECK(std::string(error.what()).find("time 0.99") != std::string::npos ||
                  std::string(error.what()).find("time 1") != std::string::npos);
        }
    }
    Integrator nan(
        Method::rke,
        [](double t, auto, auto rate) {
            rate[0] = 1.0;
            rate[1] = t < 0.5 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
        },
        {0.0, 0.0}, 0.0);
    CHECK_THROWS(nan.advance(1.0), BadState);
    CHECK(std::fabs(nan.time() - 0.5) < 1e-6);
    Control fixed;
    fixed.step = 0.125;
    Integrator root(
        Method::rkf5, [](double, auto y, auto rate) { rate[0] = -1.0 / math::sqrt(y[0]); }, {0.1}, 0.0,
        fixed);
    CHECK_THROWS(root.advance(1.0), BadState);
}

TEST("an accuracy that no step meets is an error, not a standstill") {
    // The derivative is a different number each time: no step is short enough.
    double sign = 1.0;
    Integrator noise(
        Method::tsit5,
        [&sign](double, auto, auto rate) {
            sign = -sign;
            rate[0] = 1e300 * sign;
        },
        {1.0}, 1.0);
    CHECK_THROWS(noise.advance(2.0), AccuracyUnmet);
    CHECK_THROWS(Integrator(Method::rke, circle, {1.0, 0.0}, 0.0, {.relative = 0.0, .absolute = 0.0}),
                 BadRequest);
    CHECK_THROWS(Integrator(Method::rke, circle, {1.0, 0.0}, 0.0, {.step = -1.0}), BadRequest);
    CHECK_THROWS(Integrator(Method::rke, circle, {1.0, 0.0}, 0.0, {.relative = 1e308, .absolute = 1e308}),
                 BadRequest);
    const auto message = [&](const Control &control) {
        try {
            const Integrator refused(Method::rke, circle, {1.0, 0.0}, 0.0, control);
        } catch (const BadRequest &error) {
            const std::string text = error.what();
            return text.substr(0, text.rfind(": "));
        }
        return std::string();
    };
    CHECK_EQUAL(message({.step = -1.0}), "Control::step is -1, but must be finite and not negative");
    CHECK_EQUAL(message({.relative = -0.5}),
                "Control::relative is -0.5, but must be finite and not negative");
    CHECK_EQUAL(message({.longest = -2.0}), "Control::longest is -2, but must be 0 or positive");
    CHECK_EQUAL(message({.relative = 0.0, .absolute = 0.0}),
                "Control::absolute is 0, but must be positive where Control::relative is 0");
    CHECK_THROWS(Integrator(Method::rke, circle, {}, 0.0), BadRequest);
    CHECK_THROWS(Integrator(Method::rke, circle, {1.0, std::numeric_limits<double>::infinity()}, 0.0),
                 BadState);
}

TEST("every method has the same bits in every ABI") {
    for (const Method method : all_methods) {
        check::Hash hash;
        for (const double step : {0.0, 0.05}) {
            Control control;
            control.step = step;
            Integrator integrator(method, drawn_circle, {0.5, 0.25}, 0.0, control);
            while (integrator.time() < 5.0) {
                integrator.step(5.0);
                hash(integrator.time());
                hash(integrator.state()[0]);
                hash(integrator.state()[1]);
            }
        }
        CHECK_GOLDEN("ode." + std::string(name_of(method)), hash.value());
    }
}

TEST("a derivative compiled in takes the same steps as one that is called, bit for bit") {
    const auto alike = [](Integrator compiled_in, Method method) {
        Integrator called(method, drawn_circle, {0.5, 0.25}, 0.0);
        while (called.time() < 5.0) {
            called.step(5.0);
            compiled_in.step(5.0);
            CHECK_EQUAL(compiled_in.time(), called.time());
            CHECK_EQUAL(compiled_in.state()[0], called.state()[0]);
            CHECK_EQUAL(compiled_in.state()[1], called.state()[1]);
        }
        CHECK_EQUAL(compiled_in.evaluations(), called.evaluations());
    };
    constexpr std::array<double, 2> initial = {0.5, 0.25};
    alike(compiled<Method::tsit5>(drawn_circle, initial), Method::tsit5);
    alike(compiled<Method::rke>(drawn_circle, initial), Method::rke);
    alike(compiled<Method::vern8>(drawn_circle, initial), Method::vern8);
}

TEST("many components are computed as few are, one by one and by pairs") {
    // Nine circles at once, an odd number of components more than the pairs begin at, beside one alone.
    for (const Method method : {Method::tsit5, Method::rkf8}) {
        Control control;
        control.step = 0.05;
        Integrator alone(method, circle, {1.0, 0.0}, 0.0, control);
        std::vector<double> initial;
        for (int i = 0; i < 9; ++i)
            initial.insert(initial.end(), {1.0, 0.0});
        initial.push_back(1.0); // and one that stands still
        Integrator many(
            method,
            [](double t, std::span<const double> y, std::span<double> rate) {
                for (std::size_t i = 0; i < 9; ++i)
                    circle(t, y.subspan(2 * i, 2), rate.subspan(2 * i, 2));
                rate[18] = 0.0;
            },
            initial, 0.0, control);
        alone.advance(3.0);
        many.advance(3.0);
        for (std::size_t i = 0; i < 9; ++i) {
            CHECK_EQUAL(many.state()[2 * i], alone.state()[0]);
            CHECK_EQUAL(many.state()[2 * i + 1], alone.state()[1]);
        }
        CHECK_EQUAL(many.state()[18], 1.0);
    }
}

TEST("the stiff method keeps its order when the derivative depends on time, with and without a Jacobian") {
    const auto error = [](int steps, const Jacobian &jacobian) {
        Control control;
        control.step = 5.0 / steps;
        control.jacobian = jacobian;
        Integrator integrator(Method::rodas4, drawn_circle, {1.0, 0.0}, 0.0, control);
        integrator.advance(5.0);
        return std::hypot(integrator.state()[0] - math::cos(5.0), integrator.state()[1] - math::sin(5.0));
    };
    for (const Jacobian &jacobian : {Jacobian(drawn_circle_by), Jacobian()}) {
        const double order = std::log2(error(2000, jacobian) / error(4000, jacobian));
        if (!(std::fabs(order - 4.0) < 0.15))
            check::fail(__FILE__, __LINE__, "the order is " + check::shown(order));
    }
}

TEST(
    "Van der Pol's oscillator with mu = 1e6 and Robertson's reaction are solved in a thousand steps or two") {
    // Hairer and Wanner II, IV.10 (VDPOL: t = 2) and their test set's reference (ROBERTSON: t = 1e11).
    Control control;
    control.relative = 1e-6;
    control.absolute = 1e-9;
    Integrator vanderpol(
        Method::rodas4,
        [](double, auto y, auto rate) {
            rate[0] = y[1];
            rate[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) / 1e-6;
        },
        {2.0, 0.0}, 0.0, control);
    vanderpol.advance(2.0);
    CHECK(std::fabs(vanderpol.state()[0] - 1.706167732170483) < 1e-5);
    CHECK(std::fabs(vanderpol.state()[1] + 0.8928097010247975) < 1e-5);
    CHECK(vanderpol.steps() < 2000);
    control.absolute = 1e-14;
    Integrator robertson(
        Method::rodas4,
        [](double, auto y, auto rate) {
            rate[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
            rate[2] = 3e7 * y[1] * y[1];
            rate[1] = -rate[0] - rate[2];
        },
        {1.0, 0.0, 0.0}, 0.0, control);
    robertson.advance(1e11);
    CHECK(std::fabs(robertson.state()[0] / 0.2083340149701255e-7 - 1.0) < 1e-3);
    CHECK(std::fabs(robertson.state()[1] / 0.8333360770334713e-13 - 1.0) < 1e-3);
    CHECK(std::fabs(robertson.state()[2] - 0.9999999791665050) < 1e-9);
    CHECK(robertson.steps() < 1000);
}

TEST("errors may be only relative, also of a component that is 0") {
    for (const Method method : {Method::rke, Method::tsit5, Method::vern8, Method::abm4, Method::rodas4}) {
        Integrator integrator(method,
                              [](double t, auto y, auto rate) {
                                  circle(t, y.subspan(0, 2), rate.subspan(0, 2));
                                  rate[2] = 0.0;
                              },
                              {1.0, 0.0, 0.0}, 0.0, {.relative = 1e-6, .absolute = 0.0});
        integrator.advance(1.0);
        CHECK(std::fabs(integrator.state()[0] - math::cos(1.0)) < 1e-5);
        CHECK_EQUAL(integrator.state()[2], 0.0);
        CHECK(integrator.steps() < 300);
    }
}

TEST("a step may have no limit, or one that is far away") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double limit : {1e30, 1e300, infinity}) {
        Integrator integrator(Method::rke, circle, {1.0, 0.0});
        while (integrator.time() < 1.0)
            integrator.step(limit);
        CHECK(std::fabs(integrator.state()[0] - math::cos(integrator.time())) < 1e-5);
        CHECK_THROWS(integrator.advance(infinity), BadTime);
    }
}

TEST("a singular matrix of the stiff method is an error with steps of one length, and a shorter step "
     "without") {
    const Derivative grows = [](double, auto y, auto rate) { rate[0] = 4.0 * y[0]; };
    Control control;
    control.jacobian = [](double, auto, auto by_state, auto by_time) {
        by_state[0] = 4.0; // 1 / (0.25 * step)
        by_time[0] = 0.0;
    };
    control.longest = 1.0;
    control.absolute = 1e9;
    Integrator chosen(Method::rodas4, grows, {1.0}, 0.0, control);
    chosen.advance(3.0);
    CHECK(chosen.refused() > 0);
    control.step = 1.0;
    Integrator fixed(Method::rodas4, grows, {1.0}, 0.0, control);
    CHECK_THROWS(fixed.advance(3.0), BadState);
}

TEST("a state that is set to what is no number stays as it was") {
    Integrator integrator(Method::rke, circle, {1.0, 0.0});
    CHECK_THROWS(integrator.set(0, std::numeric_limits<double>::quiet_NaN()), BadState);
    integrator.advance(1.0);
    CHECK(std::fabs(integrator.state()[0] - math::cos(1.0)) < 1e-5);
}
