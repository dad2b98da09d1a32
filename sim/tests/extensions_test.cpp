#include "check.hpp"

#include "widthwise/sim/fuzzy.hpp"
#include "widthwise/sim/optimisation.hpp"
#include "widthwise/sim/runge_kutta.hpp"
#include "widthwise/sim/vectors.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {

double rosenbrock(std::span<const double> x) {
    const double a = 1.0 - x[0];
    const double b = x[1] - x[0] * x[0];
    return a * a + 100.0 * b * b;
}

/// Rastrigin's: a valley at every whole number, the deepest at 0.
double rastrigin(std::span<const double> x) {
    double sum = 0.0;
    for (const double v : x)
        sum += v * v + 10.0 - 10.0 * math::cos(2.0 * 3.14159265358979323846 * v);
    return sum;
}

fuzzy::Quantity power() {
    return {"power",
            0.0,
            10.0,
            {fuzzy::Set::triangle("low", 0.0, 2.0, 4.0), fuzzy::Set::triangle("high", 6.0, 8.0, 10.0),
             fuzzy::Set::trapezium("middle", 2.0, 4.0, 6.0, 8.0)}};
}

} // namespace

TEST("vectors of space add, turn and measure as Euclid's") {
    const Vector a{1.0, 2.0, 2.0};
    const Vector b{-2.0, 0.5, 1.0};
    CHECK_EQUAL(length(a), 3.0);
    CHECK_EQUAL(dot(a, b), 1.0);
    CHECK(cross(a, b) == (Vector{1.0, -5.0, 4.5}));
    CHECK_EQUAL(dot(cross(a, b), a), 0.0);
    CHECK(2.0 * a - a / 0.5 == Vector{});
    check::near(__FILE__, __LINE__, length(unit(b)), 1.0, 1e-15);
    CHECK(unit(Vector{}) == Vector{});
}

TEST("a planet comes back after Kepler's period, in its plane, with the area it swept") {
    // Half axis 1, eccentricity 1/2, tilted: from the perihelion.
    const Body planet{{0.3, 0.4, 0.0},
                      {-0.8 * std::sqrt(3.0) * 0.6, 0.6 * std::sqrt(3.0) * 0.6, 0.8 * std::sqrt(3.0)}};
    Integrator orbit(Method::vern8,
                     movement(1,
                              [](double, auto bodies, auto acceleration) {
                                  const Vector r = bodies[0].place;
                                  acceleration[0] = -1.0 / (dot(r, r) * length(r)) * r;
                              }),
                     state_of(std::array{planet}), 0.0, {.relative = 1e-13, .absolute = 1e-13});
    const Vector swept = cross(planet.place, planet.velocity);
    orbit.advance(2.0);
    const Body later = body_at(orbit.state(), 0);
    check::near(__FILE__, __LINE__, length(cross(later.place, later.velocity) - swept), 0.0, 1e-12);
    CHECK(length(later.place - planet.place) > 0.5);
    orbit.advance(2.0 * 3.14159265358979323846);
    check::near(__FILE__, __LINE__, length(body_at(orbit.state(), 0).place - planet.place), 0.0, 1e-10);
}

TEST("a fuzzy set grades by straight lines, and its words combine as Zadeh's") {
    const auto warm = fuzzy::Set::triangle("warm", 10.0, 20.0, 30.0);
    CHECK_EQUAL(warm.grade(15.0), 0.5);
    CHECK_EQUAL(warm.grade(20.0), 1.0);
    CHECK_EQUAL(warm.grade(35.0), 0.0);
    CHECK_EQUAL(fuzzy::Set::rising("hot", 25.0, 35.0).grade(99.0), 1.0);
    const fuzzy::Grade a{0.25};
    const fuzzy::Grade b{0.75};
    CHECK_EQUAL((a && b).value, 0.25);
    CHECK_EQUAL((a || b).value, 0.75);
    CHECK_EQUAL((!a && very(b)).value, 0.5625);
    CHECK_THROWS(fuzzy::Set("back", {{1.0, 0.0}, {0.0, 1.0}}), BadRequest);
    CHECK_THROWS(fuzzy::Set("much", {{1.0, 2.0}}), BadRequest);
    CHECK_THROWS(static_cast<void>(power().index("enormous")), BadRequest);
}

TEST("a fuzzy quantity is within its ends, also before its first value") {
    fuzzy::Quantity above("above", 10.0, 20.0, {fuzzy::Set::rising("high", 0.0, 20.0)});
    CHECK_EQUAL(above.is("high").value, 0.5);
    above.put(5.0);
    CHECK_EQUAL(above.is("high").value, 0.5);
    const fuzzy::Quantity below("below", -20.0, -10.0, {fuzzy::Set::rising("high", -20.0, 0.0)});
    CHECK_EQUAL(below.is("high").value, 0.5);
    const fuzzy::Quantity round("round", -1.0, 1.0, {fuzzy::Set::rising("high", -1.0, 3.0)});
    CHECK_EQUAL(round.is("high").value, 0.25);
}

