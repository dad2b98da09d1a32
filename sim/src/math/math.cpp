#include "widthwise/sim/math.hpp"

#include "math/double_double.hpp"
#include "math/reduction.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <emmintrin.h>
#include <limits>

namespace widthwise::sim::math {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
constexpr double from_bits(std::uint64_t x) { return std::bit_cast<double>(x); }
constexpr bool is_nan(double x) { return x != x; }
constexpr double absolute(double x) { return from_bits(bits(x) & 0x7fffffffffffffffu); }
constexpr bool negative(double x) { return (bits(x) >> 63) != 0; }

/// 2^k for -1022 <= k <= 1023.
constexpr double power_of_two(int k) { return from_bits(static_cast<std::uint64_t>(k + 1023) << 52); }

// ---------------------------------------------------------------------------------------------------------------
// Series in double-double, evaluated by the compiler only.

constexpr DoubleDouble atanh_series(DoubleDouble z) {
    const auto z2 = z * z;
    auto power = z;
    auto sum = z;
    for (int k = 3; absolute(power.hi) > 1e-36; k += 2) {
        power = power * z2;
        sum = sum + power / DoubleDouble{static_cast<double>(k), 0.0};
    }
    return sum;
}

constexpr DoubleDouble log_series(DoubleDouble c) {
    const DoubleDouble one{1.0, 0.0};
    if (c.hi == 1.0 && c.lo == 0.0)
        return {0.0, 0.0};
    return atanh_series((c - one) / (c + one)) * 2.0;
}

constexpr DoubleDouble exp_series(DoubleDouble x) {
    DoubleDouble term{1.0, 0.0};
    DoubleDouble sum = term;
    for (int k = 1; k < 60 && absolute(term.hi) > 1e-36; ++k) {
        term = term * x / DoubleDouble{static_cast<double>(k), 0.0};
        sum = sum + term;
    }
    return sum;
}

constexpr DoubleDouble atan_series(DoubleDouble z) {
    const auto z2 = z * z;
    auto power = z;
    auto sum = z;
    double sign = -1.0;
    for (int k = 3; absolute(power.hi) > 1e-36; k += 2, sign = -sign) {
        power = power * z2;
        sum = sum + power / DoubleDouble{sign * static_cast<double>(k), 0.0};
    }
    return sum;
}

constexpr DoubleDouble ln2 = log_series({2.0, 0.0});

/// Machin: pi = 16 atan(1/5) - 4 atan(1/239).
constexpr DoubleDouble pi = atan_series(DoubleDouble{1.0, 0.0} / DoubleDouble{5.0, 0.0}) * 16.0 -
                            atan_series(DoubleDouble{1.0, 0.0} / DoubleDouble{239.0, 0.0}) * 4.0;
static_assert(pi.hi == 0x1.921fb54442d18p+1);
static_assert(ln2.hi == 0x1.62e42fefa39efp-1);

/// `x` rounded to a multiple of ulp(shifter): 2^-40 for 1.5 * 2^12. Multiples of it by small integers, and
/// their sums, are exact.
constexpr double coarse(double x, double shifter = 0x1.8p12) { return (x + shifter) - shifter; }

constexpr double ln2_coarse = coarse(ln2.hi);
constexpr double ln2_rest = (ln2 - DoubleDouble{ln2_coarse, 0.0}).hi;

// ---------------------------------------------------------------------------------------------------------------
// log: x = 2^k m with m in about [sqrt(1/2), sqrt(2)), c = m rounded to 7 bits of mantissa, r = (m - c) / c;
// log x = k ln 2 + log c + log(1 + r), |r| <= 1/256. m - c is exact, and c = 1 on both sides of 1.

constexpr int log_index_shift = 45;
constexpr std::uint64_t log_first = 0x3fe6a00000000000u; // the least c: 0.70703125

struct LogEntry {
    double coarse;
    double rest;
    double rest_low;
    double inverse; // 1 / c and what it lacks: a multiplication takes a third of a division's time
    double inverse_low;
};

constexpr auto log_table = [] {
    std::array<LogEntry, 128> table{};
    for (std::uint64_t i = 0; i < table.size(); ++i) {
        const DoubleDouble c{from_bits(log_first + (i << log_index_shift)), 0.0};
        const auto value = log_series(c);
        const double head = coarse(value.hi);
        const auto rest = value - DoubleDouble{head, 0.0};
        const auto inverse = DoubleDouble{1.0, 0.0} / c;
        table[i] = {head, rest.hi, rest.lo, inverse.hi, inverse.lo};
    }
    return table;
}();

struct LogParts {
    double k;
    double c;
    double difference; // m - c, exact
    const LogEntry *entry;
};

/// Takes a positive, finite `x` apart.
inline LogParts take_apart(double x) {
    int k = 0;
    std::uint64_t u = bits(x);
    if (u < 0x0010000000000000u) [[unlikely]] { // subnormal
        u = bits(x * 0x1p54);
        k = -54;
    }
    const std::uint64_t rounded = u + (std::uint64_t{1} << (log_index_shift - 1));
    const std::uint64_t offset = rounded - log_first;
    const auto exponent = static_cast<std::int64_t>(offset) >> 52;
    k += static_cast<int>(exponent);
    const std::uint64_t scale = static_cast<std::uint64_t>(exponent) << 52;
    const double m = from_bits(u - scale);
    const double c = from_bits((rounded - scale) >> log_index_shift << log_index_shift);
    return {static_cast<double>(k), c, m - c, &log_table[(offset >> log_index_shift) & 127]};
}

/// (log(1 + r) - r + r^2/2) / r^3 for |r| <= 1/256.
double log_tail(double r) {
    const double r2 = r * r;
    return (1.0 / 3.0 - r * 0.25) +
           r2 * ((0.2 - r * (1.0 / 6.0)) + r2 * ((1.0 / 7.0 - r * 0.125) + r2 * (1.0 / 9.0)));
}

/// log(x) to about 68 bits, for pow.
DoubleDouble long_log(double x) {
    const auto parts = take_apart(x);
    const double q = parts.difference / parts.c;
    const auto back = two_product(q, parts.c);
    const double q_low = ((parts.difference - back.hi) - back.lo) / parts.c;
    const auto square = two_product(q, q);
    // log(1 + q + q_low) = q + q_low (1 - q) - q^2/2 + q^3 tail(q)
    auto sum = two_sum(q, -0.5 * square.hi);
    sum.lo += (q_low - q * q_low) - 0.5 * square.lo + q * square.hi * log_tail(q);
    sum = quick_two_sum(sum.hi, sum.lo);
    const double head = parts.k * ln2_coarse + parts.entry->coarse;
    const auto rest = two_product(parts.k, ln2_rest);
    auto small = two_sum(rest.hi, parts.entry->rest);
    small.lo += rest.lo + parts.entry->rest_low;
    return (DoubleDouble{head, 0.0} + sum) + small;
}

// ---------------------------------------------------------------------------------------------------------------
// exp: x = (64 k + j) ln 2 / 64 + r, |r| <= ln 2 / 128; exp x = 2^k 2^(j/64) exp r.

constexpr auto exp_table = [] {
    std::array<DoubleDouble, 64> table{};
    for (int j = 0; j < 64; ++j)
        table[static_cast<std::size_t>(j)] = exp_series(ln2 * (static_cast<double>(j) / 64.0));
    return table;
}();

// Multiples of 2^-34, so that products with up to 2^17 steps are exact.
constexpr double ln2_coarser = coarse(ln2.hi, 0x1.8p18);
constexpr double step_coarse = ln2_coarser / 64.0;
constexpr double step_rest = (ln2 - DoubleDouble{ln2_coarser, 0.0}).hi / 64.0;
constexpr double steps_per_unit = 64.0 / ln2.hi;
constexpr double rounding_shifter = 0x1.8p52;

struct ExpParts {
    int k;
    DoubleDouble root; // 2^(j/64)
    double p;          // exp(r) - 1
};

ExpParts split_exponent(double x, double x_low) {
    const double n = (x * steps_per_unit + rounding_shifter) - rounding_shifter;
    const int steps = static_cast<int>(n);
    const double head = x - n * step_coarse; // exact: n * step_coarse has at most 17 + 34 bits
    const double r_low = x_low - n * step_rest;
    const double r = head + r_low;
    const double lost = (head - r) + r_low;
    const double r2 = r * r;
    const double p =
        r + (lost + r2 * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    return {steps >> 6, exp_table[static_cast<std::size_t>(steps & 63)], p};
}

/// `value` * 2^k, rounded once also where the result is subnormal.
double scale(double head, double rest, int k) {
    if (k > 1000)
        return ((head + rest) * 0x1p1000) * power_of_two(k - 1000);
    if (k >= -1022)
        return (head + rest) * power_of_two(k);
    // Subnormal: add the scaled parts to a number whose ulp is the smallest subnormal's, so that one rounding
    // happens.
    const double up = power_of_two(k + 1022);
    const auto sum = quick_two_sum(head * up, rest * up);
    const auto rounded = two_sum(1.0, sum.hi);
    const double total = rounded.hi + (rounded.lo + sum.lo);
    return (total - 1.0) * 0x1p-1022;
}

double exp_of(double x, double x_low) {
    const auto parts = split_exponent(x, x_low);
    return scale(parts.root.hi, parts.root.lo + parts.root.hi * parts.p, parts.k);
}

// ---------------------------------------------------------------------------------------------------------------
// sin and cos on [-pi/4, pi/4], argument r + low.

double sin_kernel(double r, double low) {
    const double z = r * r;
    const double tail =
        1.0 / 120.0 +
        z * (-1.0 / 5040.0 +
             z * (1.0 / 362880.0 +
                  z * (-1.0 / 39916800.0 +
                       z * (1.0 / 6227020800.0 +
                            z * (-1.0 / 1307674368000.0 +
                                 z * (1.0 / 355687428096000.0 + z * (-1.0 / 121645100408832000.0)))))));
    return r + (z * r * (-1.0 / 6.0 + z * tail) + low * (1.0 - 0.5 * z));
}

double cos_kernel(double r, double low) {
    const double z = r * r;
    const double tail =
        1.0 / 24.0 +
        z * (-1.0 / 720.0 + z * (1.0 / 40320.0 +
                                 z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0 +
                                                              z * (-1.0 / 87178291200.0 +
                                                                   z * (1.0 / 20922789888000.0 +
                                                                        z * (-1.0 / 6402373705728000.0)))))));
    const double half = 0.5 * z;
    const double head = 1.0 - half;
    return head + (((1.0 - head) - half) + (z * z * tail - r * low));
}

