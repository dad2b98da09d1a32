#include "continuous/block_modes.hpp"

#include "widthwise/sim/math.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace widthwise::sim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Modes in order, each for an interval of x; intervals may overlap, and then the mode is remembered.
class Intervals : public Block {
  public:
    [[nodiscard]] double within(double x, double) const override {
        return std::min(x - lowest(mode_), highest(mode_) - x);
    }
    void leave(double x, double) override { mode_ += x - lowest(mode_) < highest(mode_) - x ? -1 : 1; }
    /// At an end it matters where x goes.
    void begin(double x, double rate) override {
        while (x > highest(mode_) || (x == highest(mode_) && rate > 0.0))
            ++mode_;
        while (x < lowest(mode_) || (x == lowest(mode_) && rate < 0.0))
            --mode_;
    }

  protected:
    [[nodiscard]] virtual double lowest(double mode) const = 0;
    [[nodiscard]] virtual double highest(double mode) const = 0;
    double mode_ = 0.0; // a whole number: a quantiser has more of them than integers have numbers
};

/// Modes are the gaps between ascending points.
class Gaps : public Intervals {
  public:
    explicit Gaps(std::vector<double> ends) : ends_(std::move(ends)) {}

  protected:
    [[nodiscard]] double lowest(double mode) const override {
        return mode == 0 ? -infinity : ends_[static_cast<std::size_t>(mode) - 1];
    }
    [[nodiscard]] double highest(double mode) const override {
        return static_cast<std::size_t>(mode) == ends_.size() ? infinity
                                                              : ends_[static_cast<std::size_t>(mode)];
    }
    std::vector<double> ends_;
};

// The output of what follows is continuous in x: modes only make steps end at the kinks.

class Limit final : public Gaps {
  public:
    Limit(double low, double high) : Gaps({low, high}) {}
    [[nodiscard]] double output(double x) const override { return std::clamp(x, ends_[0], ends_[1]); }
};

class DeadZone final : public Gaps {
  public:
    DeadZone(double low, double high) : Gaps({low, high}) {}
    [[nodiscard]] double output(double x) const override { return x - std::clamp(x, ends_[0], ends_[1]); }
};

std::vector<double> firsts(const Points &points) {
    std::vector<double> xs;
    for (const auto &point : points)
        xs.push_back(point.first);
    return xs;
}

class Polyline final : public Gaps {
  public:
    explicit Polyline(Points points) : Gaps(firsts(points)), points_(std::move(points)) {}
    [[nodiscard]] double output(double x) const override {
        const auto after = std::upper_bound(ends_.begin(), ends_.end(), x) - ends_.begin();
        if (after == 0)
            return points_.front().second;
        if (static_cast<std::size_t>(after) == points_.size())
            return points_.back().second;
        const auto &[x0, y0] = points_[static_cast<std::size_t>(after) - 1];
        const auto &[x1, y1] = points_[static_cast<std::size_t>(after)];
        return y0 + (y1 - y0) * ((x - x0) / (x1 - x0));
    }

  private:
    Points points_;
};

// The output of what follows jumps: it is the mode's.

/// Its mode is the multiple of the step.
class Quantiser final : public Intervals {
  public:
    explicit Quantiser(double step) : step_(step) {}
    [[nodiscard]] double output(double) const override { return step_ * mode_; }
    void begin(double x, double rate) override {
        mode_ = math::floor(x / step_ + 0.5);
        Intervals::begin(x, rate);
    }
    /// Beyond that the multiples' halves, between which modes lie, are no doubles.
    [[nodiscard]] const char *refusal(double x) const override {
        return x == x && !(std::fabs(x / step_) < 0x1p51) ? "beyond 2^51 of its steps" : Block::refusal(x);
    }

  private:
    [[nodiscard]] double lowest(double mode) const override { return (mode - 0.5) * step_; }
    [[nodiscard]] double highest(double mode) const override { return (mode + 0.5) * step_; }

    double step_;
};

class Friction final : public Gaps {
  public:
    Friction(double low, double high) : Gaps({0.0}), low_(low), high_(high) {}
    [[nodiscard]] double output(double x) const override { return x + (mode_ == 0 ? low_ : high_); }
    void begin(double x, double rate) override { mode_ = x > 0.0 || (x == 0.0 && rate >= 0.0) ? 1 : 0; }

  private:
    double low_;
    double high_;
};

