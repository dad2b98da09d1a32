#include "widthwise/sim/distributions.hpp"

#include "statistics/log_rest.hpp"

#include <cstdio>
#include <limits>

namespace widthwise::sim {

namespace distribution_detail {
void refuse(const char *what, double value) {
    char text[32];
    std::snprintf(text, sizeof text, " %.17g", value);
    throw BadParameter(what + std::string(text));
}
} // namespace distribution_detail

using distribution_detail::refuse;

namespace {

/// Counts have means below this. The largest draws then fit 64 bits: a geometric one is at most 53 log(2) /
/// p, since no number drawn is less than 2^-53, and so a sum of them is below 2^7 times its mean where p is
/// at most 1 / 2; with a larger p each of them is at most 53.
constexpr double largest_mean = 0x1p52;

bool finite(double x) { return x - x == 0.0; }

void need_probability(const char *what, double p) {
    if (!(p > 0.0 && p <= 1.0))
        refuse(what, p);
}

/// Standard normal, by the polar method; its second variate is thrown away, because keeping it would be
/// state.
double standard_normal(Random &random) {
    for (;;) {
        const double u = 2.0 * random.uniform() - 1.0;
        const double v = 2.0 * random.uniform() - 1.0;
        const double s = u * u + v * v;
        if (s < 1.0 && s > 0.0)
            return u * math::sqrt(-2.0 * math::log(s) / s);
    }
}

/// Marsaglia and Tsang's squeeze, for shape >= 1.
double standard_gamma(Random &random, double shape) {
    const double d = shape - 1.0 / 3.0;
    const double c = 1.0 / math::sqrt(9.0 * d);
    for (;;) {
        const double x = standard_normal(random);
        const double root = 1.0 + c * x;
        if (root <= 0.0)
            continue;
        const double v = root * root * root;
        const double u = random.positive();
        const double x2 = x * x;
        if (u < 1.0 - 0.0331 * x2 * x2)
            return d * v;
        if (math::log(u) < 0.5 * x2 + d * (1.0 - v + math::log(v)))
            return d * v;
    }
}

/// Counts factors until their product falls below exp(-mean); for small means.
std::uint64_t poisson_by_product(Random &random, double mean) {
    const double limit = math::exp(-mean);
    double product = random.uniform();
    std::uint64_t count = 0;
    while (product > limit) {
        product *= random.uniform();
        ++count;
    }
    return count;
}

/// Logarithm of the probability of `k` at a large mean. The direct formula subtracts numbers of the size of
/// mean * log(mean) from each other, whose rounding alone reaches 1 at a mean of 1e14. This one does not
/// (Loader, Fast and Accurate Computation of Binomial Probabilities, 2000).
double log_poisson_of_large(double k, double mean) {
    constexpr double two_pi = 6.283185307179586;
    const double off = (mean - k) / k;
    if (!(off < 1.0 && off > -0.5)) // more than 300 deviations away
        return -std::numeric_limits<double>::infinity();
    return -0.5 * math::log(two_pi * k) - 1.0 / (12.0 * k) - k * log_rest(off);
}

/// Hoermann's transformed rejection with squeeze (PTRS), for means of 10 and more.
std::uint64_t poisson_by_rejection(Random &random, double mean) {
    constexpr double large_mean = 0x1p20;
    const double root = math::sqrt(mean);
    const double log_mean = math::log(mean);
    const double b = 0.931 + 2.53 * root;
    const double a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double v_r = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        const double u = random.uniform() - 0.5;
        const double v = random.positive();
        const double distance = 0.5 - (u < 0.0 ? -u : u);
        if (distance <= 0.0)
            continue;
        const double k = math::floor((2.0 * a / distance + b) * u + mean + 0.43);
        if (distance >= 0.07 && v <= v_r && k >= 0.0)
            return static_cast<std::uint64_t>(k);
        if (k < 0.0 || (distance < 0.013 && v > distance))
            continue;
        const double left = math::log(v * inverse_alpha / (a / (distance * distance) + b));
        const double log_probability =
            mean < large_mean ? k * log_mean - mean - math::lgamma(k + 1.0) : log_poisson_of_large(k, mean);
        if (left <= log_probability)
            return static_cast<std::uint64_t>(k);
    }
}

} // namespace

