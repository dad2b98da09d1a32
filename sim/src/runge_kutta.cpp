#include "schemes.hpp"

#include "widthwise/sim/math.hpp"

#include <algorithm>

namespace widthwise::sim {
namespace {

class RungeKutta final : public Scheme {
  public:
    RungeKutta(const Tableau &tableau, std::size_t size)
        : tableau_(tableau), size_(size), rates_(size * static_cast<std::size_t>(tableau.stages)), at_(size) {
    }

    void attempt(const Derivative &f, const Start &from, double h, std::span<double> increment,
                 std::span<double> error) override {
        std::copy(from.rate.begin(), from.rate.end(), rates_.begin());
        const double *a = tableau_.a;
        for (int i = 1; i < tableau_.stages; ++i) {
            a += i - 1;
            weigh(a, i, at_);
            for (std::size_t k = 0; k < size_; ++k)
                at_[k] = from.state[k] + h * at_[k];
            f(from.time + tableau_.c[i] * h, at_, stage(i));
            ++evaluations_;
        }
        weigh(tableau_.b, tableau_.stages, increment);
        weigh(tableau_.error, tableau_.stages, error);
        for (std::size_t k = 0; k < size_; ++k) {
            increment[k] *= h;
            error[k] *= h;
        }
    }

    [[nodiscard]] std::span<const double> last_rate() const override {
        if (!tableau_.first_same_as_last)
            return {};
        return {rates_.data() + static_cast<std::size_t>(tableau_.stages - 1) * size_, size_};
    }

    [[nodiscard]] double propose(double h, double error) const override {
        const int lower = std::min(tableau_.order, tableau_.embedded);
        if (error <= 0.0)
            return 5.0 * h;
        return h * std::clamp(0.9 * math::pow(error, -1.0 / (lower + 1)), 0.2, 5.0);
    }

  private:
    std::span<double> stage(int i) { return {rates_.data() + static_cast<std::size_t>(i) * size_, size_}; }

    /// Stages in the order of their numbers, whatever the ABI: sums have one order.
    void weigh(const double *weights, int count, std::span<double> sum) const {
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int j = 0; j < count; ++j) {
            const double w = weights[j];
            if (w == 0.0)
                continue;
            const double *rate = rates_.data() + static_cast<std::size_t>(j) * size_;
            for (std::size_t k = 0; k < size_; ++k)
                sum[k] += w * rate[k];
        }
    }

    const Tableau &tableau_;
    std::size_t size_;
    std::vector<double> rates_;
    std::vector<double> at_;
};

} // namespace

std::unique_ptr<Scheme> make_runge_kutta(const Tableau &tableau, std::size_t size) {
    return std::make_unique<RungeKutta>(tableau, size);
}

} // namespace widthwise::sim
