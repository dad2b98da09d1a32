#include "check.hpp"

#include "widthwise/sim/random.hpp"

#include <bitset>
#include <vector>

using namespace widthwise::sim;

namespace {

/// The generator's step as a matrix over GF(2): column i is the state after one step from the unit vector i.
class Transition {
  public:
    using State = Random::State;

    static Transition one_step() {
        Transition step;
        for (std::size_t i = 0; i < 256; ++i) {
            State unit{};
            unit[i / 64] = std::uint64_t{1} << (i % 64);
            Random random(unit);
            random();
            step.columns_[i] = random.state();
        }
        return step;
    }

    [[nodiscard]] State apply(const State &state) const {
        State sum{};
        for (std::size_t i = 0; i < 256; ++i)
            if ((state[i / 64] >> (i % 64)) & 1)
                for (std::size_t w = 0; w < 4; ++w)
                    sum[w] ^= columns_[i][w];
        return sum;
    }

    [[nodiscard]] Transition squared() const {
        Transition square;
        for (std::size_t i = 0; i < 256; ++i)
            square.columns_[i] = apply(columns_[i]);
        return square;
    }

  private:
    std::vector<State> columns_ = std::vector<State>(256);
};

} // namespace

TEST("xoshiro256** yields the numbers its authors' code yields") {
    // State 1, 2, 3, 4: the vectors that ports of the reference code are tested with (rand_xoshiro, for one).
    Random random(Random::State{1, 2, 3, 4});
    for (const std::uint64_t expected :
         {11520u, 0u, 1509978240u}) // the first three also follow by hand: rotl(5 * 2, 7) * 9 = 11520
        CHECK_EQUAL(random(), std::uint64_t{expected});
    for (const std::uint64_t expected :
         {1215971899390074240u, 1216172134540287360u, 607988272756665600u, 16172922978634559625u,
          8476171486693032832u, 10595114339597558777u, 2904607092377533576u})
        CHECK_EQUAL(random(), expected);
}

TEST("SplitMix64 yields the numbers its authors' code yields") {
    SplitMix64 spread(1234567);
    for (const std::uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                         4593380528125082431u, 16408922859458223821u})
        CHECK_EQUAL(spread(), expected);
}

TEST("a jump is two to the 128 steps, a long jump two to the 192") {
    Transition steps = Transition::one_step();
    for (int i = 0; i < 128; ++i)
        steps = steps.squared();
    const Random start(42);
    Random jumped = start;
    jumped.jump();
    CHECK(jumped.state() == steps.apply(start.state()));
    for (int i = 128; i < 192; ++i)
        steps = steps.squared();
    Random far = start;
    far.long_jump();
    CHECK(far.state() == steps.apply(start.state()));
}

TEST("streams are jumps from the seed") {
    const Random start(3);
    Random expected = start;
    expected.long_jump();
    expected.jump();
    expected.jump();
    CHECK(start.stream(2, 1) == expected);
    CHECK(start.stream(0) == start);
}

TEST("streams are those of the seed, whatever has been drawn, and never overlap") {
    Random random(3);
    const Random first = random.stream(1);
    const Random far = random.stream(2, 1);
    for (int i = 0; i < 100; ++i)
        (void)random();
    random.jump();
    CHECK(random.stream(0) == Random(3));
    CHECK(random.stream(1) == first);
    CHECK(random.stream(2, 1) == far);
    Random second = random.stream(1);
    (void)second();
    CHECK(second.stream(2) == Random(3).stream(3));
    CHECK(Random(Random(3).state()).stream(1) == first);
}

TEST("uniform numbers never reach one, and positive ones never zero") {
    // States whose next output is all ones, and zero: the output is rotl(s1 * 5, 7) * 9.
    const auto inverse = [](std::uint64_t odd) {
        std::uint64_t x = odd;
        for (int i = 0; i < 6; ++i)
            x *= 2 - odd * x; // Newton, doubling the number of right bits
        return x;
    };
    const std::uint64_t ones = inverse(5) * std::rotr(~std::uint64_t{0} * inverse(9), 7);
    CHECK_EQUAL(Random(Random::State{1, ones, 0, 0})(), ~std::uint64_t{0});
    CHECK_EQUAL(Random(Random::State{1, ones, 0, 0}).uniform(), 0x1.fffffffffffffp-1);
    CHECK_EQUAL(Random(Random::State{1, ones, 0, 0}).positive(), 1.0);
    CHECK_EQUAL(Random(Random::State{1, 0, 0, 0}).uniform(), 0.0);
    CHECK_EQUAL(Random(Random::State{1, 0, 0, 0}).positive(), 0x1p-53);
}

TEST("a state of zeros, which would stay zero for ever, is not accepted") {
    Random random(Random::State{0, 0, 0, 0});
    CHECK(random() != 0);
}

TEST("numbers below a bound are uniform also where the bound does not divide the range") {
    Random random(5);
    std::vector<int> counts(6);
    constexpr int draws = 60000;
    for (int i = 0; i < draws; ++i)
        ++counts[random.below(6)];
    double chi = 0.0;
    for (const int count : counts)
        chi += (count - draws / 6.0) * (count - draws / 6.0) / (draws / 6.0);
    CHECK(chi < 20.5); // the 0.999 quantile with 5 degrees of freedom
}
