// Many independent runs of one model, on as many threads as there are, with the same results on any number.
//
// Why by index: replication i has its own seed, a function of the plan's seed and i, and its result stands at
// place i, so that neither the number of threads nor their timing can be seen in what comes out. Each
// simulation's errors name that seed, with which one run alone can be repeated. Invariants: seeds of one plan
// differ (SplitMix64 is a bijection of its position); of several failures the one with the lowest index is
// thrown, after all threads have ended.
#pragma once

#include "widthwise/sim/random.hpp"
#include "widthwise/sim/statistics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace widthwise::sim {

/// One run of a model.
struct Replication {
    std::size_t index;
    std::uint64_t seed;
};

struct Plan {
    std::size_t count = 10;
    std::uint64_t seed = 1;
    std::size_t threads = 0; // 0: as many as the machine runs at once
    /// Called after each replication with how many have ended and how many there are; by one thread at a
    /// time. What it throws is thrown as if its replication had.
    void (*progress)(void *context, std::size_t ended, std::size_t count) = nullptr;
    void *context = nullptr;
};

/// The seed of replication `index`.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t index) noexcept {
    return SplitMix64(seed + index * 0x9e3779b97f4a7c15u)();
}

/// Calls `body(Replication)` for each; results in the order of their index. Where the system makes no more
/// threads, those that there are do the work.
template <class Body> auto replicate(const Plan &plan, Body body) {
    using Result = std::invoke_result_t<Body &, Replication>;
    std::vector<std::optional<Result>> results(plan.count);
    std::vector<std::exception_ptr> failures(plan.count);
    std::atomic<std::size_t> next{0};
    std::mutex reporting;
    std::size_t ended = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < plan.count; i = next++) {
            try {
                results[i].emplace(body(Replication{i, seed_of(plan.seed, i)}));
            } catch (...) {
                failures[i] = std::current_exception();
            }
            if (plan.progress == nullptr)
                continue;
            const std::lock_guard lock(reporting);
            try {
                plan.progress(plan.context, ++ended, plan.count);
            } catch (...) {
                if (failures[i] == nullptr)
                    failures[i] = std::current_exception();
            }
        }
    };
    std::size_t threads = plan.threads != 0 ? plan.threads : std::thread::hardware_concurrency();
    threads = threads > plan.count ? plan.count : threads;
    std::vector<std::thread> others;
    others.reserve(threads);
    try {
        while (others.size() + 1 < threads)
            others.emplace_back(work);
    } catch (const std::system_error &) { // no more threads
    } catch (const std::bad_alloc &) {
    }
    work();
    for (std::thread &thread : others)
        thread.join();
    for (const std::exception_ptr &failure : failures)
        if (failure != nullptr)
            std::rethrow_exception(failure);
    std::vector<Result> plain;
    plain.reserve(plan.count);
    for (auto &result : results)
        plain.push_back(std::move(*result));
    return plain;
}

/// A t-interval for the mean of what `body(Replication)` returns.
template <class Body> Interval estimate(const Plan &plan, Body body, double confidence = 0.95) {
    Stat stat;
    for (const double value : replicate(plan, std::move(body)))
        stat(value);
    return t_interval(stat, confidence);
}

} // namespace widthwise::sim