double uniform(Random &random, double low, double high) {
    if (!(low <= high) || !finite(high - low))
        refuse("uniform: high must not lie below low, nor infinitely far above; high - low is", high - low);
    const double x = low + (high - low) * random.uniform();
    return x < high ? x : low; // rounding may reach `high`, which is outside
}

double normal(Random &random, double mean, double deviation) {
    if (!finite(mean))
        refuse("normal: a finite mean is needed, not", mean);
    if (!(deviation >= 0.0) || !finite(deviation))
        refuse("normal: a finite deviation of at least 0 is needed, not", deviation);
    return mean + deviation * standard_normal(random);
}

double erlang(Random &random, double mean, std::uint32_t k) {
    if (!(mean >= 0.0) || !finite(mean))
        refuse("erlang: a finite mean of at least 0 is needed, not", mean);
    if (k == 0)
        refuse("erlang: at least 1 phase is needed, not", 0.0);
    double sum = 0.0;
    while (k >
           0) { // logarithms of products: 16 factors of at least 2^-53 stay above the smallest normal number
        double product = 1.0;
        for (std::uint32_t i = k < 16 ? k : 16; i > 0; --i, --k)
            product *= random.positive();
        sum += math::log(product);
    }
    return -mean * sum;
}

namespace {

void need_shape(const char *of, double shape) {
    if (!(shape > 0.0) || !finite(shape))
        refuse((std::string(of) + ": a finite shape above 0 is needed, not").c_str(), shape);
}

/// The logarithm of a gamma variate of scale 1, which itself may be too small for a double: `larger` and, for
/// shapes below 1, a logarithm to be divided by the shape.
struct LogGamma {
    double larger;
    double divided;
    double shape;
    [[nodiscard]] double value() const { return larger + divided / shape; }
};

LogGamma log_gamma_variate(Random &random, double shape) {
    if (shape >= 1.0)
        return {math::log(standard_gamma(random, shape)), 0.0, 1.0};
    const double larger = math::log(standard_gamma(random, shape + 1.0));
    return {larger, math::log(random.positive()), shape};
}

/// x / (x + y), of the logarithms of x and y.
double share_of(const LogGamma &x, const LogGamma &y) {
    const double log_x = x.value();
    const double log_y = y.value();
    if (finite(log_x) || finite(log_y))
        return 1.0 / (1.0 + math::exp(log_y - log_x));
    // Shapes so small that both quotients are infinite: these alone decide, by their shapes' ratio.
    return x.divided > y.divided * (x.shape / y.shape) ? 1.0 : 0.0;
}

} // namespace

double gamma(Random &random, double shape, double scale) {
    need_shape("gamma", shape);
    if (!(scale > 0.0) || !finite(scale))
        refuse("gamma: a finite scale above 0 is needed, not", scale);
    if (shape >= 1.0)
        return scale * standard_gamma(random, shape);
    const double larger = standard_gamma(random, shape + 1.0);
    return scale * larger * math::pow(random.positive(), 1.0 / shape);
}

double beta(Random &random, double a, double b, double low, double high) {
    if (!(low <= high) || !finite(high - low))
        refuse("beta: high must not lie below low, nor infinitely far above; high - low is", high - low);
    need_shape("beta", a);
    need_shape("beta", b);
    double share;
    if (a < 1.0 || b < 1.0) {
        const LogGamma x = log_gamma_variate(random, a);
        share = share_of(x, log_gamma_variate(random, b));
    } else {
        const double x = standard_gamma(random, a);
        const double y = standard_gamma(random, b);
        const double sum = x + y;
        share = finite(sum) ? x / sum : 0.5 * x / (0.5 * x + 0.5 * y);
    }
    return low + (high - low) * share;
}

std::uint64_t poisson(Random &random, double mean) {
    if (!(mean >= 0.0 && mean < largest_mean))
        refuse("poisson: a mean in [0, 2^52) is needed, not", mean);
    return mean < 10.0 ? poisson_by_product(random, mean) : poisson_by_rejection(random, mean);
}

