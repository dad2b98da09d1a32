#include "widthwise/sim/statistics.hpp"

#include "statistics/log_rest.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/math.hpp"

#include <cstdio>
#include <limits>

namespace widthwise::sim {
namespace {

/// Regularised incomplete beta function by its continued fraction (Lentz; Abramowitz and Stegun 26.5.8).
double incomplete_beta(double a, double b, double x) {
    if (x <= 0.0)
        return 0.0;
    if (x >= 1.0)
        return 1.0;
    if (x > (a + 1.0) / (a + b + 2.0))
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    const double front = math::exp(math::lgamma(a + b) - math::lgamma(a) - math::lgamma(b) +
                                   a * math::log(x) + b * math::log1p(-x)) /
                         a;
    constexpr double tiny = 1e-300;
    double c = 1.0;
    double d = 1.0 - (a + b) * x / (a + 1.0);
    if (d < tiny && d > -tiny)
        d = tiny;
    d = 1.0 / d;
    double fraction = d;
    for (int m = 1; m < 500; ++m) {
        const double k = static_cast<double>(m);
        for (const double term : {k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k)),
                                  -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0))}) {
            d = 1.0 + term * d;
            if (d < tiny && d > -tiny)
                d = tiny;
            c = 1.0 + term / c;
            if (c < tiny && c > -tiny)
                c = tiny;
            d = 1.0 / d;
            fraction *= c * d;
        }
        const double change = c * d - 1.0;
        if (change < 1e-16 && change > -1e-16)
            break;
    }
    return front * fraction;
}

std::string line(const char *format, const std::string &name, auto... values) {
    char text[256];
    std::snprintf(text, sizeof text, format, values...);
    return name + text;
}

} // namespace

void Stat::merge(const Stat &other) noexcept {
    if (other.count_ == 0)
        return;
    if (count_ == 0) {
        *this = other;
        return;
    }
    const double mine = static_cast<double>(count_);
    const double theirs = static_cast<double>(other.count_);
    const double delta = other.mean_ - mean_;
    const double total = mine + theirs;
    mean_ += delta * (theirs / total);
    squares_ += other.squares_ + delta * delta * (mine * theirs / total);
    count_ += other.count_;
    if (!(other.least_ >= least_) && other.least_ == other.least_)
        least_ = other.least_;
    if (!(other.greatest_ <= greatest_) && other.greatest_ == other.greatest_)
        greatest_ = other.greatest_;
}

double Stat::variance() const noexcept {
    return count_ < 2 || squares_ < 0.0 ? 0.0 : squares_ / static_cast<double>(count_ - 1);
}

double Stat::deviation() const noexcept { return math::sqrt(variance()); }

std::string Stat::report(const std::string &name) const {
    return line("  count %lld  mean %.6g  deviation %.6g  least %.6g  greatest %.6g\n", name,
                static_cast<long long>(count_), mean_, deviation(), least_, greatest_);
}

double TStat::mean(double now) const noexcept {
    TStat copy = *this;
    copy.advance(now);
    return now > start_ ? copy.mean_ : level_;
}

double TStat::variance(double now) const noexcept {
    TStat copy = *this;
    copy.advance(now);
    return now > start_ && copy.squares_ > 0.0 ? copy.squares_ / (now - start_) : 0.0;
}

double TStat::deviation(double now) const noexcept { return math::sqrt(variance(now)); }

std::string TStat::report(const std::string &name, double now) const {
    return line("  mean %.6g  deviation %.6g  least %.6g  greatest %.6g  now %.6g\n", name, mean(now),
                deviation(now), least_, greatest_, level_);
}

Histogram::Histogram(double low, double width, std::size_t classes)
    : low_(low), width_(width), counts_(classes) {
    if (!(low - low == 0.0))
        distribution_detail::refuse("Histogram: a finite beginning is needed, not", low);
    if (!(width > 0.0 && width - width == 0.0))
        distribution_detail::refuse("Histogram: a class width above 0 is needed, not", width);
    if (classes == 0)
        distribution_detail::refuse("Histogram: at least 1 class is needed, not", 0.0);
}

void Histogram::operator()(double sample) noexcept {
    stat_(sample);
    const double place = (sample - low_) / width_;
    if (place < 0.0)
        ++beneath_;
    else if (place < static_cast<double>(counts_.size()))
        ++counts_[static_cast<std::size_t>(place)];
    else
        ++above_;
}

