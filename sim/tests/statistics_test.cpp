#include "check.hpp"

#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {
bool near(double a, double b, double relative = 1e-12) { return std::fabs(a - b) <= relative * std::fabs(b); }
} // namespace

TEST("a tally far from zero keeps its deviation") {
    Stat stat;
    for (const double x : {4.0, 7.0, 13.0, 16.0})
        stat(1e9 + x);
    CHECK_EQUAL(stat.count(), 4);
    CHECK(near(stat.mean(), 1e9 + 10.0));
    CHECK(near(stat.variance(), 30.0));
    CHECK_EQUAL(stat.least(), 1e9 + 4.0);
    CHECK_EQUAL(stat.greatest(), 1e9 + 16.0);
}

TEST("a tally of nothing has no extremes and no deviation") {
    const Stat stat;
    CHECK_EQUAL(stat.count(), 0);
    CHECK_EQUAL(stat.mean(), 0.0);
    CHECK_EQUAL(stat.deviation(), 0.0);
    CHECK(std::isnan(stat.least()));
}

TEST("merged tallies are as one") {
    Stat whole;
    Stat left;
    Stat right;
    Random random(1);
    for (int i = 0; i < 1000; ++i) {
        const double x = normal(random, 5.0, 2.0);
        whole(x);
        (i < 300 ? left : right)(x);
    }
    left.merge(right);
    left.merge(Stat());
    CHECK_EQUAL(left.count(), whole.count());
    CHECK(near(left.mean(), whole.mean()));
    CHECK(near(left.variance(), whole.variance()));
    CHECK_EQUAL(left.greatest(), whole.greatest());
}

TEST("a sample that is NaN is none of the extremes, and hides none") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::vector<double> &samples :
         {std::vector{1.0, 7.0, nan, 5.0}, std::vector{nan, 7.0, 5.0, 1.0}, std::vector{7.0, 1.0, 5.0, nan}})
        for (std::size_t cut = 0; cut <= samples.size(); ++cut) {
            Stat whole;
            Stat left;
            Stat right;
            for (std::size_t i = 0; i < samples.size(); ++i) {
                whole(samples[i]);
                (i < cut ? left : right)(samples[i]);
            }
            left.merge(right);
            for (const Stat &stat : {whole, left}) {
                CHECK_EQUAL(stat.count(), 4);
                CHECK_EQUAL(stat.least(), 1.0);
                CHECK_EQUAL(stat.greatest(), 7.0);
                CHECK(std::isnan(stat.mean()));
                CHECK(std::isnan(stat.deviation()));
            }
        }
    Stat none;
    none(nan);
    CHECK(std::isnan(none.least()));
    CHECK(std::isnan(none.greatest()));
}

TEST("a level is averaged over the time it lasted") {
    TStat level(10.0);
    level.set(12.0, 3.0);
    level.set(15.0, 1.0);
    CHECK(near(level.mean(20.0), (2 * 0.0 + 3 * 3.0 + 5 * 1.0) / 10.0));
    CHECK(near(level.integral(20.0), 14.0));
    CHECK(near(level.variance(20.0), (2 * 1.96 + 3 * 2.56 + 5 * 0.16) / 10.0));
    CHECK_EQUAL(level.greatest(), 3.0);
    CHECK(near(level.mean(20.0), 1.4)); // asking changes nothing
    level.clear(20.0);
    CHECK_EQUAL(level.mean(25.0), 1.0);
    CHECK_EQUAL(level.greatest(), 1.0);
}

TEST("a histogram counts within, beneath and above, and knows its quantiles") {
    Histogram histogram(0.0, 1.0, 10);
    for (int i = 0; i < 100; ++i)
        histogram(i * 0.1 + 0.05);
    histogram(-1.0);
    histogram(99.0);
    CHECK_EQUAL(histogram.beneath(), 1u);
    CHECK_EQUAL(histogram.above(), 1u);
    for (const auto count : histogram.counts())
        CHECK_EQUAL(count, 10u);
    CHECK(near(histogram.quantile(0.5), 5.0));
    CHECK_THROWS(Histogram(0.0, 0.0, 5), BadParameter);
    CHECK_THROWS(Histogram(0.0, 1.0, 0), BadParameter);
}

