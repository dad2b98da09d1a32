#include "check.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <vector>

using namespace widthwise::sim;

namespace {

constexpr int draws = 100000;

/// Kolmogorov and Smirnov's distance times sqrt(n); above 1.95 with probability 0.001.
template <class Draw, class Probability> double distance(Draw draw, Probability probability) {
    Random random(17);
    std::vector<double> sample(draws);
    for (double &x : sample)
        x = draw(random);
    std::sort(sample.begin(), sample.end());
    double worst = 0.0;
    for (int i = 0; i < draws; ++i) {
        const double p = probability(sample[static_cast<std::size_t>(i)]);
        worst = std::max({worst, p - static_cast<double>(i) / draws, static_cast<double>(i + 1) / draws - p});
    }
    return worst * std::sqrt(static_cast<double>(draws));
}

/// Probability that chi-square would be at least as large, for values 0, 1, ... with the given probabilities.
template <class Draw, class Probability> double fit(Draw draw, Probability probability) {
    Random random(23);
    std::vector<double> counts(400);
    for (int i = 0; i < draws; ++i)
        ++counts[std::min<std::size_t>(static_cast<std::size_t>(draw(random)), 399)];
    double chi = 0.0;
    double cells = 0.0;
    double expected = 0.0;
    double seen = 0.0;
    double remaining = draws;
    for (std::size_t k = 0; k < counts.size(); ++k) {
        expected += draws * probability(static_cast<double>(k));
        seen += counts[k];
        if (expected < 10.0 || remaining - expected < 10.0)
            continue; // cells of at least ten
        chi += (seen - expected) * (seen - expected) / expected;
        cells += 1.0;
        remaining -= expected;
        expected = seen = 0.0;
    }
    chi += (seen - remaining) * (seen - remaining) / remaining;
    return 1.0 - chi_square_probability(chi, cells);
}

double normal_probability(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

constexpr double ks_limit = 1.95;
constexpr double chi_limit = 0.001;

} // namespace

TEST("continuous distributions have the distribution functions of the textbook") {
    CHECK(distance([](Random &r) { return uniform(r, 2.0, 5.0); }, [](double x) { return (x - 2.0) / 3.0; }) <
          ks_limit);
    CHECK(distance([](Random &r) { return exponential(r, 3.0); },
                   [](double x) { return 1.0 - std::exp(-x / 3.0); }) < ks_limit);
    CHECK(distance([](Random &r) { return normal(r, 1.0, 2.0); },
                   [](double x) { return normal_probability((x - 1.0) / 2.0); }) < ks_limit);
    CHECK(distance([](Random &r) { return rayleigh(r, 2.0); },
                   [](double x) { return 1.0 - std::exp(-x * x / 8.0); }) < ks_limit);
    CHECK(distance([](Random &r) { return weibull(r, 2.0, 1.7); },
                   [](double x) { return 1.0 - std::exp(-std::pow(x / 2.0, 1.7)); }) < ks_limit);
    CHECK(distance([](Random &r) { return triangular(r, 1.0, 2.0, 5.0); },
                   [](double x) {
                       return x < 2.0 ? (x - 1.0) * (x - 1.0) / 4.0 : 1.0 - (5.0 - x) * (5.0 - x) / 12.0;
                   }) < ks_limit);
    for (const double shape : {0.4, 1.0, 3.7}) // gamma's distribution function is chi-square's, scaled
        CHECK(distance([=](Random &r) { return gamma(r, shape, 2.0); },
                       [=](double x) { return chi_square_probability(x, 2.0 * shape); }) < ks_limit);
    for (const std::uint32_t k : {1u, 3u, 40u})
        CHECK(distance([=](Random &r) { return erlang(r, 0.5, k); },
                       [=](double x) { return chi_square_probability(4.0 * x, 2.0 * k); }) < ks_limit);
    CHECK(distance([](Random &r) { return beta(r, 2.0, 1.0); }, [](double x) { return x * x; }) < ks_limit);
    CHECK(distance([](Random &r) { return beta(r, 1.0, 3.0, 10.0, 12.0); },
                   [](double x) { return 1.0 - std::pow(1.0 - (x - 10.0) / 2.0, 3.0); }) < ks_limit);
    CHECK(distance([](Random &r) { return beta(r, 0.5, 0.5); },
                   [](double x) { return 2.0 / std::numbers::pi * std::asin(std::sqrt(x)); }) < ks_limit);
    CHECK(distance([](Random &r) { return beta(r, 2.0, 0.5); },
                   [](double x) { return 1.0 - std::sqrt(1.0 - x) * (2.0 + x) / 2.0; }) < ks_limit);
}

TEST("beta with small shapes lies at its ends") {
    Random random(3);
    int low = 0;
    int within = 0;
    for (int i = 0; i < draws; ++i) {
        const double x = beta(random, 1e-3, 1e-3);
        low += x <= 0.01 ? 1 : 0;
        within += x > 0.01 && x < 0.99 ? 1 : 0;
    }
    // (1e-3 / 2) * log(99) * 2 lie within: the density there is 1e-3 / 2 / (x * (1 - x)), nearly.
    CHECK(std::fabs(within - 0.0046 * draws) < 4.0 * std::sqrt(0.0046 * draws));
    CHECK(std::fabs(low - 0.4977 * draws) < 4.0 * std::sqrt(0.25 * draws));
}

TEST("beta with the smallest shapes is one of its ends, by their ratio") {
    Random random(3);
    for (const double a : {1e-308, 5e-324}) {
        int high = 0;
        int other = 0;
        for (int i = 0; i < draws; ++i) {
            const double x = beta(random, a, 3.0 * a); // mean a / (a + 3 a)
            high += x == 1.0 ? 1 : 0;
            other += x != 0.0 && x != 1.0 ? 1 : 0;
        }
        CHECK_EQUAL(other, 0);
        CHECK(std::fabs(high - 0.25 * draws) < 4.0 * std::sqrt(0.1875 * draws));
    }
}

TEST("beta with the largest shapes is their share") {
    Random random(3);
    for (const double a : {1e300, 1e308, 1.7e308})
        for (const double b : {a, 0.5 * a, 1e-3 * a})
            for (int i = 0; i < 100; ++i)
                CHECK(std::fabs(beta(random, a, b) / (1.0 / (1.0 + b / a)) - 1.0) < 1e-14);
}

TEST("a triangular distribution is as wide or as narrow as doubles allow") {
    for (const double unit : {1e-320, 1e-170, 1e-150, 1e160, 5e307})
        CHECK(distance([=](Random &r) { return triangular(r, 0.0, unit, 3.0 * unit); },
                       [=](double x) {
                           const double y = x / unit;
                           CHECK(y >= 0.0 && y <= 3.0);
                           return y < 1.0 ? y * y / 3.0 : 1.0 - (3.0 - y) * (3.0 - y) / 6.0;
                       }) < ks_limit);
}

TEST("discrete distributions have the probabilities of the textbook") {
    for (const double mean : {0.5, 8.0, 30.0, 150.0})
        CHECK(fit([=](Random &r) { return poisson(r, mean); },
                  [=](double k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)); }) >
              chi_limit);
    CHECK(fit([](Random &r) { return geometric(r, 0.3); }, [](double k) { return 0.3 * std::pow(0.7, k); }) >
          chi_limit);
    CHECK(fit([](Random &r) { return negative_binomial(r, 0.4, 3); },
              [](double k) {
                  return std::exp(std::lgamma(k + 3.0) - std::lgamma(k + 1.0) - std::lgamma(3.0)) * 0.064 *
                         std::pow(0.6, k);
              }) > chi_limit);
    CHECK(fit([](Random &r) { return logarithmic(r, 0.8); },
              [](double k) { return k < 1.0 ? 0.0 : -std::pow(0.8, k) / (k * std::log(0.2)); }) > chi_limit);
    const auto choose = [](double n, double k) {
        return k < 0.0 || k > n
                   ? 0.0
                   : std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0));
    };
    CHECK(fit([](Random &r) { return hypergeometric(r, 50, 20, 10); },
              [=](double k) { return choose(20, k) * choose(30, 10 - k) / choose(50, 10); }) > chi_limit);
    CHECK(fit([](Random &r) { return bernoulli(r, 0.25) ? 1 : 0; },
              [](double k) { return k == 0.0   ? 0.75
                                    : k == 1.0 ? 0.25
                                               : 0.0; }) > chi_limit);
}

