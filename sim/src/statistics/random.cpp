#include "widthwise/sim/random.hpp"

namespace widthwise::sim {

// x^(2^128) and x^(2^192) modulo the characteristic polynomial, published with the generator.
// tests/random_test.cpp does not take them on trust: it squares the generator's transition matrix 128 and 192
// times.
constexpr Random::State jump_polynomial = {0x180ec6d33cfd0abau, 0xd5a61266f0c9392cu, 0xa9582618e03fc9aau,
                                           0x39abdc4529b1661cu};
constexpr Random::State long_jump_polynomial = {0x76e15d3efefdcbbfu, 0xc5004e441c522fb3u, 0x77710069854ee241u,
                                                0x39109bb02acbe635u};

std::uint32_t Random::below(std::uint32_t n) noexcept {
    std::uint64_t product = ((*this)() >> 32) * n;
    auto low = static_cast<std::uint32_t>(product);
    if (low < n) {
        const std::uint32_t threshold = (0u - n) % n;
        while (low < threshold) {
            product = ((*this)() >> 32) * n;
            low = static_cast<std::uint32_t>(product);
        }
    }
    return static_cast<std::uint32_t>(product >> 32);
}

void Random::advance(const State &polynomial) noexcept {
    State sum{};
    for (const auto word : polynomial)
        for (int bit = 0; bit < 64; ++bit) {
            if ((word >> bit) & 1)
                for (std::size_t i = 0; i < sum.size(); ++i)
                    sum[i] ^= state_[i];
            (*this)();
        }
    state_ = sum;
}

void Random::jump() noexcept { advance(jump_polynomial); }
void Random::long_jump() noexcept { advance(long_jump_polynomial); }

Random Random::stream(std::uint64_t index, std::uint64_t family) const noexcept {
    Random copy(start_);
    for (; family > 0; --family)
        copy.long_jump();
    for (; index > 0; --index)
        copy.jump();
    copy.start_ = copy.state_;
    return copy;
}

} // namespace widthwise::sim
