#include "elementary.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace reco {

namespace {

// sum of coefficients[i] * x^i
template <std::size_t N> double polynomial(const std::array<double, N> &coefficients, double x) {
    double sum = 0;
    for (std::size_t i = N; i-- > 0;) {
        sum = sum * x + coefficients[i];
    }
    return sum;
}

// Taylor: for |x| <= pi/4 what is left out is below 1e-17.
constexpr std::array<double, 9> SINE = {1,
                                        -1 / 6.0,
                                        1 / 120.0,
                                        -1 / 5040.0,
                                        1 / 362880.0,
                                        -1 / 39916800.0,
                                        1 / 6227020800.0,
                                        -1 / 1307674368000.0,
                                        1 / 355687428096000.0};
constexpr std::array<double, 9> COSINE = {1,
                                          -1 / 2.0,
                                          1 / 24.0,
                                          -1 / 720.0,
                                          1 / 40320.0,
                                          -1 / 3628800.0,
                                          1 / 479001600.0,
                                          -1 / 87178291200.0,
                                          1 / 20922789888000.0};

// An angle is so many quarter turns and a rest of at most an eighth of a turn. pi/2 is taken away in two
// pieces, the first with trailing zeros, so that the product with a small integer is exact (Cody and Waite,
// 1980).
struct Reduced {
    int quarters;
    double rest;
};

Reduced reduced(double angle) {
    constexpr double HIGH = 0x1.921fb544p+0, LOW = 0x1.0b4611a626331p-34;
    const double quarters = std::floor(angle * (2 / PI) + 0.5);
    return {static_cast<int>(quarters) & 3, (angle - quarters * HIGH) - quarters * LOW};
}

double sine_of(Reduced angle) {
    const double x = angle.rest;
    const double size = angle.quarters & 1 ? polynomial(COSINE, x * x) : x * polynomial(SINE, x * x);
    return angle.quarters & 2 ? -size : size;
}

} // namespace

double sine(double angle) { return sine_of(reduced(angle)); }

double cosine(double angle) {
    Reduced turned = reduced(angle);
    turned.quarters = (turned.quarters + 1) & 3;
    return sine_of(turned);
}

namespace {

// For 0 <= x <= 1: halved twice, by tan(a/2) = tan a / (1 + sqrt(1 + tan^2 a)), and then by its series, of
// which x < 0.2 needs these terms.
double arctangent_of(double x) {
    x = x / (1 + std::sqrt(1 + x * x));
    x = x / (1 + std::sqrt(1 + x * x));
    constexpr std::array<double, 12> SERIES = {1,        -1 / 3.0,  1 / 5.0,  -1 / 7.0,  1 / 9.0,  -1 / 11.0,
                                               1 / 13.0, -1 / 15.0, 1 / 17.0, -1 / 19.0, 1 / 21.0, -1 / 23.0};
    return 4 * x * polynomial(SERIES, x * x);
}

} // namespace

double arctangent(double y, double x) {
    const double across = std::fabs(y), along = std::fabs(x);
    if (across == 0 && along == 0) {
        return 0;
    }
    double angle = across <= along ? arctangent_of(across / along) : PI / 2 - arctangent_of(along / across);
    if (x < 0) {
        angle = PI - angle;
    }
    return y < 0 ? -angle : angle;
}

double arcsine_ratio(double x) {
    if (std::fabs(x) < 1e-2) {
        constexpr std::array<double, 5> SERIES = {1, 1 / 6.0, 3 / 40.0, 15 / 336.0, 105 / 3456.0};
        return polynomial(SERIES, x * x);
    }
    return arctangent(x, std::sqrt(1 - x * x)) / x;
}

double logarithm(double x) {
    // x = m * 2^e with m between sqrt(1/2) and sqrt(2); log m = 2 artanh((m - 1) / (m + 1)).
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    int exponent = static_cast<int>(bits >> 52) - 1023;
    double mantissa = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
    if (mantissa > 0x1.6a09e667f3bcdp+0) {
        mantissa /= 2;
        exponent++;
    }
    const double ratio = (mantissa - 1) / (mantissa + 1);
    constexpr std::array<double, 12> SERIES = {1,        1 / 3.0,  1 / 5.0,  1 / 7.0,  1 / 9.0,  1 / 11.0,
                                               1 / 13.0, 1 / 15.0, 1 / 17.0, 1 / 19.0, 1 / 21.0, 1 / 23.0};
    constexpr double LOG2 = 0x1.62e42fefa39efp-1;
    return exponent * LOG2 + 2 * ratio * polynomial(SERIES, ratio * ratio);
}

double normalised(double angle) { return angle - 2 * PI * std::floor((angle + PI) / (2 * PI)); }

} // namespace reco
