#include "check.hpp"

#include "widthwise/sim/cvode.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

using namespace widthwise::sim;

TEST("CVODE solves stiff and other systems where it is installed, and is refused where it is not") {
    const auto robertson = [](double, auto y, auto rate) {
        rate[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
        rate[2] = 3e7 * y[1] * y[1];
        rate[1] = -rate[0] - rate[2];
    };
    const auto circle = [](double, auto y, auto rate) {
        rate[0] = -y[1];
        rate[1] = y[0];
    };
    if (!Cvode::available()) {
        CHECK_THROWS(Cvode(Cvode::Formula::bdf, robertson, {1.0, 0.0, 0.0}), BadRequest);
        return;
    }
    const Control control{.relative = 1e-9, .absolute = 1e-15};
    Cvode reaction(Cvode::Formula::bdf, robertson, {1.0, 0.0, 0.0}, 0.0, control);
    Integrator ours(Method::rodas4, robertson, {1.0, 0.0, 0.0}, 0.0, control);
    reaction.advance(40.0);
    ours.advance(40.0);
    CHECK_EQUAL(reaction.time(), 40.0);
    CHECK(reaction.evaluations() > 0);
    for (std::size_t k = 0; k < 3; ++k)
        CHECK(std::fabs(reaction.state()[k] / ours.state()[k] - 1.0) < 1e-6);
    Cvode round(Cvode::Formula::adams, circle, {1.0, 0.0}, 0.0, {.relative = 1e-10, .absolute = 1e-10});
    round.advance(1.0);
    round.set(0, 1.0);
    round.set(1, 0.0);
    round.advance(2.0);
    CHECK(std::fabs(round.state()[0] - std::cos(1.0)) < 1e-8);
    CHECK_THROWS(round.set(2, 0.0), BadRequest);
}

TEST("what goes wrong under CVODE is thrown") {
    if (!Cvode::available())
        check::skip("SUNDIALS is not installed");
    Cvode pole(Cvode::Formula::bdf, [](double, auto y, auto rate) { rate[0] = y[0] * y[0]; }, {1.0});
    CHECK_THROWS(pole.advance(2.0), SimulationError);
    Cvode thrower(Cvode::Formula::adams,
                  [](double t, auto, auto rate) {
                      if (t > 0.5)
                          throw std::runtime_error("enough");
                      rate[0] = 1.0;
                  },
                  {0.0});
    CHECK_THROWS(thrower.advance(1.0), std::runtime_error);
    Cvode nan(Cvode::Formula::bdf, [](double t, auto, auto rate) { rate[0] = t > 0.5 ? std::nan("") : 1.0; },
              {0.0});
    CHECK_THROWS(nan.advance(1.0), BadState);
}

TEST("CVODE refuses what an Integrator refuses, by the same errors") {
    if (!Cvode::available())
        check::skip("SUNDIALS is not installed");
    const auto one = [](double, auto, auto rate) { rate[0] = 1.0; };
    const double nan = std::nan("");
    for (const Cvode::Formula formula : {Cvode::Formula::bdf, Cvode::Formula::adams}) {
        CHECK_THROWS(Cvode(formula, one, {1.0}, 0.0, {.relative = 0.0, .absolute = 0.0}), BadRequest);
        CHECK_THROWS(Cvode(formula, one, {1.0}, 0.0, {.relative = -1.0}), BadRequest);
        CHECK_THROWS(Cvode(formula, one, {1.0}, 0.0, {.relative = nan}), BadRequest);
        CHECK_THROWS(Cvode(formula, one, {1.0}, 0.0, {.longest = -1.0}), BadRequest);
        CHECK_THROWS(Cvode(formula, one, {nan}), BadState);
        CHECK_THROWS(Cvode(formula, one, {1.0}, nan), BadTime);
        Cvode kept(formula, one, {1.0});
        CHECK_THROWS(kept.set(0, nan), BadState);
        kept.advance(1.0);
        check::near(__FILE__, __LINE__, kept.state()[0], 2.0, 1e-9);
        // The last step before it is too short to move the time.
        Cvode late(formula, [&](double t, auto y, auto rate) { rate[0] = t > 1.0 ? nan : y[0]; }, {1.0});
        CHECK_THROWS(late.advance(3.0), BadState);
        Cvode pole(formula, [](double, auto y, auto rate) { rate[0] = y[0] * y[0]; }, {1.0});
        CHECK_THROWS(pole.advance(3.0), AccuracyUnmet);
    }
}

TEST("errors under CVODE may be relative only, also of what begins at zero") {
    if (!Cvode::available())
        check::skip("SUNDIALS is not installed");
    const Control control{.relative = 1e-8, .absolute = 0.0};
    for (const Cvode::Formula formula : {Cvode::Formula::bdf, Cvode::Formula::adams})
        for (const double start : {0.0, 100.0}) {
            Cvode line(
                formula, [](double, auto, auto rate) { rate[0] = 1.0; }, {0.0}, start, control);
            line.advance(start + 1.0);
            check::near(__FILE__, __LINE__, line.state()[0], 1.0, 1e-6);
            Cvode rise(
                formula, [&](double t, auto, auto rate) { rate[0] = std::exp(t - start); }, {0.0}, start,
                control);
            rise.advance(start + 1.0);
            check::near(__FILE__, __LINE__, rise.state()[0], std::exp(1.0) - 1.0, 1e-6);
            Cvode circle(
                formula,
                [](double, auto y, auto rate) {
                    rate[0] = -y[1];
                    rate[1] = y[0];
                },
                {1.0, 0.0}, start, control);
            circle.advance(start + 10.0);
            check::near(__FILE__, __LINE__, circle.state()[1], std::sin(10.0), 1e-5);
        }
}