double Histogram::quantile(double q) const {
    if (!(q >= 0.0 && q <= 1.0))
        distribution_detail::refuse("Histogram::quantile: q in [0, 1] is needed, not", q);
    const double count = static_cast<double>(stat_.count());
    double seen = static_cast<double>(beneath_);
    // Shares are compared, not counts: 55 / 100 is 0.55, while 0.55 * 100 is rounded to more than 55.
    if (beneath_ > 0 && q <= seen / count)
        return q == seen / count ? low_ : std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const double here = static_cast<double>(counts_[i]);
        if (here > 0.0 && q <= (seen + here) / count) {
            const double share = (q * count - seen) / here;
            return low_ + width_ * (static_cast<double>(i) + (share < 1.0 ? share : 1.0));
        }
        seen += here;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

void Histogram::clear() noexcept {
    counts_.assign(counts_.size(), 0);
    beneath_ = above_ = 0;
    stat_.clear();
}

std::string Histogram::report(const std::string &name) const {
    std::string text = stat_.report(name);
    std::uint64_t most = 1;
    for (const auto count : counts_)
        most = count > most ? count : most;
    if (beneath_ > 0)
        text += line("  beneath %.6g: %llu\n", "", low_, static_cast<unsigned long long>(beneath_));
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const double from = low_ + width_ * static_cast<double>(i);
        text += line("  %12.6g ... %-12.6g %10llu ", "", from, from + width_,
                     static_cast<unsigned long long>(counts_[i]));
        text += std::string(static_cast<std::size_t>(counts_[i] * 40 / most), '#') + '\n';
    }
    if (above_ > 0)
        text += line("  above: %llu\n", "", static_cast<unsigned long long>(above_));
    return text;
}

namespace {

constexpr double pi = 3.141592653589793;

/// Regularised incomplete gamma function: its lower part, or its upper part.
double incomplete_gamma(double a, double z, bool upper) {
    const double front = math::exp(a * math::log(z) - z - math::lgamma(a));
    if (z < a + 1.0) { // series, Abramowitz and Stegun 6.5.29
        double term = 1.0 / a;
        double sum = term;
        for (double k = a + 1.0; term > sum * 1e-17; k += 1.0) {
            term *= z / k;
            sum += term;
        }
        return upper ? 1.0 - front * sum : front * sum;
    }
    double b = z + 1.0 - a; // continued fraction, 6.5.31
    double c = 1e300;
    double d = 1.0 / b;
    double fraction = d;
    for (int i = 1; i < 1000; ++i) {
        const double k = static_cast<double>(i);
        const double term = -k * (k - a);
        b += 2.0;
        d = 1.0 / (term * d + b);
        c = b + term / c;
        fraction *= d * c;
        const double change = d * c - 1.0;
        if (change < 1e-16 && change > -1e-16)
            break;
    }
    return upper ? front * fraction : 1.0 - front * fraction;
}

/// Probability that a standard normal variate is above `y`.
double normal_tail(double y) {
    if (y < 0.0)
        return 1.0 - normal_tail(-y);
    const double z = 0.5 * y * y;
    if (z > 800.0)
        return 0.0; // below the smallest double
    return z > 0.0 ? 0.5 * incomplete_gamma(0.5, z, true) : 0.5;
}

/// From here on fractions and differences of lgamma lose more than the asymptotic formulas.
constexpr double many_degrees = 0x1p20;

/// Lower part of the incomplete gamma function for large `a`: Temme's uniform expansion (NIST DLMF 8.12) with
/// two terms. The second is left out where it would be below 2e-3 / a of a probability below 1e-11.
double incomplete_gamma_of_large(double a, double z) {
    const double d = (z - a) / a;
    const double root = math::sqrt(2.0 * log_rest(d));
    const double eta = d < 0.0 ? -root : root;
    double terms;
    if (root < 0.01)
        terms = -1.0 / 3.0 + eta * (1.0 / 12.0 + eta * (-2.0 / 135.0 + eta / 864.0)) +
                (-1.0 / 540.0 - eta / 288.0) / a;
    else
        terms = 1.0 / d - 1.0 / eta;
    const double rest = math::exp(-a * (0.5 * eta * eta)) / math::sqrt(2.0 * pi * a) * terms;
    return normal_tail(-eta * math::sqrt(a)) - rest;
}

/// Probability that Student's t is above `t` >= 0.
double student_tail(double t, double freedom) {
    if (freedom >= many_degrees) {
        // Wallace, Annals of Mathematical Statistics 30, 1959. Against the normal variate with the same tail
        // its error is (6 t - 2 t^3) / (96 freedom^2) to first order: a probability wrong by less than 1e-13.
        if (freedom >= 0x1p60)
            return normal_tail(t);
        return normal_tail((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) *
                           math::sqrt(freedom * math::log1p(t / freedom * t)));
    }
    if (t > 1e140) { // t * t may overflow; the fraction is 1
        const double a = 0.5 * freedom;
        return 0.5 / a *
               math::exp(math::lgamma(a + 0.5) - math::lgamma(a) - math::lgamma(0.5) +
                         a * (math::log(freedom) - 2.0 * math::log(t)));
    }
    return 0.5 * incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
}

} // namespace