class Relay final : public Intervals {
  public:
    Relay(std::vector<double> up, std::vector<double> down, std::vector<double> levels, int mode)
        : up_(std::move(up)), down_(std::move(down)), levels_(std::move(levels)) {
        mode_ = mode;
    }
    [[nodiscard]] double output(double) const override { return levels_[static_cast<std::size_t>(mode_)]; }

  protected:
    [[nodiscard]] double lowest(double mode) const override {
        return mode == 0 ? -infinity : down_[static_cast<std::size_t>(mode) - 1];
    }
    [[nodiscard]] double highest(double mode) const override {
        return static_cast<std::size_t>(mode) == up_.size() ? infinity : up_[static_cast<std::size_t>(mode)];
    }

  private:
    std::vector<double> up_;
    std::vector<double> down_;
    std::vector<double> levels_;
};

/// Play between two parallel lines, cut at two levels. It follows a line while x goes that line's way; there
/// the end of the mode is where x turns.
class Hysteresis final : public Block {
  public:
    Hysteresis(double left, double right, double slope, double low, double high)
        : left_(left), right_(right), slope_(slope), low_(low), high_(high),
          held_(std::clamp(0.0, low, high)) {}

    [[nodiscard]] double output(double x) const override {
        switch (mode_) {
        case Mode::up:
            return slope_ * (x - right_);
        case Mode::down:
            return slope_ * (x - left_);
        default:
            return held_;
        }
    }
    [[nodiscard]] double within(double x, double rate) const override {
        switch (mode_) {
        case Mode::up: // until x turns, or the level is reached
            return std::min(rate, high_ - output(x));
        case Mode::down:
            return std::min(-rate, output(x) - low_);
        default:
            return std::min(x - lowest(), highest() - x);
        }
    }
    void leave(double x, double) override {
        if (mode_ == Mode::hold) {
            mode_ = x - lowest() < highest() - x ? Mode::down : Mode::up;
        } else {
            held_ = std::clamp(output(x), low_, high_);
            mode_ = Mode::hold;
        }
    }
    void begin(double x, double rate) override {
        const double was = begun ? output(input) : held_;
        const double lower = slope_ * (x - right_);
        const double upper = slope_ * (x - left_);
        held_ = std::clamp(std::clamp(was, lower, upper), low_, high_);
        mode_ = Mode::hold;
        if (held_ == lower && rate > 0.0 && held_ < high_)
            mode_ = Mode::up;
        if (held_ == upper && rate < 0.0 && held_ > low_)
            mode_ = Mode::down;
    }
    [[nodiscard]] bool wants_rate() const override { return mode_ != Mode::hold; }

  private:
    enum class Mode : unsigned char { hold, up, down };
    /// Between which xs the output stands still.
    [[nodiscard]] double lowest() const { return held_ <= low_ ? -infinity : held_ / slope_ + left_; }
    [[nodiscard]] double highest() const { return held_ >= high_ ? infinity : held_ / slope_ + right_; }

    double left_;
    double right_;
    double slope_;
    double low_;
    double high_;
    double held_;
    Mode mode_ = Mode::hold;
};

} // namespace

std::unique_ptr<Block> make_limit(double low, double high) { return std::make_unique<Limit>(low, high); }
std::unique_ptr<Block> make_dead_zone(double low, double high) {
    return std::make_unique<DeadZone>(low, high);
}
std::unique_ptr<Block> make_quantiser(double step) { return std::make_unique<Quantiser>(step); }
std::unique_ptr<Block> make_friction(double low, double high) {
    return std::make_unique<Friction>(low, high);
}
std::unique_ptr<Block> make_polyline(Points points) { return std::make_unique<Polyline>(std::move(points)); }
std::unique_ptr<Block> make_relay(double down_to_low, double up_to_zero, double down_to_zero,
                                  double up_to_high, double low, double high) {
    return std::make_unique<Relay>(std::vector{up_to_zero, up_to_high},
                                   std::vector{down_to_low, down_to_zero}, std::vector{low, 0.0, high}, 1);
}
std::unique_ptr<Block> make_two_levels(double off, double on, double low, double high) {
    return std::make_unique<Relay>(std::vector{on}, std::vector{off}, std::vector{low, high}, 0);
}
std::unique_ptr<Block> make_hysteresis(double left, double right, double slope, double low, double high) {
    return std::make_unique<Hysteresis>(left, right, slope, low, high);
}

} // namespace widthwise::sim