TEST("a quantile outside of a histogram's classes is not known") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    Histogram histogram(0.0, 1.0, 10);
    for (const double q : {0.0, 0.5, 1.0})
        CHECK(std::isnan(histogram.quantile(q)));
    for (const double bad : {-0.1, 1.1, -infinity, infinity, nan})
        CHECK_THROWS((void)histogram.quantile(bad), BadParameter);
    for (int i = 0; i < 20; ++i)
        histogram(-5.0);
    for (int i = 0; i < 35; ++i)
        histogram(2.5);
    for (int i = 0; i < 44; ++i)
        histogram(70.0);
    histogram(nan);
    CHECK_EQUAL(histogram.above(), 45u);
    CHECK(std::isnan(histogram.quantile(0.0)));
    CHECK(std::isnan(histogram.quantile(0.19)));
    CHECK_EQUAL(histogram.quantile(0.2), 0.0);
    CHECK(near(histogram.quantile(0.34), 2.4));
    CHECK_EQUAL(histogram.quantile(0.55), 3.0); // 0.55 * 100 is rounded to more than 55
    CHECK(std::isnan(histogram.quantile(0.56)));
    CHECK(std::isnan(histogram.quantile(1.0)));

    Histogram within(0.0, 1.0, 10);
    within(1.5);
    within(4.5);
    CHECK_EQUAL(within.quantile(0.0), 1.0);
    CHECK_EQUAL(within.quantile(1.0), 5.0);

    Histogram outside(0.0, 1.0, 10);
    outside(-1.0);
    CHECK(std::isnan(outside.quantile(0.5)));
    CHECK_EQUAL(outside.quantile(1.0), 0.0); // all of them lie below it
}

TEST("Student's quantiles are those of the tables") {
    CHECK(near(student_quantile(0.975, 1), 12.7062047361747, 1e-10)); // NIST/SEMATECH e-Handbook, 1.3.6.7.2
    CHECK(near(student_quantile(0.975, 10), 2.22813885198627, 1e-10));
    CHECK(near(student_quantile(0.995, 30), 2.74999565356722, 1e-10));
    CHECK(near(student_quantile(0.025, 10), -2.22813885198627, 1e-10));
    CHECK(near(student_quantile(0.975, 1e6), 1.95996635682, 1e-8));
}

TEST("chi-square's probabilities are those of the tables") {
    CHECK(near(chi_square_probability(3.841458820694124, 1), 0.95, 1e-10));
    CHECK(near(chi_square_probability(18.307038053275146, 10), 0.95, 1e-10));
    CHECK(near(chi_square_probability(2.0, 2), 1.0 - std::exp(-1.0), 1e-12));
    // Freedoms of any number; references by mpmath
    CHECK(near(chi_square_probability(10000000000.0, 10000000000.0), 0.50000188063194516, 3e-12));
    CHECK(near(chi_square_probability(9999575735.931288, 10000000000.0), 0.0013497309010254569, 3e-12));
    CHECK(near(chi_square_probability(10000353553.390593, 10000000000.0), 0.99378990086781978, 3e-12));
    CHECK(near(chi_square_probability(1048576.0, 1048576.0), 0.50018365546534053, 3e-12));
    CHECK(near(chi_square_probability(1042783.3812485198, 1048576.0), 3.075667810381606e-5, 3e-12));
    CHECK(near(chi_square_probability(1050024.15468787, 1048576.0), 0.84134482291350103, 3e-12));
    CHECK(near(chi_square_probability(1000000000000000.0, 1000000000000000.0), 0.50000000594708039, 3e-12));
    CHECK(near(chi_square_probability(999999910557280.9, 1000000000000000.0), 0.022750129503437705, 3e-12));
    CHECK_EQUAL(chi_square_probability(std::numeric_limits<double>::infinity(), 3.0), 1.0);
}