double student_probability(double t, double freedom) {
    if (!(freedom > 0.0))
        distribution_detail::refuse("student_probability: freedom above 0 is needed, not", freedom);
    return t > 0.0 ? 1.0 - student_tail(t, freedom) : student_tail(-t, freedom);
}

double student_quantile(double p, double freedom) {
    if (!(p > 0.0 && p < 1.0))
        distribution_detail::refuse("student_quantile: p in (0, 1) is needed, not", p);
    if (!(freedom > 0.0))
        distribution_detail::refuse("student_quantile: freedom above 0 is needed, not", freedom);
    const bool small = p < 1e-3; // 1 - p would lose its digits
    if (p < 0.5 && !small)
        return -student_quantile(1.0 - p, freedom);
    const auto below = [=](double t) {
        return small ? student_tail(t, freedom) > p : student_probability(t, freedom) < p;
    };
    double low = 0.0;
    double high = 1.0;
    while (below(high) && high < 1e300)
        high *= 2.0;
    for (int i = 0; i < 200 && low < high; ++i) {
        const double middle = low + (high - low) * 0.5;
        if (middle == low || middle == high)
            break;
        (below(middle) ? low : high) = middle;
    }
    const double t = low + (high - low) * 0.5;
    return small ? -t : t;
}

double chi_square_probability(double x, double freedom) {
    if (!(freedom > 0.0 && freedom <= std::numeric_limits<double>::max()))
        distribution_detail::refuse("chi_square_probability: a finite freedom above 0 is needed, not",
                                    freedom);
    if (!(x > 0.0))
        return 0.0;
    if (x > std::numeric_limits<double>::max())
        return 1.0;
    return freedom < many_degrees ? incomplete_gamma(0.5 * freedom, 0.5 * x, false)
                                  : incomplete_gamma_of_large(0.5 * freedom, 0.5 * x);
}

Interval t_interval(const Stat &samples, double confidence) {
    if (!(confidence > 0.0 && confidence < 1.0))
        distribution_detail::refuse("t_interval: a confidence in (0, 1) is needed, not", confidence);
    if (samples.count() < 2)
        return {samples.mean(), std::numeric_limits<double>::infinity(), confidence,
                "fewer than 2 samples: take more"};
    const double n = static_cast<double>(samples.count());
    const double t = student_quantile(0.5 + 0.5 * confidence, n - 1.0);
    return {samples.mean(), t * samples.deviation() / math::sqrt(n), confidence};
}

BatchMeans::BatchMeans(std::int64_t batch_size) : size_(batch_size) {
    if (batch_size < 1)
        distribution_detail::refuse("BatchMeans: batches of at least 1 sample are needed, not",
                                    static_cast<double>(batch_size));
}

double BatchMeans::repetition() const noexcept {
    const double samples = samples_.variance();
    return samples > 0.0 ? static_cast<double>(size_) * means_.variance() / samples : 1.0;
}

const char *BatchMeans::doubt() const noexcept {
    constexpr double fewest = 10.0;
    constexpr double shortest = 10.0; // of a batch, in repetitions
    const double batches = static_cast<double>(means_.count());
    if (batches < fewest)
        return "fewer than 10 batches: run longer, or make them shorter";
    // Of independent means it is normal, with variance 1 / batches: one in twenty is beyond this.
    if (correlation() * math::sqrt(batches) > 1.645)
        return "the batches' means are correlated: make the batches longer";
    if ((repetition() - 1.0) * shortest > static_cast<double>(size_))
        return "the batches are short beside the time for which the samples are correlated: make them longer";
    return nullptr;
}

Interval BatchMeans::interval(double confidence) const {
    Interval interval = t_interval(means_, confidence);
    interval.doubt = doubt();
    if (interval.doubt != nullptr)
        interval.half = std::numeric_limits<double>::infinity();
    return interval;
}

std::string BatchMeans::report(const std::string &name, double confidence) const {
    const Interval found = interval(confidence);
    const auto batches = static_cast<long long>(means_.count());
    if (found.doubt != nullptr)
        return line("  mean %.6g  batches %lld  no interval: %s\n", name, found.mean, batches, found.doubt);
    return line("  mean %.6g +- %.3g (%.4g %%)  batches %lld\n", name, found.mean, found.half,
                100.0 * confidence, batches);
}

double BatchMeans::correlation() const noexcept {
    const double n = static_cast<double>(means_.count());
    if (n < 3.0 || means_.variance() == 0.0)
        return 0.0;
    const double centre = means_.mean() - shift_;
    // Of n - 1 products of neighbours, about the mean: the first difference from the shift is 0.
    const double covariance = (products_ - centre * ((n + 1.0) * centre - previous_)) / (n - 1.0);
    return covariance / means_.variance();
}

} // namespace widthwise::sim
