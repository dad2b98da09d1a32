// The argument of a trigonometric function, less a multiple of pi/2.
#pragma once

namespace widthwise::sim {

struct Reduced {
    int quadrant; // of the multiple that was taken off: 0 to 3
    double r;     // within pi/4 of 0
    double low;   // what r lacks
};

/// Exact to about 2^-70 relative, for every finite `x`.
Reduced reduce_by_half_pi(double x) noexcept;

} // namespace widthwise::sim