namespace {

std::uint64_t draw_geometric(Random &random, double p) {
    if (p == 1.0)
        return 0;
    return static_cast<std::uint64_t>(math::floor(math::log(random.positive()) / math::log1p(-p)));
}

} // namespace

std::uint64_t geometric(Random &random, double p) {
    need_probability("geometric: a probability in (0, 1] is needed, not", p);
    if (!((1.0 - p) / p < largest_mean))
        refuse("geometric: a probability with a mean, (1 - p) / p, below 2^52 is needed, not", p);
    return draw_geometric(random, p);
}

std::uint32_t hypergeometric(Random &random, std::uint32_t population, std::uint32_t marked,
                             std::uint32_t draws) {
    if (marked > population)
        refuse("hypergeometric: more marked than there are:", marked);
    if (draws > population)
        refuse("hypergeometric: more draws than there are:", draws);
    std::uint32_t found = 0;
    for (; draws > 0 && marked > 0; --draws, --population)
        if (random.below(population) < marked) {
            ++found;
            --marked;
        }
    return found;
}

std::uint64_t negative_binomial(Random &random, double p, std::uint32_t successes) {
    need_probability("negative_binomial: a probability in (0, 1] is needed, not", p);
    const double mean = successes * (1.0 - p) / p;
    if (!(mean < largest_mean))
        refuse("negative_binomial: a mean, successes (1 - p) / p, below 2^52 is needed, not", mean);
    std::uint64_t failures = 0;
    for (; successes > 0; --successes)
        failures += draw_geometric(random, p);
    return failures;
}

std::uint64_t logarithmic(Random &random, double p) {
    if (!(p > 0.0 && p < 1.0))
        refuse("logarithmic: a probability in (0, 1) is needed, not", p);
    const double v = random.positive();
    if (v >= p)
        return 1;
    const double log_rest_of_q = math::log1p(-p) * random.uniform();
    const double q = -math::expm1(log_rest_of_q);
    if (q <= 0.0)
        return 1;
    if (v <= q * q) {
        // Near 1 q has lost the digits of 1 - q, which is at least 2^-53: the logarithm is that of the rest.
        const double rest = math::exp(log_rest_of_q);
        const double log_q = rest < 0x1p-26 ? math::log1p(-rest) : math::log(q);
        return static_cast<std::uint64_t>(math::floor(1.0 + math::log(v) / log_q));
    }
    return v <= q ? 2 : 1;
}

double rayleigh(Random &random, double sigma) {
    if (!(sigma >= 0.0) || !finite(sigma))
        refuse("rayleigh: a finite sigma of at least 0 is needed, not", sigma);
    return sigma * math::sqrt(-2.0 * math::log(random.positive()));
}

namespace {

/// sqrt(share * width * side), where the product may be too large or too small for a double.
double root_of_product(double share, double width, double side) {
    const double product = share * width * side;
    if (product >= std::numeric_limits<double>::min() && finite(product))
        return math::sqrt(product);
    return width * math::sqrt(share * (side / width));
}

} // namespace

double triangular(Random &random, double low, double mode, double high) {
    if (!(low <= mode))
        refuse("triangular: the mode must not lie below low; mode - low is", mode - low);
    if (!(mode <= high))
        refuse("triangular: high must not lie below the mode; high - mode is", high - mode);
    const double width = high - low;
    if (!finite(width))
        refuse("triangular: high - low must be finite, not", width);
    if (width == 0.0)
        return low;
    const double u = random.uniform();
    const double left = (mode - low) / width;
    // Rounding may reach beyond the ends.
    if (u < left) {
        const double x = low + root_of_product(u, width, mode - low);
        return x < high ? x : high;
    }
    const double x = high - root_of_product(1.0 - u, width, high - mode);
    return x > low ? x : low;
}

double weibull(Random &random, double scale, double shape) {
    if (!(scale > 0.0) || !finite(scale))
        refuse("weibull: a finite scale above 0 is needed, not", scale);
    need_shape("weibull", shape);
    return scale * math::pow(-math::log(random.positive()), 1.0 / shape);
}

bool bernoulli(Random &random, double p) {
    if (!(p >= 0.0 && p <= 1.0))
        refuse("bernoulli: a probability in [0, 1] is needed, not", p);
    return random.uniform() < p;
}

} // namespace widthwise::sim
