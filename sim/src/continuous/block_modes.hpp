// Blocks that switch: each has a mode, a smooth output in that mode, and a function that is negative beyond
// the mode's end.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace widthwise::sim {

class Block {
  public:
    virtual ~Block() = default;
    [[nodiscard]] virtual double output(double x) const = 0;
    /// Positive as long as the mode holds. `rate` is x's, or 0 where wants_rate() is false.
    [[nodiscard]] virtual double within(double x, double rate) const = 0;
    /// The mode ends here, where within() is zero.
    virtual void leave(double x, double rate) = 0;
    /// x has jumped, or is looked at for the first time.
    virtual void begin(double x, double rate) = 0;
    /// Whether the present mode's end depends on x's rate.
    [[nodiscard]] virtual bool wants_rate() const { return false; }
    /// Why `x` decides no mode; null if it does.
    [[nodiscard]] virtual const char *refusal(double x) const { return x == x ? nullptr : "NaN"; }

    double input = 0.0; // when modes were settled last
    bool begun = false;
};

using Points = std::vector<std::pair<double, double>>;

std::unique_ptr<Block> make_limit(double low, double high);
std::unique_ptr<Block> make_dead_zone(double low, double high);
std::unique_ptr<Block> make_quantiser(double step);
std::unique_ptr<Block> make_friction(double low, double high);
std::unique_ptr<Block> make_polyline(Points points);
/// The modes' ends upwards from low and zero, and downwards from high and zero.
std::unique_ptr<Block> make_relay(double down_to_low, double up_to_zero, double down_to_zero,
                                  double up_to_high, double low, double high);
std::unique_ptr<Block> make_two_levels(double off, double on, double low, double high);
std::unique_ptr<Block> make_hysteresis(double left, double right, double slope, double low, double high);

} // namespace widthwise::sim