// ---------------------------------------------------------------------------------------------------------------
// atan: c = x rounded to 1/32, t = (x - c) / (1 + x c); atan x = atan c + atan t.

constexpr auto atan_table = [] {
    std::array<DoubleDouble, 34> table{};
    for (int i = 1; i < 34; ++i) {
        // atan(i/32) by adding atan of the difference to the entry before: the series stay short.
        const double a = static_cast<double>(i - 1) / 32.0;
        const double b = static_cast<double>(i) / 32.0;
        const auto t = DoubleDouble{1.0 / 32.0, 0.0} / (DoubleDouble{1.0, 0.0} + DoubleDouble{a * b, 0.0});
        table[static_cast<std::size_t>(i)] = table[static_cast<std::size_t>(i - 1)] + atan_series(t);
    }
    return table;
}();

/// atan(x + low) for 0 <= x <= 1, as head and rest.
DoubleDouble atan_unit(double x, double low) {
    const int index = static_cast<int>(x * 32.0 + 0.5);
    const double c = static_cast<double>(index) * 0.03125;
    const double t = ((x - c) + low) / (1.0 + x * c);
    const double z = t * t;
    const double tail =
        t * z * (-1.0 / 3.0 + z * (0.2 + z * (-1.0 / 7.0 + z * (1.0 / 9.0 + z * (-1.0 / 11.0)))));
    const auto &entry = atan_table[static_cast<std::size_t>(index)];
    const auto sum = two_sum(entry.hi, t);
    return {sum.hi, sum.lo + (entry.lo + tail)};
}