TEST("Student's t has tails of any size and freedoms of any number") {
    // References: mpmath with 50 digits.
    for (const double p : {0.1, 1e-3, 1e-9, 1e-15, 1e-16, 1e-17, 1e-100, 1e-200})
        for (const double freedom : {1.0, 2.0, 5.0, 1e5, 0x1p20, 1e9, 1e15, 1e30})
            CHECK(near(student_probability(student_quantile(p, freedom), freedom) / p, 1.0, 1e-7));
    CHECK(near(student_probability(-1.0, 1000000000000000.0) / 0.15865525393145717, 1.0, 1e-10));
    CHECK(near(student_probability(-2.5, 1000000000000000.0) / 0.0062096653257762146, 1.0, 1e-10));
    CHECK(near(student_probability(-1.0, 1048576.0) / 0.15865536931206219, 1.0, 1e-10));
    CHECK(near(student_probability(-3.0, 1048576.0) / 0.0013499297308781397, 1.0, 1e-10));
    CHECK(near(student_probability(-1.5, 10000000.0) / 0.066807217053814724, 1.0, 1e-10));
    CHECK(near(student_probability(-6.0, 1048576.0) / 9.8690928013107299e-10, 1.0, 1e-10));
    CHECK(near(student_quantile(1e-15, 1.0) / -318309886183790.65, 1.0, 1e-10));
    CHECK(near(student_quantile(1e-16, 1.0) / -3183098861837906.8, 1.0, 1e-10));
    CHECK(near(student_quantile(1e-17, 1.0) / -31830988618379065.0, 1.0, 1e-10));
    CHECK(near(student_quantile(1e-200, 1.0) / -3.1830988618379068e+199, 1.0, 1e-10));
    CHECK(near(student_quantile(0.975, 1000000000.0), 1.9599639869123251, 1e-13));
    CHECK(near(student_quantile(0.975, 1000000000000000.0), 1.9599639845400562, 1e-13));
    CHECK_EQUAL(student_quantile(0.025, 7.0), -student_quantile(0.975, 7.0));
    for (const double freedom : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS((void)student_probability(1.0, freedom), BadParameter);
        CHECK_THROWS((void)student_quantile(0.9, freedom), BadParameter);
        CHECK_THROWS((void)chi_square_probability(1.0, freedom), BadParameter);
    }
}

TEST("a t-interval holds the mean about as often as it promises") {
    Random random(2);
    int held = 0;
    constexpr int trials = 4000;
    for (int trial = 0; trial < trials; ++trial) {
        Stat stat;
        for (int i = 0; i < 8; ++i)
            stat(normal(random, 3.0, 1.0));
        if (t_interval(stat, 0.9).contains(3.0))
            ++held;
    }
    CHECK(std::abs(held - 0.9 * trials) < 3.3 * std::sqrt(0.09 * trials));
    CHECK(std::isinf(t_interval(Stat(), 0.9).half));
}

TEST("batch means widen the interval of a correlated series") {
    Random random(3);
    Stat naive;
    BatchMeans batches(1000);
    BatchMeans short_batches(1);
    double x = 0.0;
    for (int i = 0; i < 100000; ++i) {
        x = 0.95 * x + normal(random, 0.0, 1.0);
        naive(x);
        batches(x);
        short_batches(x);
    }
    CHECK_EQUAL(batches.means().count(), 100);
    const double true_half = 1.96 * (1.0 / 0.05) / std::sqrt(100000.0);
    CHECK(near(batches.interval().half, true_half, 0.25));
    CHECK(t_interval(naive).half < 0.3 * true_half);
    CHECK(std::fabs(batches.correlation()) < 0.3);
    CHECK(near(short_batches.correlation(), 0.95, 0.02));
    CHECK_THROWS(BatchMeans(0), BadParameter);
    CHECK(batches.interval().doubt == nullptr);
    CHECK(std::isinf(short_batches.interval().half));
    CHECK(batches.report("x").find(" (95 %)  batches 100") != std::string::npos);
    CHECK(short_batches.report("x").find("no interval: the batches' means are correlated") !=
          std::string::npos);
}

TEST("the correlation of batch means is that of their series, also if the first lies apart") {
    Random random(5);
    BatchMeans batches(1);
    std::vector<double> series = {100.0};
    for (int i = 0; i < 99; ++i)
        series.push_back(normal(random, 0.0, 1.0));
    Stat all;
    for (const double x : series) {
        batches(x);
        all(x);
    }
    double products = 0.0;
    for (std::size_t i = 1; i < series.size(); ++i)
        products += (series[i] - all.mean()) * (series[i - 1] - all.mean());
    CHECK(std::fabs(batches.correlation() - products / 99.0 / all.variance()) < 1e-12);
    CHECK(std::fabs(batches.correlation()) < 0.05);
}

