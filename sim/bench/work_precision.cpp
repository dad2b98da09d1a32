// Work against precision beside Boost.odeint: what an error costs, in evaluations of the derivative and in
// time.
//
// Why at equal errors and not at equal tolerances: what a tolerance means is each library's own affair. Both
// are run over the same tolerances; each run is a point (error reached, work). Neighbouring points are
// averaged, because an end point's error is now and then small by luck, and the work for a given error is
// read off between them. Problems and their reference solutions: Hairer, Norsett and Wanner I, II.0
// (Arenstorf), I.16 (Van der Pol); Hairer and Wanner II, IV.10 (VDPOL, mu = 1e6).
#include "timing.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/runge_kutta.hpp"

#include <boost/numeric/odeint.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>

using namespace widthwise::sim;
namespace odeint = boost::numeric::odeint;

/// In odeint_stiff.cpp.
double odeint_van_der_pol(double tolerance, std::uint64_t &evaluations);

namespace {

struct Circle {
    static constexpr std::size_t size = 2;
    static constexpr const char *name = "circle, ten times round";
    static constexpr std::array<double, 2> initial = {1.0, 0.0};
    static constexpr double end = 62.83185307179586477;
    template <class State, class Rate> static void rate(const State &y, Rate &&r) {
        r[0] = -y[1];
        r[1] = y[0];
    }
    static std::array<double, 2> at_end() { return initial; }
};

struct Arenstorf {
    static constexpr std::size_t size = 4;
    static constexpr const char *name = "Arenstorf, one period";
    static constexpr std::array<double, 4> initial = {0.994, 0.0, 0.0, -2.00158510637908252240537862224};
    static constexpr double end = 17.0652165601579625588917206249;
    template <class State, class Rate> static void rate(const State &y, Rate &&r) {
        constexpr double mu = 0.012277471;
        constexpr double nu = 1.0 - mu;
        const double d1 = (y[0] + mu) * (y[0] + mu) + y[1] * y[1];
        const double d2 = (y[0] - nu) * (y[0] - nu) + y[1] * y[1];
        const double c1 = nu / (d1 * std::sqrt(d1));
        const double c2 = mu / (d2 * std::sqrt(d2));
        r[0] = y[2];
        r[1] = y[3];
        r[2] = y[0] + 2.0 * y[3] - c1 * (y[0] + mu) - c2 * (y[0] - nu);
        r[3] = y[1] - 2.0 * y[2] - (c1 + c2) * y[1];
    }
    static std::array<double, 4> at_end() { return initial; }
};

struct VanDerPol {
    static constexpr std::size_t size = 2;
    static constexpr const char *name = "Van der Pol, mu = 5, to t = 20";
    static constexpr std::array<double, 2> initial = {2.0, 0.0};
    static constexpr double end = 20.0;
    template <class State, class Rate> static void rate(const State &y, Rate &&r) {
        r[0] = y[1];
        r[1] = 5.0 * (1.0 - y[0] * y[0]) * y[1] - y[0];
    }
    /// By many short steps of the other library, of a size at which halving them changes nothing that counts.
    static std::array<double, 2> at_end() {
        std::array<double, 2> y = initial;
        odeint::runge_kutta_fehlberg78<std::array<double, 2>> stepper;
        const auto f = [](const std::array<double, 2> &s, std::array<double, 2> &r, double) { rate(s, r); };
        for (int i = 0; i < 40000; ++i)
            stepper.do_step(f, y, i * 5e-4, 5e-4);
        return y;
    }
};

struct Point {
    double error;
    double evaluations;
    double time;
};

/// One solution: the error at its end; counts evaluations.
using Run = std::function<double(double tolerance, std::uint64_t &evaluations)>;

struct Solver {
    std::string name;
    Run run;
    std::vector<Point> points = {};
};

template <class State> double distance(const State &x, const State &y) {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return std::sqrt(sum);
}

/// With the derivative compiled in, as it is in the other library's.
template <class Problem, Method M> Solver ours() {
    const auto reference = Problem::at_end();
    return {std::string(name_of(M)), [=](double tolerance, std::uint64_t &evaluations) {
                Integrator run = compiled<M>(
                    [](double, std::span<const double> y, std::span<double> r) { Problem::rate(y, r); },
                    Problem::initial, 0.0, {.relative = tolerance, .absolute = tolerance});
                run.advance(Problem::end);
                evaluations = run.evaluations();
                std::array<double, Problem::size> y;
                std::copy(run.state().begin(), run.state().end(), y.begin());
                return distance(y, reference);
            }};
}

/// With the state as a std::array, which is what odeint is fastest with.
template <class Problem, template <class...> class Stepper> Solver theirs(const char *name) {
    using State = std::array<double, Problem::size>;
    const auto reference = Problem::at_end();
    return {name, [=](double tolerance, std::uint64_t &evaluations) {
                State y = Problem::initial;
                std::uint64_t count = 0;
                const auto f = [&count](const State &s, State &r, double) {
                    ++count;
                    Problem::rate(s, r);
                };
                odeint::integrate_adaptive(odeint::make_controlled<Stepper<State>>(tolerance, tolerance), f,
                                           y, 0.0, Problem::end, 1e-4);
                evaluations = count;
                return distance(y, reference);
            }};
}

constexpr double stiffness = 1e6;

/// Both take the Jacobian by its formula.
Solver our_stiff() {
    return {"rodas4", [](double tolerance, std::uint64_t &evaluations) {
                Control control{.relative = tolerance, .absolute = tolerance};
                control.jacobian = [](double, std::span<const double> y, std::span<double> j,
                                      std::span<double> by_time) {
                    j[0] = 0.0;
                    j[1] = 1.0;
                    j[2] = stiffness * (-2.0 * y[0] * y[1] - 1.0);
                    j[3] = stiffness * (1.0 - y[0] * y[0]);
                    by_time[0] = by_time[1] = 0.0;
                };
                Integrator run(
                    Method::rodas4,
                    [](double, std::span<const double> y, std::span<double> r) {
                        r[0] = y[1];
                        r[1] = stiffness * ((1.0 - y[0] * y[0]) * y[1] - y[0]);
                    },
                    {2.0, 0.0}, 0.0, control);
                run.advance(2.0);
                evaluations = run.evaluations();
                return std::fabs(run.state()[0] - 1.706167732170483) +
                       std::fabs(run.state()[1] + 0.8928097010247975);
            }};
}

/// Every solver at every tolerance, in turns; each time is the least of the rounds.
void sweep(std::vector<Solver> &solvers, double from, double to, int rounds) {
    for (double exponent = from; exponent <= to + 1e-9; exponent += 0.25) {
        const double tolerance = std::pow(10.0, -exponent);
        std::vector<Point> now(solvers.size(), {0.0, 0.0, std::numeric_limits<double>::infinity()});
        for (int round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < solvers.size(); ++i) {
                std::uint64_t evaluations = 0;
                int times = 0;
                const double began = bench::seconds();
                double spent = 0.0;
                do {
                    now[i].error = solvers[i].run(tolerance, evaluations);
                    ++times;
                    spent = bench::seconds() - began;
                } while (spent < 1e-3);
                now[i].evaluations = static_cast<double>(evaluations);
                now[i].time = std::min(now[i].time, spent / times);
            }
        for (std::size_t i = 0; i < solvers.size(); ++i)
            solvers[i].points.push_back(now[i]);
    }
}

/// The logarithm of the work for an error; NaN where no run came so far, or all went further.
double work_for(const std::vector<Point> &points, double error, double Point::*work) {
    constexpr std::size_t width = 5;
    double last_error = 0.0;
    double last_work = 0.0;
    for (std::size_t i = 0; i + width <= points.size(); ++i) {
        double e = 0.0;
        double w = 0.0;
        for (std::size_t k = i; k < i + width; ++k) {
            e += std::log10(std::max(points[k].error, 1e-17)) / width;
            w += std::log10(points[k].*work) / width;
        }
        const double wanted = std::log10(error);
        if (i > 0 && last_error >= wanted && e < wanted)
            return last_work + (w - last_work) * (last_error - wanted) / (last_error - e);
        last_error = e;
        last_work = w;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

/// Some of the solvers: the first and how many.
using Some = std::span<const Solver>;

/// The least of several solvers' work for an error; NaN where none has it.
double least_for(Some solvers, double error, double Point::*work) {
    double least = std::numeric_limits<double>::quiet_NaN();
    for (const Solver &solver : solvers)
        least = std::fmin(least, work_for(solver.points, error, work));
    return least;
}

struct Verdict {
    double evaluations = 0.0;
    double time = 0.0;
    int count = 0;
};

/// Error by error, `ours` beside `theirs`: of several, the one with the least work.
void beside(const std::string &title, Some ours, Some theirs) {
    std::printf("  %s\n    %-10s %12s %12s %8s %12s %12s %8s\n", title.c_str(), "error", "evaluations",
                "theirs", "ratio", "time, us", "theirs", "ratio");
    Verdict all;
    for (int decade = 1; decade <= 12; ++decade) {
        const double error = std::pow(10.0, -decade);
        const double e1 = least_for(ours, error, &Point::evaluations);
        const double e2 = least_for(theirs, error, &Point::evaluations);
        const double t1 = least_for(ours, error, &Point::time);
        const double t2 = least_for(theirs, error, &Point::time);
        if (!(e1 - e2 == e1 - e2))
            continue;
        std::printf("    %-10.0e %12.0f %12.0f %8.3f %12.2f %12.2f %8.3f\n", error, std::pow(10.0, e1),
                    std::pow(10.0, e2), std::pow(10.0, e1 - e2), 1e6 * std::pow(10.0, t1),
                    1e6 * std::pow(10.0, t2), std::pow(10.0, t1 - t2));
        all.evaluations += e1 - e2;
        all.time += t1 - t2;
        ++all.count;
    }
    if (all.count > 0)
        std::printf("    mean of %d %43.3f %34.3f\n", all.count, std::pow(10.0, all.evaluations / all.count),
                    std::pow(10.0, all.time / all.count));
}

void beside(const Solver &one, const Solver &other) {
    beside(one.name + " beside " + other.name, {&one, 1}, {&other, 1});
}

template <class State> using Dopri5 = odeint::runge_kutta_dopri5<State>;
template <class State> using Fehlberg78 = odeint::runge_kutta_fehlberg78<State>;

template <class Problem> void contest(int rounds) {
    std::printf("%s\n", Problem::name);
    std::vector<Solver> solvers = {
        ours<Problem, Method::tsit5>(),           ours<Problem, Method::vern7>(),
        ours<Problem, Method::vern8>(),           ours<Problem, Method::rkf8>(),
        theirs<Problem, Dopri5>("odeint dopri5"), theirs<Problem, Fehlberg78>("odeint fehlberg78")};
    sweep(solvers, 1.0, 13.0, rounds);
    const Some all = solvers;
    beside("the best of ours beside the best of odeint's", all.first(4), all.last(2));
    beside(solvers[0], solvers[4]);
    for (std::size_t i = 1; i < 4; ++i)
        beside(solvers[i], solvers[5]);
}

} // namespace

int main(int count, char **arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
    contest<Circle>(rounds);
    contest<Arenstorf>(rounds);
    contest<VanDerPol>(rounds);
    std::printf("Van der Pol, mu = 1e6, to t = 2\n");
    std::vector<Solver> stiff = {our_stiff(), {"odeint rosenbrock4", odeint_van_der_pol}};
    sweep(stiff, 2.0, 11.0, rounds);
    beside(stiff[0], stiff[1]);
}
