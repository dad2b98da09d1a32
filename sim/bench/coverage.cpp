// How often the interval of batch means covers the true mean: the waits in M/M/1 at a load of 0.9, whose mean
// is 9 mean services, from the stationary state on. `coverage [runs]` prints the table of docs/simulation.md;
// the same runs give the same table everywhere.
#include "widthwise/sim/distributions.hpp"
#include "widthwise/sim/statistics.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace widthwise::sim;

namespace {

constexpr double load = 0.9;
constexpr double mean_wait = load / (1.0 - load);

BatchMeans waits(std::int64_t customers, std::int64_t batches, std::uint64_t seed) {
    Random random(seed);
    BatchMeans means(customers / batches);
    double wait = random.uniform() < 1.0 - load ? 0.0 : exponential(random, 1.0 / (1.0 - load));
    for (std::int64_t i = 0; i < customers; ++i) { // Lindley's recursion
        means(wait);
        wait = std::max(0.0, wait + exponential(random, 1.0) - exponential(random, 1.0 / load));
    }
    return means;
}

} // namespace

int main(int count, char **arguments) {
    const int runs = count > 1 ? std::atoi(arguments[1]) : 1000;
    if (runs < 1) {
        std::fputs("usage: coverage [RUNS]: at least 1\n", stderr);
        return 2;
    }
    std::puts("| customers | batches | plain interval covers | interval given | covers, where given | "
              "misses, of all "
              "runs |\n| --- | --- | --- | --- | --- | --- |");
    for (const std::int64_t customers : {10'000, 30'000, 100'000, 300'000})
        for (const std::int64_t batches : {5, 10, 20, 40, 100}) {
            int plain = 0;
            int given = 0;
            int covers = 0;
            for (int run = 0; run < runs; ++run) {
                const BatchMeans means = waits(customers, batches, 1000 + static_cast<std::uint64_t>(run));
                plain += t_interval(means.means()).contains(mean_wait) ? 1 : 0;
                const Interval interval = means.interval();
                given += interval.doubt == nullptr ? 1 : 0;
                covers += interval.doubt == nullptr && interval.contains(mean_wait) ? 1 : 0;
            }
            const auto share = [](int of, int whole) { return static_cast<double>(of) / whole; };
            char where_given[16] = "-";
            if (given > 0)
                std::snprintf(where_given, sizeof where_given, "%.3f", share(covers, given));
            std::printf("| %lld | %lld | %.3f | %.3f | %s | %.3f |\n", static_cast<long long>(customers),
                        static_cast<long long>(batches), share(plain, runs), share(given, runs), where_given,
                        share(given - covers, runs));
            std::fflush(stdout);
        }
}