constexpr DoubleDouble half_pi = {pi.hi * 0.5, pi.lo * 0.5};

/// atan(y / x) for positive, finite y and x.
DoubleDouble atan_ratio(double y, double x) {
    const bool inverted = y > x;
    const double numerator = inverted ? x : y;
    const double denominator = inverted ? y : x;
    const double q = numerator / denominator;
    double q_low = 0.0;
    if (q > 0x1p-200 && denominator < 0x1p900 && denominator > 0x1p-800 && numerator > 0x1p-900) {
        const auto back = two_product(q, denominator);
        q_low = ((numerator - back.hi) - back.lo) / denominator;
    }
    const auto angle = atan_unit(q, q_low);
    if (!inverted)
        return angle;
    const auto difference = two_sum(half_pi.hi, -angle.hi);
    return {difference.hi, difference.lo + (half_pi.lo - angle.lo)};
}

} // namespace

double sqrt(double x) noexcept { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x))); }

double floor(double x) noexcept {
    if (!(absolute(x) < 0x1p52))
        return x; // an integer already, infinite or NaN
    const double magnitude = absolute(x);
    double whole = (magnitude + 0x1p52) - 0x1p52;
    if (!negative(x))
        return whole > magnitude ? whole - 1.0 : from_bits(bits(whole) | (bits(x) >> 63 << 63));
    return whole < magnitude ? -(whole + 1.0) : -whole;
}

