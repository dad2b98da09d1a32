// Elementary functions of the program's own, so that every ABI computes the same bits.
//
// glibc's sin, cos, atan2, asin and log are not the same code on i386 (x87 instructions, sysdeps/i386/fpu) as
// on x86-64, and differ in the last place. What is used here is addition, multiplication, division and square
// root, which IEEE 754 rounds correctly everywhere, as long as no x87 register and no fused operation is in
// the way: the Makefile sees to that. Errors are a few units in the last place; arguments are not
// checked.
#ifndef RECO_ELEMENTARY_HPP
#define RECO_ELEMENTARY_HPP

namespace reco {

constexpr double PI = 3.14159265358979323846;

constexpr double square(double x) { return x * x; }

// Of an angle of at most a few turns, in radians.
double sine(double angle);
double cosine(double angle);

// Of y / x, in (-pi, pi], of whichever quadrant (x, y) lies in; 0 where both are 0.
double arctangent(double y, double x);

// asin(x) / x for |x| < 1, which is smooth where x is 0.
double arcsine_ratio(double x);

// Natural logarithm of a positive, normal number.
double logarithm(double x);

// The same angle in [-pi, pi), of one at most a few turns off.
double normalised(double angle);

} // namespace reco

#endif
