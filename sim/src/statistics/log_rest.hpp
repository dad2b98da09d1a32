// What a logarithm near 1 leaves: for probabilities with parameters so large that their logarithms are
// differences of much larger numbers.
#pragma once

#include "widthwise/sim/math.hpp"

namespace widthwise::sim {

/// d - log(1 + d) for d > -1, to nearly full relative accuracy.
inline double log_rest(double d) noexcept {
    constexpr double near = 0x1p-6;
    if (!(d < near && d > -near))
        return d - math::log1p(d);
    double sum = 0.0; // 1 / 2 - d / 3 + d^2 / 4 - ...; d^10 is below 2^-60
    for (double n = 11.0; n >= 2.0; n -= 1.0)
        sum = 1.0 / n - d * sum;
    return d * d * sum;
}

} // namespace widthwise::sim