double log(double x) noexcept {
    if (!(x > 0.0) || x == infinity) [[unlikely]] {
        if (x == infinity)
            return x;
        return x == 0.0 ? -infinity : nan;
    }
    const auto parts = take_apart(x);
    const double r = parts.difference * parts.entry->inverse;
    const double head = parts.k * ln2_coarse + parts.entry->coarse; // exact: multiples of 2^-40 below 2^10
    const double rest =
        parts.k * ln2_rest + (parts.entry->rest + parts.difference * parts.entry->inverse_low);
    const double small = rest + r * r * (r * log_tail(r) - 0.5);
    const auto sum = quick_two_sum(head, r); // head is 0, or greater than r
    return sum.hi + (sum.lo + small);
}

double log1p(double x) noexcept {
    if (is_nan(x) || x < -1.0)
        return nan;
    if (x == -1.0)
        return -infinity;
    if (x == infinity || absolute(x) < 0x1p-54)
        return x;
    if (absolute(x) <= 0.00390625) { // the series in x itself, without the detour over 1 + x
        const double x2 = x * x;
        return x + x2 * (x * log_tail(x) - 0.5);
    }
    const auto whole = two_sum(1.0, x);
    const auto parts = take_apart(whole.hi);
    const double correction = whole.lo / whole.hi;
    const double r = parts.difference * parts.entry->inverse;
    const double head = parts.k * ln2_coarse + parts.entry->coarse;
    const double rest =
        parts.k * ln2_rest + (parts.entry->rest + parts.difference * parts.entry->inverse_low);
    const double small = rest + (correction + r * r * (r * log_tail(r) - 0.5));
    const auto sum = quick_two_sum(head, r);
    return sum.hi + (sum.lo + small);
}

double exp(double x) noexcept {
    if (is_nan(x))
        return x;
    if (x > 709.782712893384)
        return x > 0x1.62e42fefa39efp+9 ? infinity : exp_of(x, 0.0);
    if (x < -745.1332191019412)
        return 0.0;
    return exp_of(x, 0.0);
}

double expm1(double x) noexcept {
    if (is_nan(x))
        return x;
    if (x > 0x1.62e42fefa39efp+9)
        return infinity;
    if (x < -40.0)
        return -1.0;
    if (absolute(x) < 0x1p-54)
        return x;
    const auto parts = split_exponent(x, 0.0);
    if (parts.k > 60)
        return scale(parts.root.hi, parts.root.lo + parts.root.hi * parts.p, parts.k);
    const double up = power_of_two(parts.k);
    const auto head = two_sum(parts.root.hi * up, -1.0);
    return head.hi + (head.lo + up * (parts.root.lo + parts.root.hi * parts.p));
}

double pow(double x, double y) noexcept {
    if (y == 0.0 || x == 1.0)
        return 1.0;
    if (is_nan(x) || is_nan(y))
        return nan;
    const bool y_integer = absolute(y) >= 0x1p53 || floor(y) == y;
    const bool y_odd = y_integer && absolute(y) < 0x1p53 && floor(y * 0.5) * 2.0 != y;
    const double magnitude = absolute(x);
    if (absolute(y) == infinity) {
        if (magnitude == 1.0)
            return 1.0;
        return (magnitude > 1.0) == (y > 0.0) ? infinity : 0.0;
    }
    const double sign = y_odd && negative(x) ? -1.0 : 1.0;
    if (magnitude == 0.0 || magnitude == infinity)
        return sign * ((magnitude == 0.0) == (y > 0.0) ? 0.0 : infinity);
    if (x < 0.0 && !y_integer)
        return nan;
    if (magnitude == 1.0)
        return sign;
    const auto logarithm = long_log(magnitude);
    const double estimate = y * logarithm.hi;
    if (estimate > 710.0)
        return sign * infinity;
    if (estimate < -746.0)
        return sign * 0.0;
    if (absolute(y) < 0x1p-65)
        return sign; // 1 + y log x rounds to 1; keeps the products below from underflowing
    // y may be as large as 2^60 where x is next to 1: scaling by a power of two keeps Dekker's split from
    // overflowing.
    const auto product = two_product(y, logarithm.hi);
    const double low = product.lo + y * logarithm.lo;
    if (product.hi > 709.782712893385)
        return sign * infinity;
    if (product.hi < -745.14)
        return sign * 0.0;
    return sign * exp_of(product.hi, low);
}