namespace {

/// The waits of customers in M/M/1 (mean service 1) from the stationary state on, by Lindley's recursion.
BatchMeans waits(double load, std::int64_t customers, std::int64_t batches, std::uint64_t seed) {
    Random random(seed);
    BatchMeans means(customers / batches);
    double wait = random.uniform() < 1.0 - load ? 0.0 : exponential(random, 1.0 / (1.0 - load));
    for (std::int64_t i = 0; i < customers; ++i) {
        means(wait);
        wait = std::max(0.0, wait + exponential(random, 1.0) - exponential(random, 1.0 / load));
    }
    return means;
}

} // namespace

TEST("fewer than ten batches, and batches too short for their series, give no interval but a reason") {
    const auto doubt = [](const BatchMeans &batches) {
        const Interval interval = batches.interval();
        CHECK_EQUAL(std::isinf(interval.half), interval.doubt != nullptr);
        return std::string(interval.doubt != nullptr ? interval.doubt : "none");
    };
    CHECK_EQUAL(doubt(waits(0.9, 900'000, 9, 1)),
                std::string("fewer than 10 batches: run longer, or make them shorter"));
    CHECK_EQUAL(doubt(waits(0.9, 1'000'000, 10, 1)), std::string("none"));
    CHECK_EQUAL(doubt(waits(0.9, 100'000, 1000, 1)),
                std::string("the batches' means are correlated: make the batches longer"));
    // Too few for their correlation to show.
    CHECK_EQUAL(
        doubt(waits(0.9, 20'000, 20, 7)),
        std::string("the batches are short beside the time for which the samples are correlated: make "
                    "them longer"));
    BatchMeans none(5);
    CHECK_EQUAL(doubt(none), std::string("fewer than 10 batches: run longer, or make them shorter"));
}

TEST("an interval of batch means that is given has its confidence, on M/M/1 at 0.9") {
    constexpr int runs = 400;
    struct Row {
        std::int64_t customers, batches;
        double given;  // at least
        double missed; // of all runs, at most
    };
    // The binomial deviation of 0.05 in 400 is 0.011.
    for (const Row row : {Row{10'000, 10, 0.0, 0.10}, Row{10'000, 40, 0.0, 0.02}, Row{30'000, 20, 0.0, 0.09},
                          Row{100'000, 10, 0.9, 0.085}}) {
        int given = 0;
        int missed = 0;
        for (std::uint64_t run = 0; run < runs; ++run) {
            const Interval interval = waits(0.9, row.customers, row.batches, 1000 + run).interval();
            given += interval.doubt == nullptr ? 1 : 0;
            missed += interval.contains(9.0) ? 0 : 1;
        }
        CHECK(given >= row.given * runs);
        CHECK(missed <= row.missed * runs);
    }
}

TEST("independent samples are not doubted") {
    int doubted = 0;
    for (std::uint64_t run = 0; run < 400; ++run) {
        Random random(run + 1);
        BatchMeans batches(100);
        for (int i = 0; i < 2000; ++i)
            batches(normal(random, 0.0, 1.0));
        doubted += batches.interval().doubt != nullptr ? 1 : 0;
    }
    CHECK(doubted <= 36); // one in twenty, and three deviations
}

TEST("one sample gives no interval but a reason") {
    Stat one;
    one(3.0);
    const Interval none = t_interval(one);
    CHECK_EQUAL(none.half, std::numeric_limits<double>::infinity());
    CHECK(none.doubt != nullptr && std::string(none.doubt) == "fewer than 2 samples: take more");
    one(4.0);
    CHECK(t_interval(one).doubt == nullptr);
}

TEST("what cannot be asked of statistics is refused by the name of what was asked") {
    Stat some;
    some(1.0);
    some(2.0);
    try {
        (void)t_interval(some, 95.0);
        CHECK(false);
    } catch (const BadParameter &error) {
        CHECK(std::string(error.what()).find("t_interval: a confidence in (0, 1) is needed, not 95") !=
              std::string::npos);
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK_THROWS(Histogram(nan, 1.0, 3), BadParameter);
    CHECK_THROWS(Histogram(0.0, infinity, 3), BadParameter);
}
