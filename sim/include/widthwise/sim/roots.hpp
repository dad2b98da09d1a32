// Brent's method for a zero of a function between two points where it has different signs.
#pragma once

#include <limits>

namespace widthwise::sim {

/// A zero between `a` and `b`, where the function has the values `fa` and `fb` of different signs (or zero),
/// to within `tolerance` and the numbers' resolution. Always ends: at worst by halving (R. P. Brent,
/// Algorithms for Minimization without Derivatives, 1973, ch. 4).
template <class Function>
double brent(Function &&f, double a, double b, double fa, double fb, double tolerance) {
    const auto size = [](double x) { return x < 0.0 ? -x : x; };
    double c = a;
    double fc = fa;
    double step = b - a; // the present correction, and the one before it
    double before = step;
    for (;;) {
        if ((fb > 0.0) == (fc > 0.0)) {
            c = a;
            fc = fa;
            step = before = b - a;
        }
        if (size(fc) < size(fb)) { // b is the best, c lies on the other side
            a = b;
            b = c;
            c = a;
            fa = fb;
            fb = fc;
            fc = fa;
        }
        const double least = 2.0 * std::numeric_limits<double>::epsilon() * size(b) + 0.5 * tolerance;
        const double half = 0.5 * (c - b);
        if (size(half) <= least || fb == 0.0)
            return b;
        if (size(before) < least || size(fa) <= size(fb)) {
            step = before = half;
        } else {
            const double s = fb / fa;
            double p;
            double q;
            if (a == c) { // two points: a secant
                p = 2.0 * half * s;
                q = 1.0 - s;
            } else { // three: an inverse parabola
                const double r = fa / fc;
                const double t = fb / fc;
                p = s * (2.0 * half * r * (r - t) - (b - a) * (t - 1.0));
                q = (r - 1.0) * (t - 1.0) * (s - 1.0);
            }
            if (p > 0.0)
                q = -q;
            p = size(p);
            const double limit = 3.0 * half * q - size(least * q);
            const double other = size(before * q);
            before = step;
            if (2.0 * p < (limit < other ? limit : other))
                step = p / q;
            else
                step = before = half;
        }
        a = b;
        fa = fb;
        b += size(step) > least ? step : half > 0.0 ? least : -least;
        fb = f(b);
    }
}

} // namespace widthwise::sim