TEST("a conclusion's centre of gravity is the polygon's, exactly") {
    const fuzzy::Quantity out = power();
    {
        fuzzy::Conclusion one(out);
        one.then({1.0}, "low");
        check::near(__FILE__, __LINE__, one.value(), 2.0, 1e-14);
    }
    {
        // "low" cut at 1/2 is a trapezium of area 3/2 round 2; "high" whole a triangle of area 2 round 8.
        fuzzy::Conclusion two(out);
        two.then({0.5}, "low");
        two.then({1.0}, "high");
        two.then({0.25}, "high"); // less than it has
        check::near(__FILE__, __LINE__, two.value(), (1.5 * 2.0 + 2.0 * 8.0) / 3.5, 1e-14);
        check::near(__FILE__, __LINE__, two.value(fuzzy::Defuzzification::mean_of_maxima), 8.0, 1e-14);
        check::near(__FILE__, __LINE__, two.value(fuzzy::Defuzzification::weighted_tops),
                    (0.5 * 2.0 + 8.0) / 1.5, 1e-14);
        CHECK_EQUAL(two.grade(2.0), 0.5);
    }
    {
        // Overlapping sets count once: against a sum over many samples.
        fuzzy::Conclusion three(out);
        three.then({0.6}, "low");
        three.then({0.8}, "middle");
        three.then({0.3}, "high");
        double area = 0.0;
        double moment = 0.0;
        for (int i = 0; i < 100000; ++i) {
            const double x = (i + 0.5) * 1e-4;
            area += three.grade(x);
            moment += three.grade(x) * x;
        }
        check::near(__FILE__, __LINE__, three.value(), moment / area, 1e-7);
        check::near(__FILE__, __LINE__, three.value(fuzzy::Defuzzification::mean_of_maxima), 5.0, 1e-12);
    }
    CHECK_EQUAL(fuzzy::Conclusion(out).value(), 5.0);
}

TEST("Hooke and Jeeves, and the gradient, follow Rosenbrock's valley to its end") {
    const std::vector<Parameter> from = {{-1.2, -5.0, 5.0}, {1.0, -5.0, 5.0}};
    const Optimum pattern = hooke_jeeves(rosenbrock, from);
    check::near(__FILE__, __LINE__, pattern.at[0], 1.0, 1e-5);
    check::near(__FILE__, __LINE__, pattern.at[1], 1.0, 1e-5);
    const Optimum slope = gradient(rosenbrock, from);
    check::near(__FILE__, __LINE__, slope.at[0], 1.0, 1e-5);
    check::near(__FILE__, __LINE__, slope.at[1], 1.0, 1e-5);
    CHECK(slope.evaluations < pattern.evaluations);
    CHECK_EQUAL(slope.value, rosenbrock(slope.at));
}

TEST("annealing leaves a valley for the deepest one, which the others do not") {
    const std::vector<Parameter> from = {{3.2, -5.0, 5.0}, {-2.1, -5.0, 5.0}};
    CHECK(gradient(rastrigin, from).value > 0.5);
    const Optimum found = annealing(rastrigin, from, Random(3), {.hot = 30.0, .cold = 1e-9});
    check::near(__FILE__, __LINE__, found.at[0], 0.0, 1e-3);
    check::near(__FILE__, __LINE__, found.at[1], 0.0, 1e-3);
    check::near(__FILE__, __LINE__, found.value, 0.0, 1e-4);
}

TEST("a least value at an end is found there") {
    const Objective slope = [](std::span<const double> x) { return 2.0 * x[0] + x[1] * x[1]; };
    const std::vector<Parameter> from = {{1.0, 0.5, 2.0}, {1.0, -3.0, 2.0}};
    for (const Optimum &found : {hooke_jeeves(slope, from), gradient(slope, from)}) {
        check::near(__FILE__, __LINE__, found.at[0], 0.5, 1e-12);
        check::near(__FILE__, __LINE__, found.at[1], 0.0, 1e-5);
    }
}

TEST("a search that is not allowed enough, or that meets no number, is an error") {
    const std::vector<Parameter> from = {{-1.2, -5.0, 5.0}, {1.0, -5.0, 5.0}};
    CHECK_THROWS(hooke_jeeves(rosenbrock, from, 1e-8, 20), NoConvergence);
    CHECK_THROWS(gradient(rosenbrock, from, 1e-12, 20), NoConvergence);
    CHECK_THROWS(annealing(rosenbrock, from, Random(1), {}, 20), NoConvergence);
    CHECK_THROWS(annealing(rosenbrock, from, Random(1), {.factor = 1.0}), BadRequest);
    CHECK_THROWS(hooke_jeeves(rosenbrock, std::vector<Parameter>()), BadRequest);
    CHECK_THROWS(hooke_jeeves(rosenbrock, std::vector<Parameter>{{6.0, -5.0, 5.0}}), BadRequest);
    CHECK_THROWS(gradient([](auto) { return std::numeric_limits<double>::quiet_NaN(); }, from), BadState);
}

TEST("searches and fuzzy conclusions have the same bits in every ABI") {
    const std::vector<Parameter> from = {{-1.2, -5.0, 5.0}, {1.0, -5.0, 5.0}};
    check::Hash hash;
    for (const Optimum &found : {hooke_jeeves(rosenbrock, from), gradient(rosenbrock, from),
                                 annealing(rastrigin, from, Random(9))}) {
        hash(found.at[0]);
        hash(found.at[1]);
        hash(found.evaluations);
    }
    const fuzzy::Quantity out = power();
    for (double x = 0.0; x <= 1.0; x += 0.125) {
        fuzzy::Conclusion conclusion(out);
        conclusion.then({x}, "low");
        conclusion.then({1.0 - x}, "middle");
        conclusion.then({0.5 * x}, "high");
        hash(conclusion.value());
    }
    CHECK_GOLDEN("extensions", hash.value());
}
