// Explicit Runge-Kutta methods as data: an embedded pair a row, with its source.
//
// Why data: one engine runs all of them, and one test proves of each that it has the order it claims.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

namespace widthwise::sim {

/// A fraction n/d, d > 0.
struct Ratio {
    std::int64_t n;
    std::int64_t d;
};

/// In lowest terms; the caller sees to it that 64 bits are enough.
constexpr Ratio sum(Ratio x, Ratio y) {
    const std::int64_t common = x.d / std::gcd(x.d, y.d) * y.d;
    const std::int64_t n = x.n * (common / x.d) + y.n * (common / y.d);
    const std::int64_t g = std::gcd(n, common);
    return {n / g, common / g};
}

struct Tableau {
    const char *name;
    const char *source;
    int order;    // of what the step takes
    int embedded; // order of the formula it is measured against
    int stages;
    bool first_same_as_last;        // the last stage is the derivative at the new state
    const double *a;                // rows below the diagonal, one after another: row i has i entries
    const double *b;                // weights of the step
    const double *error;            // weights of the step minus the embedded formula's
    const double *c;                // nodes
    const Ratio *exact_a = nullptr; // the same as fractions; null where they do not fit
    const Ratio *exact_b = nullptr;
    const Ratio *exact_embedded = nullptr;
};

/// euler, rke, rkf3, rkf5, rkf8, tsit5, vern7, vern8: in the order of Method.
std::span<const Tableau> tableaus();

} // namespace widthwise::sim
