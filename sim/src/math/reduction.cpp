#include "math/reduction.hpp"

#include "math/double_double.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace widthwise::sim {
namespace {

// pi and 2/pi as fixed-point numbers, computed by the compiler: no table of digits to trust. The largest
// double is below 2^1024; 192 bits after its last integer bit are looked at, and 62 of those may be zeros
// (Muller, Handbook of Floating-Point Arithmetic, 11.3.2).

constexpr std::size_t limbs = 42; // 1344 bits

/// [0] is the integer part, [1] the first 32 bits after the point. No std::array: clang counts each call of
/// its operators among the steps that it allows a constant.
struct Fixed {
    std::uint32_t limb[limbs + 1] = {};
};

constexpr void divide(Fixed &a, std::uint32_t by) {
    std::uint64_t remainder = 0;
    for (auto &limb : a.limb) {
        const std::uint64_t value = (remainder << 32) | limb;
        limb = static_cast<std::uint32_t>(value / by);
        remainder = value % by;
    }
}

constexpr void add(Fixed &a, const Fixed &b) {
    std::uint64_t carry = 0;
    for (std::size_t i = limbs + 1; i-- > 0;) {
        carry += static_cast<std::uint64_t>(a.limb[i]) + b.limb[i];
        a.limb[i] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
    }
}

constexpr void subtract(Fixed &a, const Fixed &b) {
    std::uint64_t borrow = 0;
    for (std::size_t i = limbs + 1; i-- > 0;) {
        const std::uint64_t value = static_cast<std::uint64_t>(a.limb[i]) - b.limb[i] - borrow;
        a.limb[i] = static_cast<std::uint32_t>(value);
        borrow = (value >> 32) & 1;
    }
}

constexpr bool is_zero(const Fixed &a) {
    for (const auto limb : a.limb)
        if (limb != 0)
            return false;
    return true;
}

constexpr bool at_least(const Fixed &a, const Fixed &b) {
    for (std::size_t i = 0; i <= limbs; ++i)
        if (a.limb[i] != b.limb[i])
            return a.limb[i] > b.limb[i];
    return true;
}

/// `scale` * atan(1 / n).
constexpr Fixed arctangent_of_inverse(std::uint32_t n, std::uint32_t scale) {
    Fixed power{};
    power.limb[0] = scale;
    divide(power, n);
    Fixed sum = power;
    for (std::uint32_t k = 3;; k += 2) {
        divide(power, n * n);
        if (is_zero(power))
            return sum;
        Fixed term = power;
        divide(term, k);
        if (k % 4 == 3)
            subtract(sum, term);
        else
            add(sum, term);
    }
}

constexpr Fixed half_pi = [] {
    Fixed value = arctangent_of_inverse(5, 8); // Machin, halved
    subtract(value, arctangent_of_inverse(239, 2));
    return value;
}();

/// 1 / half_pi by long division, bit by bit.
constexpr Fixed two_over_pi = [] {
    Fixed quotient{};
    Fixed remainder{};
    remainder.limb[0] = 1;
    for (std::size_t bit = 0; bit < 32 * (limbs - 1); ++bit) {
        add(remainder, Fixed(remainder));
        if (at_least(remainder, half_pi)) {
            subtract(remainder, half_pi);
            quotient.limb[1 + bit / 32] |= 0x80000000u >> (bit % 32);
        }
    }
    return quotient;
}();

/// `count` bits of half_pi from bit `first` (0 is the bit of weight 1), at their place.
constexpr double part_of_half_pi(int first, int count) {
    double value = 0.0;
    double weight = 1.0;
    for (int i = 0; i < first + count; ++i, weight *= 0.5) {
        const bool set =
            i == 0 ? (half_pi.limb[0] & 1) != 0
                   : ((half_pi.limb[static_cast<std::size_t>(1 + (i - 1) / 32)] >> (31 - (i - 1) % 32)) &
                      1) != 0;
        if (set && i >= first)
            value += weight;
    }
    return value;
}

constexpr double first_part = part_of_half_pi(0, 33);
constexpr double second_part = part_of_half_pi(33, 33);
constexpr double third_part = part_of_half_pi(66, 33);
constexpr double fourth_part = part_of_half_pi(99, 53);
static_assert(first_part + second_part == 0x1.921fb54442d18p+0);

constexpr DoubleDouble half_pi_pair = {part_of_half_pi(0, 53), part_of_half_pi(53, 53)};

/// Cody and Waite: n has at most 20 bits, so that its products with the 33-bit parts are exact.
Reduced reduce_medium(double x) {
    constexpr double shifter = 0x1.8p52;
    const double n = (x * 0x1.45f306dc9c883p-1 + shifter) - shifter; // 2/pi
    auto sum = two_sum(x - n * first_part, -n * second_part);
    const auto third = two_sum(sum.lo, -n * third_part);
    sum = two_sum(sum.hi, third.hi);
    const double low = sum.lo + (third.lo - n * fourth_part);
    const auto pair = quick_two_sum(sum.hi, low);
    return {static_cast<int>(n) & 3, pair.hi, pair.lo};
}

/// Payne and Hanek: of the product with 2/pi, only the bits that matter modulo 4, in 192-bit integers.
Reduced reduce_large(double x) {
    const auto u = std::bit_cast<std::uint64_t>(x);
    const int exponent = static_cast<int>((u >> 52) & 0x7ff) - 1075; // |x| = mantissa * 2^exponent
    const std::uint64_t mantissa = (u & 0xfffffffffffffu) | 0x10000000000000u;
    // The first bit kept has weight 2^(1 - exponent) in 2/pi: bit number exponent - 1 after the point, which
    // may lie before it (zeros).
    constexpr int words = 6;
    std::array<std::uint32_t, words> window{};
    const int first = exponent - 2; // bits after the point to skip
    for (int w = 0; w < words; ++w) {
        std::uint32_t value = 0;
        const int start = first + 32 * w;
        const int word = start >= 0 ? start / 32 : -((31 - start) / 32);
        const int shift = start - 32 * word;
        const auto limb = [](int i) -> std::uint32_t {
            return i < 0 || i >= static_cast<int>(limbs) ? 0u
                                                         : two_over_pi.limb[static_cast<std::size_t>(i + 1)];
        };
        value = shift == 0 ? limb(word) : (limb(word) << shift) | (limb(word + 1) >> (32 - shift));
        window[static_cast<std::size_t>(w)] = value;
    }
    std::array<std::uint32_t, words> product{};
    const std::array<std::uint64_t, 2> factor = {mantissa & 0xffffffffu, mantissa >> 32};
    for (std::size_t f = 0; f < 2; ++f) {
        std::uint64_t carry = 0;
        for (std::size_t w = words; w-- > 0;) {
            if (w < f)
                break;
            const std::size_t target = w - f;
            const std::uint64_t value = factor[f] * window[w] + product[target] + carry;
            product[target] = static_cast<std::uint32_t>(value);
            carry = value >> 32;
        }
    }
    int quadrant = static_cast<int>(product[0] >> 30);
    const bool above_half = ((product[0] >> 29) & 1) != 0;
    product[0] &= 0x3fffffffu;
    double sign = 1.0;
    if (above_half) { // fraction - 1, as a magnitude
        ++quadrant;
        sign = -1.0;
        std::uint64_t borrow = 0;
        for (std::size_t w = words; w-- > 0;) {
            const std::uint64_t from = w == 0 ? 0x40000000u : 0u;
            const std::uint64_t value = from - product[w] - borrow;
            product[w] = static_cast<std::uint32_t>(value);
            borrow = (value >> 32) & 1;
        }
    }
    DoubleDouble fraction{0.0, 0.0};
    double weight = 0x1p-30;
    for (const auto word : product) {
        fraction = fraction + DoubleDouble{static_cast<double>(word) * weight, 0.0};
        weight *= 0x1p-32;
    }
    auto angle = fraction * half_pi_pair;
    if (x < 0.0) {
        quadrant = -quadrant;
        sign = -sign;
    }
    return {quadrant & 3, sign * angle.hi, sign * angle.lo};
}

} // namespace

Reduced reduce_by_half_pi(double x) noexcept {
    const double magnitude = x < 0.0 ? -x : x;
    if (magnitude <= 0.785)
        return {0, x, 0.0};
    if (magnitude < 0x1p20)
        return reduce_medium(x);
    return reduce_large(x);
}

} // namespace widthwise::sim
