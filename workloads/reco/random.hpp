// Random numbers that are the same in every ABI and do not depend on who asks for which event.
#ifndef RECO_RANDOM_HPP
#define RECO_RANDOM_HPP

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "elementary.hpp"

namespace reco {

// A number that is spread over all bits (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t scrambled(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// In [-1, 1): a constant of nature for whatever has this key.
constexpr double constant_of(std::uint64_t key) {
    return static_cast<double>(scrambled(key) >> 11) * 0x1p-52 - 1;
}

// One stream for each event of each seed: xoshiro256** (Blackman, Vigna, ACM TOMS 47, 2021).
// The standard library's generators would do, but its distributions are not specified to the bit.
class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t event) {
        std::uint64_t key = scrambled(seed) ^ event;
        for (std::uint64_t &word : words_) {
            word = key = scrambled(key);
        }
    }

    // In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    double uniform(double low, double high) { return low + (high - low) * uniform(); }

    // Mean 0, width 1: Marsaglia's polar method. The second number is thrown away, so that a draw has no
    // memory.
    double gaussian() {
        for (;;) {
            const double x = uniform(-1, 1), y = uniform(-1, 1), length = x * x + y * y;
            if (length > 0 && length < 1) {
                return x * std::sqrt(-2 * logarithm(length) / length);
            }
        }
    }

    double exponential() { return -logarithm(1 - uniform()); }

    // How many arrivals of a Poisson process there are in that time.
    int poisson(double mean) {
        int count = 0;
        for (double time = exponential(); time < mean; time += exponential()) {
            count++;
        }
        return count;
    }

  private:
    std::uint64_t next() {
        const std::uint64_t result = std::rotl(words_[1] * 5, 7) * 9, shifted = words_[1] << 17;
        words_[2] ^= words_[0];
        words_[3] ^= words_[1];
        words_[1] ^= words_[2];
        words_[0] ^= words_[3];
        words_[2] ^= shifted;
        words_[3] = std::rotl(words_[3], 45);
        return result;
    }

    std::array<std::uint64_t, 4> words_;
};

} // namespace reco

#endif
