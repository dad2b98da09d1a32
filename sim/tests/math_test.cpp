#include "check.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace widthwise::sim;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Greatest distance from the reference, in units of the reference's last place.
template <class Function, class Reference>
double worst_error(Function function, Reference reference, double low, double high, bool exponents = false) {
    Random random(7);
    double worst = 0.0;
    for (int i = 0; i < 40000; ++i) {
        const double at = low + (high - low) * random.uniform();
        const double x = exponents ? std::ldexp(1.0 + random.uniform(), static_cast<int>(at)) : at;
        const long double exact = reference(static_cast<long double>(x));
        const double rounded = std::fabs(static_cast<double>(exact));
        const double unit = std::nextafter(rounded, infinity) - rounded;
        const auto error =
            static_cast<double>(std::fabs(static_cast<long double>(function(x)) - exact) / unit);
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

template <class Function> std::uint64_t hash_of(Function function, double low, double high) {
    check::Hash hash;
    Random random(11);
    for (int i = 0; i < 20000; ++i)
        hash(function(low + (high - low) * random.uniform()));
    return hash.value();
}

long double long_log(long double x) { return std::log(x); }
long double long_log1p(long double x) { return std::log1p(x); }
long double long_exp(long double x) { return std::exp(x); }
long double long_expm1(long double x) { return std::expm1(x); }
long double long_sin(long double x) { return std::sin(x); }
long double long_cos(long double x) { return std::cos(x); }
long double long_tan(long double x) { return std::tan(x); }
long double long_atan(long double x) { return std::atan(x); }

} // namespace

TEST("log, exp, pow, sin and cos are within one unit in the last place") {
    CHECK(worst_error(math::log, long_log, -1070, 1020, true) <= 1.0);
    CHECK(worst_error(math::log, long_log, 0.5, 2.0) <= 1.0);
    CHECK(worst_error(math::log, long_log, 0.99, 1.01) <= 1.0);
    CHECK(worst_error(math::exp, long_exp, -708, 709) <= 1.0);
    CHECK(worst_error(math::exp, long_exp, -745, -708) <= 1.0);
    CHECK(worst_error(math::exp, long_exp, -1, 1) <= 1.0);
    CHECK(worst_error(math::sin, long_sin, -10, 10) <= 1.0);
    CHECK(worst_error(math::sin, long_sin, -1e6, 1e6) <= 1.0);
    CHECK(worst_error(math::sin, long_sin, 1, 60, true) <= 1.0);
    CHECK(worst_error(math::cos, long_cos, -10, 10) <= 1.0);
    CHECK(worst_error(math::cos, long_cos, 1, 60, true) <= 1.0);
    for (const double y : {2.5, -0.3, 100.0, 1e5})
        CHECK(worst_error([y](double x) { return math::pow(x, y); },
                          [y](long double x) { return std::pow(x, static_cast<long double>(y)); }, 0.995,
                          1.005) <= 1.0);
    CHECK(worst_error([](double x) { return math::pow(2.3, x); },
                      [](long double x) {
                          return std::pow(2.3000000000000000L * 0 + static_cast<long double>(2.3), x);
                      },
                      -800, 800) <= 1.0);
}

TEST("expm1, log1p and atan are within one and a half nearly everywhere, tan within two and a half") {
    CHECK(worst_error(math::expm1, long_expm1, -5, 5) <= 1.5);
    CHECK(worst_error(math::expm1, long_expm1, -0.1, 0.1) <= 1.5);
    CHECK(worst_error(math::log1p, long_log1p, -0.999, 2) <= 1.5);
    CHECK(worst_error(math::log1p, long_log1p, -0.01, 0.01) <= 1.5);
    CHECK(worst_error(math::atan, long_atan, -5, 5) <= 1.5);
    CHECK(worst_error(math::atan, long_atan, -60, 60, true) <= 1.5);
    CHECK(worst_error(math::tan, long_tan, -10, 10) <= 2.5);
}

TEST("expm1, log1p, atan and atan2 are as accurate as promised where they are worst") {
    CHECK(worst_error(math::expm1, long_expm1, 0x1.6p-8, 0x1.a5p-8) <= 1.55);
    CHECK(worst_error(math::expm1, long_expm1, -0x1.1p-7, -0x1.6p-8) <= 1.55);
    CHECK(worst_error(math::log1p, long_log1p, 0x1p-8, 0x1.01p-8) <= 1.05);
    CHECK(worst_error(math::atan, long_atan, 0x1p-6, 0x1.001p-6) <= 2.05);
    CHECK(worst_error(math::atan, long_atan, 0x1.1p-6, 0.5) <= 1.5);
    for (const double x : {1.0, 1.1, 1.4119649, 1.6030598, 1.9}) // atan2 adds the rounding of a quotient
        CHECK(worst_error([=](double y) { return math::atan2(y, x); },
                          [=](long double y) { return std::atan2(y, static_cast<long double>(x)); },
                          x * 0x1p-6, x * 0x1.001p-6) <= 2.55);
}

TEST("the sine of ten to the twenty-second is known") {
    CHECK_EQUAL(math::sin(1e22), -0.85220084976718880); // Ng, Argument reduction for huge arguments, 1992
    CHECK_EQUAL(math::cos(1e22), 0.52321478539513899);
}

TEST("lgamma agrees with factorials and with the half-integers") {
    double factorial = 1.0;
    for (int n = 1; n < 20; ++n) {
        const double expected = std::log(factorial);
        CHECK(std::fabs(math::lgamma(n) - expected) <= 1e-13 * expected + 1e-14);
        factorial *= n;
    }
    CHECK(std::fabs(math::lgamma(0.5) - 0.57236494292470009) < 1e-14); // log sqrt(pi)
    CHECK(std::fabs(math::lgamma(1e6) - 12815504.569147612) < 1e-6);
}

TEST("lgamma is as accurate as promised, about its roots and elsewhere") {
    const auto worst = [](double low, double high, bool relative) {
        Random random(7);
        long double most = 0.0L;
        for (int i = 0; i < 100000; ++i) {
            const double x = low + (high - low) * random.uniform();
            const long double exact = std::lgamma(static_cast<long double>(x));
            const long double error = std::fabs(static_cast<long double>(math::lgamma(x)) - exact);
            most = std::max(most, relative ? error / std::fabs(exact) : error);
        }
        return static_cast<double>(most);
    };
    CHECK(worst(0.7, 2.5, false) < 1.5e-14);
    CHECK(worst(0.99, 1.01, false) < 1.5e-14);
    CHECK(worst(1.99, 2.01, false) < 1.5e-14);
    CHECK(worst(1e-9, 0.7, true) < 1e-13);
    CHECK(worst(0.65, 0.7, true) < 1e-13);
    CHECK(worst(2.5, 3.0, true) < 1e-13);
    CHECK(worst(3.0, 1000.0, true) < 1e-13);
}

TEST("special arguments have the values of Annex F") {
    CHECK_EQUAL(math::exp(infinity), infinity);
    CHECK_EQUAL(math::exp(-infinity), 0.0);
    CHECK_EQUAL(math::exp(710.0), infinity);
    CHECK_EQUAL(math::exp(-746.0), 0.0);
    CHECK(math::exp(-745.0) > 0.0);
    CHECK_EQUAL(math::exp(0.0), 1.0);
    CHECK_EQUAL(math::log(0.0), -infinity);
    CHECK_EQUAL(math::log(1.0), 0.0);
    CHECK(std::isnan(math::log(-1.0)));
    CHECK(std::isnan(math::sin(infinity)));
    CHECK(std::signbit(math::sin(-0.0)));
    CHECK_EQUAL(math::log1p(-1.0), -infinity);
    CHECK_EQUAL(math::pow(0.0, 0.0), 1.0);
    CHECK_EQUAL(math::pow(-2.0, 3.0), -8.0);
    CHECK_EQUAL(math::pow(-2.0, -2.0), 0.25);
    CHECK(std::isnan(math::pow(-2.0, 0.5)));
    CHECK_EQUAL(math::pow(-0.0, -3.0), -infinity);
    CHECK_EQUAL(math::pow(0.5, infinity), 0.0);
    CHECK_EQUAL(math::pow(10.0, 400.0), infinity);
    CHECK_EQUAL(math::pow(10.0, 22.0), 1e22);
    CHECK_EQUAL(math::atan2(0.0, -1.0), 3.141592653589793);
    CHECK_EQUAL(math::atan2(-0.0, -1.0), -3.141592653589793);
    CHECK_EQUAL(math::atan2(1.0, 0.0), 1.5707963267948966);
    CHECK_EQUAL(math::atan2(-1.0, -1.0), -2.356194490192345);
    CHECK_EQUAL(math::floor(-0.5), -1.0);
    CHECK_EQUAL(math::floor(2.7), 2.0);
    CHECK_EQUAL(math::floor(-3.0), -3.0);
    CHECK_EQUAL(math::floor(0x1p60), 0x1p60);
}

TEST("every function has the same bits in every ABI") {
    CHECK_GOLDEN("math.exp", hash_of(math::exp, -745.0, 710.0));
    CHECK_GOLDEN("math.expm1", hash_of(math::expm1, -5.0, 5.0));
    CHECK_GOLDEN("math.log", hash_of(math::log, 0.0, 4.0));
    CHECK_GOLDEN("math.log1p", hash_of(math::log1p, -1.0, 4.0));
    CHECK_GOLDEN("math.pow", hash_of([](double x) { return math::pow(x, 7.3 - x); }, 0.0, 20.0));
    CHECK_GOLDEN("math.sin", hash_of(math::sin, -1e9, 1e9));
    CHECK_GOLDEN("math.cos", hash_of(math::cos, -1e3, 1e3));
    CHECK_GOLDEN("math.tan", hash_of(math::tan, -1e3, 1e3));
    CHECK_GOLDEN("math.atan", hash_of(math::atan, -10.0, 10.0));
    CHECK_GOLDEN("math.atan2", hash_of([](double x) { return math::atan2(x, 1.0 - x * x); }, -3.0, 3.0));
    CHECK_GOLDEN("math.sqrt", hash_of(math::sqrt, 0.0, 1e6));
    CHECK_GOLDEN("math.lgamma", hash_of(math::lgamma, 0.0, 200.0));
}
