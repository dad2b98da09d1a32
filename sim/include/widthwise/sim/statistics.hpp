// What a model remembers: tallies of samples, of levels over time, histograms; and what may be concluded from
// them.
//
// Why recurrences: sums of squares cancel (a textbook's StdDev of times near 1e9 is noise), so means and
// deviations are kept by Welford's update, for levels in its weighted form, and combined by Chan's formula.
// Invariants: a tally of nothing has count 0, mean 0 and NaN as its extremes and quantiles; deviations are
// never negative.
// References: Welford, Technometrics 4(3), 1962; West, CACM 22(9), 1979; Chan, Golub, LeVeque, Am. Stat.
// 37(3), 1983; Law, Simulation Modeling and Analysis, ch. 9 (batch means, replications).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace widthwise::sim {

/// Samples: count, mean, deviation, extremes. After a sample that is NaN the mean and the deviation are NaN;
/// the extremes are those of the other samples.
class Stat {
  public:
    void operator()(double sample) noexcept {
        ++count_;
        const double delta = sample - mean_;
        mean_ += delta / static_cast<double>(count_);
        squares_ += delta * (sample - mean_);
        if (!(sample >= least_) && sample == sample)
            least_ = sample;
        if (!(sample <= greatest_) && sample == sample)
            greatest_ = sample;
    }

    /// As if the other's samples had been given here too.
    void merge(const Stat &other) noexcept;
    void clear() noexcept { *this = Stat(); }

    [[nodiscard]] std::int64_t count() const noexcept { return count_; }
    [[nodiscard]] double mean() const noexcept { return mean_; }
    [[nodiscard]] double sum() const noexcept { return mean_ * static_cast<double>(count_); }
    [[nodiscard]] double least() const noexcept { return least_; }
    [[nodiscard]] double greatest() const noexcept { return greatest_; }
    /// Of the population the samples come from (divided by count - 1); 0 for fewer than two.
    [[nodiscard]] double variance() const noexcept;
    [[nodiscard]] double deviation() const noexcept;
    [[nodiscard]] std::string report(const std::string &name) const;

  private:
    std::int64_t count_ = 0; // signed: i386 and x32 convert it to double in one instruction
    double mean_ = 0.0;
    double squares_ = 0.0;
    double least_ = __builtin_nan("");
    double greatest_ = __builtin_nan("");
};

/// A level over model time: its mean is weighted with how long each value lasted.
class TStat {
  public:
    explicit TStat(double start = 0.0, double level = 0.0) noexcept
        : start_(start), last_(start), level_(level), least_(level), greatest_(level) {}

    /// From `now` on the level is `level`. Time must not run backwards.
    void set(double now, double level) noexcept {
        advance(now);
        level_ = level;
        if (level < least_)
            least_ = level;
        if (level > greatest_)
            greatest_ = level;
    }
    void add(double now, double change) noexcept { set(now, level_ + change); }

    /// Forgets what was, keeps the level: the end of a warm-up.
    void clear(double now) noexcept { *this = TStat(now, level_); }

    [[nodiscard]] double level() const noexcept { return level_; }
    [[nodiscard]] double start() const noexcept { return start_; }
    [[nodiscard]] double least() const noexcept { return least_; }
    [[nodiscard]] double greatest() const noexcept { return greatest_; }
    /// Over [start, now].
    [[nodiscard]] double mean(double now) const noexcept;
    [[nodiscard]] double variance(double now) const noexcept;
    [[nodiscard]] double deviation(double now) const noexcept;
    /// Integral of the level over [start, now].
    [[nodiscard]] double integral(double now) const noexcept { return mean(now) * (now - start_); }
    [[nodiscard]] std::string report(const std::string &name, double now) const;

  private:
    void advance(double now) noexcept {
        const double weight = now - last_;
        if (weight <= 0.0)
            return;
        last_ = now;
        const double delta = level_ - mean_;
        if (delta == 0.0)
            return;
        const double step = weight / (now - start_) * delta;
        squares_ += (now - start_ - weight) * delta * step;
        mean_ += step;
    }

    double start_;
    double last_;
    double level_;
    double mean_ = 0.0;
    double squares_ = 0.0;
    double least_;
    double greatest_;
};

