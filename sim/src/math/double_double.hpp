// Double-double arithmetic: an unevaluated sum of two doubles, about 106 bits, without fused multiply-add.
//
// Invariant: |lo| <= ulp(hi)/2. Everything is constexpr, because the tables of math.cpp are computed from
// series at compile time rather than copied from somewhere. References: Dekker, Numer. Math. 18 (1971);
// Knuth, TAOCP 2, 4.2.2 (two_sum).
#pragma once

namespace widthwise::sim {

struct DoubleDouble {
    double hi;
    double lo;
};

constexpr DoubleDouble quick_two_sum(double a, double b) {
    const double s = a + b;
    return {s, b - (s - a)};
}

constexpr DoubleDouble two_sum(double a, double b) {
    const double s = a + b;
    const double bb = s - a;
    return {s, (a - (s - bb)) + (b - bb)};
}

constexpr DoubleDouble split(double a) {
    const double t = 134217729.0 * a; // 2^27 + 1
    const double hi = t - (t - a);
    return {hi, a - hi};
}

constexpr DoubleDouble two_product(double a, double b) {
    const double p = a * b;
    const auto [ah, al] = split(a);
    const auto [bh, bl] = split(b);
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    auto s = two_sum(a.hi, b.hi);
    const auto t = two_sum(a.lo, b.lo);
    s = quick_two_sum(s.hi, s.lo + t.hi);
    return quick_two_sum(s.hi, s.lo + t.lo);
}

constexpr DoubleDouble operator-(DoubleDouble a) { return {-a.hi, -a.lo}; }
constexpr DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const auto p = two_product(a.hi, b.hi);
    return quick_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

constexpr DoubleDouble operator*(DoubleDouble a, double b) {
    const auto p = two_product(a.hi, b);
    return quick_two_sum(p.hi, p.lo + a.lo * b);
}

constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double q1 = a.hi / b.hi;
    auto r = a - b * q1;
    const double q2 = r.hi / b.hi;
    r = r - b * q2;
    const double q3 = r.hi / b.hi;
    return quick_two_sum(q1, q2) + DoubleDouble{q3, 0.0};
}

} // namespace widthwise::sim