TEST("poisson is nearly normal at large means, up to the largest") {
    for (const double mean : {0x1p20, 1e9, 1e13, 1e15, 4e15}) {
        const double deviation = std::sqrt(mean);
        Stat stat;
        CHECK(distance(
                  [&](Random &r) {
                      const double x = (static_cast<double>(poisson(r, mean)) - mean) / deviation;
                      stat(x);
                      return x;
                  },
                  [&](double x) { // to the middle of the step, with the skewness's correction (Edgeworth)
                      const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
                      return normal_probability(x) + density * (0.5 - (x * x - 1.0) / 6.0) / deviation;
                  }) < ks_limit);
        CHECK(std::fabs(stat.mean()) < 4.0 / std::sqrt(static_cast<double>(draws)));
        CHECK(std::fabs(stat.variance() - 1.0) < 4.0 * std::sqrt(2.0 / draws));
    }
    Random random(1);
    CHECK_THROWS(poisson(random, 0x1p52), BadParameter);
}

TEST("logarithmic has the right mean up to the largest probability") {
    for (const double rest : {0x1p-20, 0x1p-27, 0x1p-40, 0x1p-53}) {
        const double p = 1.0 - rest;
        const double log_rest = std::log(rest);
        const double mean = -p / (rest * log_rest);
        const double variance = -p * (p + log_rest) / (rest * log_rest * (rest * log_rest));
        const int many = 20 * draws;
        Random random(37);
        Stat stat;
        for (int i = 0; i < many; ++i)
            stat(static_cast<double>(logarithmic(random, p)));
        CHECK(std::fabs(stat.mean() - mean) < 4.0 * std::sqrt(variance / many));
        CHECK(stat.greatest() < 0x1p59);
    }
}

