// Distributions with the same bits in every ABI: functions of a stream and parameters, without state of their
// own.
//
// Why not <random>: what std::*_distribution returns for a given generator is each library's own affair, and
// what it computes goes through libm. Why functions: nothing is cached between draws, so a stream's position
// says everything.
//
// Parameters outside a distribution's domain, infinite ones and NaN throw BadParameter, which names function
// and value. So do those of counts with a mean of 2^52 or more, whose largest draws may not fit 64 bits.
// References: Devroye, Non-Uniform Random Variate Generation (1986); Marsaglia and Tsang, ACM TOMS 26(3),
// 2000 (gamma); Hoermann, Insurance: Mathematics and Economics 12, 1993 (Poisson, PTRS); Kemp, Applied
// Statistics 30(3), 1981 (logarithmic series); Marsaglia and Bray, SIAM Review 6(3), 1964 (polar normal).
#pragma once

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/random.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace widthwise::sim {

/// A distribution was asked for with a parameter it does not have.
class BadParameter : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

namespace distribution_detail {
[[noreturn]] void refuse(const char *what, double value);
} // namespace distribution_detail

/// Uniform on [low, high).
double uniform(Random &random, double low, double high);

/// Exponential with the given mean, by inversion: one draw each, so that streams stay in step between
/// variants of a model (common random numbers).
inline double exponential(Random &random, double mean) {
    if (!(mean >= 0.0 && mean <= std::numeric_limits<double>::max()))
        distribution_detail::refuse("exponential: a finite mean of at least 0 is needed, not", mean);
    return -mean * math::log(random.positive());
}

double normal(Random &random, double mean, double deviation);

/// Sum of `k` exponentials of mean `mean` each, with one random number for each: the time is linear in `k`.
double erlang(Random &random, double mean, std::uint32_t k);

/// Mean shape * scale.
double gamma(Random &random, double shape, double scale);

/// On [low, high]: low + (high - low) * Beta(a, b).
double beta(Random &random, double a, double b, double low = 0.0, double high = 1.0);

/// The mean is below 2^52.
std::uint64_t poisson(Random &random, double mean);

/// Failures before the first success: mean (1 - p) / p, which is below 2^52.
std::uint64_t geometric(Random &random, double p);

/// Marked ones among `draws` taken, without putting back, from `population` of which `marked` are marked.
/// It draws one random number for each, until no marked ones are left: the time is linear in `draws`.
std::uint32_t hypergeometric(Random &random, std::uint32_t population, std::uint32_t marked,
                             std::uint32_t draws);

/// Failures before success number `successes`: mean successes (1 - p) / p, which is below 2^52. It is a sum
/// of geometric draws, one for each success: the time is linear in `successes`, whatever p is.
std::uint64_t negative_binomial(Random &random, double p, std::uint32_t successes);

/// Logarithmic series on 1, 2, ...: P(k) = -p^k / (k log(1 - p)), 0 < p < 1.
std::uint64_t logarithmic(Random &random, double p);

/// Mean sigma sqrt(pi / 2).
double rayleigh(Random &random, double sigma);

double triangular(Random &random, double low, double mode, double high);

/// Mean scale * Gamma(1 + 1 / shape).
double weibull(Random &random, double scale, double shape);

/// True with probability `p`.
bool bernoulli(Random &random, double p);

} // namespace widthwise::sim