/// Counts of samples in equal classes from `low`, and of those beneath and above.
class Histogram {
  public:
    /// Throws BadParameter unless both are finite, width is above 0 and there is at least one class.
    Histogram(double low, double width, std::size_t classes);

    /// A sample that is NaN belongs to no class and counts as above; the mean is NaN from then on.
    void operator()(double sample) noexcept;

    [[nodiscard]] const Stat &stat() const noexcept { return stat_; }
    [[nodiscard]] std::span<const std::uint64_t> counts() const noexcept { return counts_; }
    [[nodiscard]] std::uint64_t beneath() const noexcept { return beneath_; }
    [[nodiscard]] std::uint64_t above() const noexcept { return above_; }
    [[nodiscard]] double low() const noexcept { return low_; }
    [[nodiscard]] double width() const noexcept { return width_; }
    /// The value below which a share `q` of the samples lies, interpolated within its class. NaN where the
    /// classes do not tell: among the samples beneath or above them, and of no samples. Throws BadParameter
    /// unless q is in [0, 1].
    [[nodiscard]] double quantile(double q) const;
    void clear() noexcept;
    [[nodiscard]] std::string report(const std::string &name) const;

  private:
    double low_;
    double width_;
    std::vector<std::uint64_t> counts_;
    std::uint64_t beneath_ = 0;
    std::uint64_t above_ = 0;
    Stat stat_;
};

/// A confidence interval: `mean` +- `half`.
struct Interval {
    double mean;
    double half; // infinite where there is no interval
    double confidence;
    const char *doubt = nullptr; // why there is no interval, and what to do; else null
    [[nodiscard]] bool contains(double x) const noexcept { return x >= mean - half && x <= mean + half; }
};

/// Quantile `p` of Student's t with `freedom` degrees of freedom, 0 < p < 1.
double student_quantile(double p, double freedom);

/// Probability that Student's t with `freedom` degrees of freedom is at most `t`. Errors of
/// these three are below 1e-7 of their values, as checked from 1000 degrees of freedom on and within three
/// deviations. A freedom of 0 or less throws BadParameter.
double student_probability(double t, double freedom);

/// Probability that chi-square with `freedom` degrees of freedom is at most `x`.
double chi_square_probability(double x, double freedom);

/// t-interval for the mean of independent samples; infinitely wide for fewer than two, with `doubt`.
Interval t_interval(const Stat &samples, double confidence = 0.95);

/// Means of consecutive batches of one long run, as nearly independent samples of its mean.
///
/// There are at least ten of them, each no less than ten times as long as the samples are correlated, or
/// there is no interval: it would cover less than its confidence (docs/simulation.md has the measured
/// coverage).
class BatchMeans {
  public:
    explicit BatchMeans(std::int64_t batch_size);
    void operator()(double sample) noexcept {
        batch_(sample);
        if (batch_.count() < size_)
            return;
        const double mean = batch_.mean();
        if (means_.count() == 0)
            shift_ = mean;
        if (means_.count() > 0)
            products_ += previous_ * (mean - shift_);
        previous_ = mean - shift_;
        means_(mean);
        samples_.merge(batch_);
        batch_.clear();
    }
    [[nodiscard]] const Stat &means() const noexcept { return means_; }
    /// Infinitely wide, with the reason in `doubt`, where the batches are too few or too short.
    [[nodiscard]] Interval interval(double confidence = 0.95) const;
    /// Lag-1 correlation of the batches' means: near 0 if the batches are long enough.
    [[nodiscard]] double correlation() const noexcept;
    /// How many samples have the information of one independent sample: 1 if they are independent. Judged by
    /// the batches, and too low where they are short.
    [[nodiscard]] double repetition() const noexcept;
    [[nodiscard]] std::string report(const std::string &name, double confidence = 0.95) const;

  private:
    [[nodiscard]] const char *doubt() const noexcept;

    std::int64_t size_;
    Stat batch_;
    Stat means_;
    Stat samples_;       // of whole batches
    double shift_ = 0.0; // the first mean: products of differences from it do not cancel
    double previous_ = 0.0;
    double products_ = 0.0;
};

} // namespace widthwise::sim