TEST("counts are right up to the largest mean, and refused beyond it") {
    for (const std::uint32_t successes : {1u, 2u, 1000u}) {
        const int many = successes < 1000 ? draws : draws / 100;
        const double mean = 4e15;
        const double p = 1.0 / (1.0 + mean / successes);
        Random random(31);
        Stat stat;
        for (int i = 0; i < many; ++i)
            stat(static_cast<double>(negative_binomial(random, p, successes)));
        CHECK(std::fabs(stat.mean() / mean - 1.0) <
              4.0 / std::sqrt(static_cast<double>(many) * static_cast<double>(successes)));
        CHECK(stat.greatest() < 0x1p63);
    }
    Random random(1);
    CHECK(geometric(random, 0x1p-52) < std::uint64_t{1} << 58);
    CHECK_EQUAL(negative_binomial(random, 1e-300, 0), 0u);
    for (const double p : {0x1p-53, 1e-18, 1e-300, 5e-324}) {
        CHECK_THROWS(geometric(random, p), BadParameter);
        for (const std::uint32_t successes : {1u, 2u, 3u, 4u})
            CHECK_THROWS(negative_binomial(random, p, successes), BadParameter);
    }
    CHECK_THROWS(negative_binomial(random, 0x1p-52, 2), BadParameter);
    CHECK_THROWS(negative_binomial(random, 1e-7, 4000000000u), BadParameter);
    try {
        negative_binomial(random, 0x1p-53, 2);
    } catch (const BadParameter &error) {
        CHECK_EQUAL(std::string(error.what()), "negative_binomial: a mean, successes (1 - p) / p, below 2^52 "
                                               "is needed, not 18014398509481982");
    }
}

