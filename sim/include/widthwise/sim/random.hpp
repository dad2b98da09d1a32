// Streams of random numbers: xoshiro256**, seeded by SplitMix64, with jump-ahead.
//
// Why this one: integers only (the same bits in every ABI), period 2^256 - 1, passes BigCrush, and a jump
// polynomial that makes 2^128 streams which cannot overlap. A 31-bit congruential generator, which older
// simulation libraries use, repeats itself within a minute at today's speed, and may return exactly 1.
//
// Invariants: the state is never all zeros; `uniform()` is in [0, 1), `positive()` in (0, 1].
// References: Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47(4), 2021;
// Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (SplitMix64).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace widthwise::sim {

/// SplitMix64: spreads a small seed over a large state.
class SplitMix64 {
  public:
    explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

    constexpr std::uint64_t operator()() noexcept {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

class Random {
  public:
    using result_type = std::uint64_t;
    using State = std::array<std::uint64_t, 4>;

    explicit constexpr Random(std::uint64_t seed = 1) noexcept {
        SplitMix64 spread(seed);
        for (auto &word : state_)
            word = spread();
        start_ = state_;
    }

    /// A state taken from elsewhere. All zeros is no state: it is replaced by seed 0's.
    explicit constexpr Random(const State &state) noexcept : Random(std::uint64_t{0}) {
        if ((state[0] | state[1] | state[2] | state[3]) != 0)
            state_ = start_ = state;
    }

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return ~result_type{0}; }

    constexpr std::uint64_t operator()() noexcept {
        const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    /// In [0, 1), a multiple of 2^-53.
    constexpr double uniform() noexcept {
        return static_cast<double>(static_cast<std::int64_t>((*this)() >> 11)) * 0x1p-53;
    }

    /// In (0, 1], a multiple of 2^-53: what a logarithm may be taken of.
    constexpr double positive() noexcept {
        return static_cast<double>(static_cast<std::int64_t>(((*this)() >> 11) + 1)) * 0x1p-53;
    }

    /// In [0, n), exactly uniform (Lemire, ACM TOMACS 29(1), 2019). `n` must not be 0.
    std::uint32_t below(std::uint32_t n) noexcept;

    /// As 2^128 draws: the next of 2^128 streams.
    void jump() noexcept;

    /// As 2^192 draws: the next of 2^64 families of streams.
    void long_jump() noexcept;

    /// Stream `index` of family `family` of this generator's seed, whatever has been drawn from it. Those of
    /// a stream are counted from where it starts: `stream(1).stream(2)` is `stream(3)`. The cost is one jump
    /// for each unit of both.
    [[nodiscard]] Random stream(std::uint64_t index, std::uint64_t family = 0) const noexcept;

    [[nodiscard]] constexpr const State &state() const noexcept { return state_; }

    /// Whether both draw the same numbers from now on.
    friend constexpr bool operator==(const Random &a, const Random &b) noexcept {
        return a.state_ == b.state_;
    }

  private:
    void advance(const State &polynomial) noexcept;

    State state_{};
    State start_{}; // from which streams are counted
};

} // namespace widthwise::sim
