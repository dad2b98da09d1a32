// How a cost is measured here: the contestants take turns, round by round, in an order that changes; reported
// is the median of each and the median of the rounds' ratios, so that a machine that slows down slows all of
// them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace bench {

inline double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

struct Contestant {
    std::string name;
    std::function<double()> run; // cost of one unit, in seconds
    std::vector<double> costs = {};
};

/// Runs all for `rounds` rounds; the last contestant is what the others are compared with.
inline void compare(const char *title, std::vector<Contestant> &all, int rounds, double scale,
                    const char *unit) {
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < all.size(); ++i) {
            Contestant &one = all[(i + static_cast<std::size_t>(round)) % all.size()];
            one.costs.push_back(one.run());
        }
    std::printf("%s (%d rounds)\n", title, rounds);
    const Contestant &base = all.back();
    for (const Contestant &one : all) {
        std::vector<double> ratios;
        for (int round = 0; round < rounds; ++round)
            ratios.push_back(one.costs[static_cast<std::size_t>(round)] /
                             base.costs[static_cast<std::size_t>(round)]);
        std::printf("  %-28s %10.3f %s   ratio %.3f\n", one.name.c_str(), scale * median(one.costs), unit,
                    median(ratios));
    }
    std::fflush(stdout);
}

} // namespace bench