TEST("every distribution has the same bits in every ABI") {
    const auto hash = [](auto draw) {
        Random random(29);
        check::Hash sum;
        for (int i = 0; i < 5000; ++i)
            sum(static_cast<double>(draw(random)));
        return sum.value();
    };
    CHECK_GOLDEN("distribution.uniform", hash([](Random &r) { return uniform(r, -1.0, 2.0); }));
    CHECK_GOLDEN("distribution.exponential", hash([](Random &r) { return exponential(r, 2.0); }));
    CHECK_GOLDEN("distribution.normal", hash([](Random &r) { return normal(r, 0.0, 1.0); }));
    CHECK_GOLDEN("distribution.erlang", hash([](Random &r) { return erlang(r, 1.0, 20); }));
    CHECK_GOLDEN("distribution.gamma", hash([](Random &r) { return gamma(r, 0.7, 1.0); }));
    CHECK_GOLDEN("distribution.beta", hash([](Random &r) { return beta(r, 2.0, 3.0); }));
    CHECK_GOLDEN("distribution.poisson",
                 hash([](Random &r) { return static_cast<double>(poisson(r, 40.0)); }));
    CHECK_GOLDEN("distribution.geometric",
                 hash([](Random &r) { return static_cast<double>(geometric(r, 0.2)); }));
    CHECK_GOLDEN("distribution.hypergeometric",
                 hash([](Random &r) { return hypergeometric(r, 50, 20, 10); }));
    CHECK_GOLDEN("distribution.negative_binomial",
                 hash([](Random &r) { return static_cast<double>(negative_binomial(r, 0.3, 4)); }));
    CHECK_GOLDEN("distribution.logarithmic",
                 hash([](Random &r) { return static_cast<double>(logarithmic(r, 0.9)); }));
    CHECK_GOLDEN("distribution.rayleigh", hash([](Random &r) { return rayleigh(r, 1.0); }));
    CHECK_GOLDEN("distribution.triangular", hash([](Random &r) { return triangular(r, 0.0, 1.0, 3.0); }));
    CHECK_GOLDEN("distribution.weibull", hash([](Random &r) { return weibull(r, 1.0, 2.5); }));
}

TEST("parameters that a distribution does not have are refused by name") {
    Random random(1);
    CHECK_THROWS(exponential(random, -1.0), BadParameter);
    CHECK_THROWS(exponential(random, NAN), BadParameter);
    CHECK_THROWS(normal(random, 0.0, -1.0), BadParameter);
    CHECK_THROWS(gamma(random, 0.0, 1.0), BadParameter);
    CHECK_THROWS(poisson(random, -1.0), BadParameter);
    CHECK_THROWS(geometric(random, 0.0), BadParameter);
    CHECK_THROWS(hypergeometric(random, 5, 6, 1), BadParameter);
    CHECK_THROWS(logarithmic(random, 1.0), BadParameter);
    CHECK_THROWS(triangular(random, 2.0, 1.0, 3.0), BadParameter);
    CHECK_THROWS(erlang(random, 1.0, 0), BadParameter);
    for (const double bad : std::initializer_list<double>{INFINITY, -INFINITY, NAN}) {
        CHECK_THROWS(uniform(random, 0.0, bad), BadParameter);
        CHECK_THROWS(uniform(random, bad, 0.0), BadParameter);
        CHECK_THROWS(exponential(random, bad), BadParameter);
        CHECK_THROWS(normal(random, bad, 1.0), BadParameter);
        CHECK_THROWS(normal(random, 0.0, bad), BadParameter);
        CHECK_THROWS(erlang(random, bad, 2), BadParameter);
        CHECK_THROWS(gamma(random, bad, 1.0), BadParameter);
        CHECK_THROWS(gamma(random, 1.0, bad), BadParameter);
        CHECK_THROWS(beta(random, bad, 2.0), BadParameter);
        CHECK_THROWS(beta(random, 2.0, bad), BadParameter);
        CHECK_THROWS(beta(random, 2.0, 2.0, -INFINITY, bad), BadParameter);
        CHECK_THROWS(beta(random, 2.0, 2.0, 0.0, bad), BadParameter);
        CHECK_THROWS(poisson(random, bad), BadParameter);
        CHECK_THROWS(geometric(random, bad), BadParameter);
        CHECK_THROWS(negative_binomial(random, bad, 2), BadParameter);
        CHECK_THROWS(logarithmic(random, bad), BadParameter);
        CHECK_THROWS(rayleigh(random, bad), BadParameter);
        CHECK_THROWS(triangular(random, -INFINITY, 0.0, bad), BadParameter);
        CHECK_THROWS(triangular(random, 0.0, 0.0, bad), BadParameter);
        CHECK_THROWS(weibull(random, bad, 1.0), BadParameter);
        CHECK_THROWS(weibull(random, 1.0, bad), BadParameter);
        CHECK_THROWS(bernoulli(random, bad), BadParameter);
    }
    CHECK_THROWS(triangular(random, -1.7e308, 0.0, 1.7e308), BadParameter);
    try {
        exponential(random, -2.5);
    } catch (const BadParameter &error) {
        CHECK_EQUAL(std::string(error.what()),
                    "exponential: a finite mean of at least 0 is needed, not -2.5");
    }
}
