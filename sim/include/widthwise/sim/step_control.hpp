// How long the next step is to be.
//
// Why not pow: a length needs no last digits, and on small systems two powers cost as much as the step. What
// stands here is good to one part in a thousand, is arithmetic only, and so has the same bits in every ABI.
// References: Hairer, Norsett and Wanner I, II.4; Gustafsson, ACM TOMS 17 (1991) 533-554 (the error before).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace widthwise::sim {

/// The logarithm to base 2 of a positive, normal number, to within 0.001.
inline double rough_log2(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<std::int32_t>((bits >> 52) & 0x7ff) - 1023;
    const double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u) - 1.0; // [0, 1)
    return exponent + m * (1.4208645 + m * (-0.5772506 + m * 0.1563861));
}

/// 2 to the power x, to within one part in a thousand, for |x| < 1000.
inline double rough_exp2(double x) {
    auto whole = static_cast<std::int32_t>(x);
    if (whole > x)
        --whole;
    const double f = x - whole; // [0, 1)
    const double m = 1.0 + f * (0.6959285 + f * (0.2249463 + f * 0.0791252));
    return m * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + whole) << 52);
}

/// Whether a step with the mean square of errors `square` is about as long as it should be. Then the next one
/// is as long: most are, and the processor, which guesses so, begins it before it knows this one's error.
inline bool keeps_length(double square) { return square >= 0.09 && square <= 0.49; }

/// By what to multiply a step whose error was `error` (1: just allowed) and goes with the step's power
/// `order`. By a `share` above zero the accepted step before it, whose error was `before` (0: there was
/// none), counts as well: that is worth it for stiff methods only, whose errors come and go with transients.
/// A refused step is made shorter by its own error alone.
inline double step_factor(double error, double before, int order, double most, double share = 0.0) {
    constexpr double safety = 0.9;
    if (!(error > 1e-10))
        return most;
    const double own = rough_log2(error);
    double power = -own;
    if (share > 0.0 && error <= 1.0 && before > 0.0)
        power = share * rough_log2(std::max(before, 1e-4)) - (1.0 - 0.75 * share) * own;
    return std::clamp(safety * rough_exp2(power / order), 0.2, most);
}

} // namespace widthwise::sim