double sin(double x) noexcept {
    if (!(absolute(x) < infinity))
        return nan;
    if (absolute(x) < 0x1p-27)
        return x;
    const auto [quadrant, r, low] = reduce_by_half_pi(x);
    switch (quadrant) {
    case 0:
        return sin_kernel(r, low);
    case 1:
        return cos_kernel(r, low);
    case 2:
        return -sin_kernel(r, low);
    default:
        return -cos_kernel(r, low);
    }
}

double cos(double x) noexcept {
    if (!(absolute(x) < infinity))
        return nan;
    const auto [quadrant, r, low] = reduce_by_half_pi(x);
    switch (quadrant) {
    case 0:
        return cos_kernel(r, low);
    case 1:
        return -sin_kernel(r, low);
    case 2:
        return -cos_kernel(r, low);
    default:
        return sin_kernel(r, low);
    }
}

double tan(double x) noexcept {
    if (!(absolute(x) < infinity))
        return nan;
    if (absolute(x) < 0x1p-27)
        return x;
    const auto [quadrant, r, low] = reduce_by_half_pi(x);
    const double s = sin_kernel(r, low);
    const double c = cos_kernel(r, low);
    return (quadrant & 1) != 0 ? -c / s : s / c;
}

double atan(double x) noexcept {
    if (is_nan(x))
        return x;
    const double magnitude = absolute(x);
    if (magnitude < 0x1p-27)
        return x;
    double result = half_pi.hi;
    if (magnitude < 0x1p60) {
        const auto angle = atan_ratio(magnitude, 1.0);
        result = angle.hi + angle.lo;
    }
    return negative(x) ? -result : result;
}

double atan2(double y, double x) noexcept {
    if (is_nan(x) || is_nan(y))
        return nan;
    const double ay = absolute(y);
    const double ax = absolute(x);
    DoubleDouble angle;
    if (ay == 0.0)
        angle = {0.0, 0.0};
    else if (ax == 0.0 || (ay == infinity && ax != infinity))
        angle = half_pi;
    else if (ay == infinity)
        angle = {half_pi.hi * 0.5, half_pi.lo * 0.5};
    else if (ax == infinity)
        angle = {0.0, 0.0};
    else
        angle = atan_ratio(ay, ax);
    double result = angle.hi + angle.lo;
    if (negative(x)) {
        const auto other = two_sum(pi.hi, -angle.hi);
        result = other.hi + (other.lo + (pi.lo - angle.lo));
    }
    return negative(y) ? -result : result;
}

double lgamma(double x) noexcept {
    if (!(x > 0.0))
        return nan;
    if (x == infinity)
        return x;
    if (x == 1.0 || x == 2.0)
        return 0.0;
    // Stirling's series above 15 (Abramowitz and Stegun 6.1.41); below, recurrence up to it. The product
    // stays far from overflow: 15! is about 2^40.
    double product = 1.0;
    double z = x;
    while (z < 15.0) {
        product *= z;
        z += 1.0;
    }
    const double w = 1.0 / (z * z);
    const double series =
        (1.0 / 12.0 +
         w * (-1.0 / 360.0 +
              w * (1.0 / 1260.0 +
                   w * (-1.0 / 1680.0 + w * (1.0 / 1188.0 + w * (-691.0 / 360360.0 + w * (1.0 / 156.0))))))) /
        z;
    constexpr double half_log_two_pi =
        (log_series(pi * 2.0 / DoubleDouble{6.0, 0.0}) + log_series({1.5, 0.0}) + ln2 * 2.0).hi * 0.5;
    const double log_z = log(z);
    const double stirling = (z - 0.5) * log_z - z + half_log_two_pi + series;
    return product == 1.0 ? stirling : stirling - log(product);
}

} // namespace widthwise::sim::math
