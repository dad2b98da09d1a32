// Elementary functions whose bits do not depend on the ABI.
//
// Why: glibc's libm gives other last bits on i386 than on x86-64 (only sqrt agrees), so a model that draws
// one exponential variate through it has another trajectory in every width. These functions use nothing but +
// - * /, sqrt and integers, all of which IEEE 754 defines to the last bit. They need what the build asks for:
// SSE2 arithmetic on i386 (no x87 double rounding) and no contraction to fused multiply-add.
//
// Accuracy, as tests/math_test.cpp measures it against long double (units in the last place, over the whole
// domain):
//   exp, log, pow, sin, cos: at most 1; log1p: below 1.05; expm1: below 1.55; atan: below 2.05; tan: below
//   2.5; atan2: below 2.55. (atan and atan2 are below 1.5 and 2 except within a thousandth above 2^-6.)
//   lgamma: absolute error below 1.5e-14 from 0.7 to 2.5, about its roots at 1 and 2; relative error below
//   1e-13 elsewhere.
// Special cases (NaN, infinities, signed zeros, overflow, underflow) are those of C, Annex F; errno and the
// floating-point flags are left alone.
//
// References: tables and coefficients are computed at compile time in double-double arithmetic (Dekker,
// Numer. Math. 18, 1971); table-driven exp and log after Tang (ACM TOMS 15(2), 1989; 16(4), 1990); argument
// reduction after Cody and Waite (1980) and Payne and Hanek (SIGNUM 18, 1983).
#pragma once

namespace widthwise::sim::math {

double exp(double x) noexcept;
double expm1(double x) noexcept;
double log(double x) noexcept;
double log1p(double x) noexcept;
double pow(double x, double y) noexcept;

/// Angles are in radians, of any finite magnitude.
double sin(double x) noexcept;
double cos(double x) noexcept;
double tan(double x) noexcept;
double atan(double x) noexcept;
double atan2(double y, double x) noexcept;

/// Correctly rounded by the processor (`sqrtsd`).
double sqrt(double x) noexcept;

/// Exact: the largest integer not above `x`.
double floor(double x) noexcept;

/// Logarithm of the gamma function for x > 0; NaN elsewhere.
double lgamma(double x) noexcept;

} // namespace widthwise::sim::math
