// Adams, Bashforth and Moulton, fourth order: predict, evaluate, correct, evaluate.
//
// It needs derivatives at four equally spaced times. Until it has them, and for a step of another length, a
// Runge-Kutta step of fifth order is taken: the start must not be worse than the method (Hairer, Norsett and
// Wanner I, III.1).
#include "continuous/schemes.hpp"

#include <algorithm>
#include <array>

namespace widthwise::sim {
namespace {

class Adams final : public Scheme {
  public:
    explicit Adams(std::size_t size)
        : Scheme(true), starter_(make_runge_kutta(Method::rkf5, size)), at_(size), rate_(size) {
        for (auto &past : past_)
            past.resize(size);
    }

    void attempt(const Derivative &f, const Start &from, double h, std::span<double> increment,
                 std::span<double> error) override {
        if (known_ < 3 || h != spacing_) {
            const std::uint64_t before = starter_->evaluations();
            starter_->attempt(f, from, h, increment, error);
            evaluations_ += starter_->evaluations() - before;
            return;
        }
        const auto &[f1, f2, f3] = past_;
        const std::span<const double> f0 = from.rate;
        for (std::size_t k = 0; k < at_.size(); ++k) {
            increment[k] = h / 24.0 * (55.0 * f0[k] - 59.0 * f1[k] + 37.0 * f2[k] - 9.0 * f3[k]);
            at_[k] = from.state[k] + increment[k];
        }
        f(from.time + h, at_, rate_);
        ++evaluations_;
        for (std::size_t k = 0; k < at_.size(); ++k) {
            const double corrected = h / 24.0 * (9.0 * rate_[k] + 19.0 * f0[k] - 5.0 * f1[k] + f2[k]);
            error[k] = 19.0 / 270.0 * (corrected - increment[k]); // Milne's device
            increment[k] = corrected;
        }
    }

    void accept(const Start &from, double h) override {
        if (h != spacing_)
            known_ = 0;
        spacing_ = h;
        std::rotate(past_.begin(), past_.end() - 1, past_.end());
        std::copy(from.rate.begin(), from.rate.end(), past_[0].begin());
        known_ = std::min(known_ + 1, 3);
    }

    void forget() override { known_ = 0; }

    /// A change costs a new start: only halving and doubling, and the latter only where there is much to
    /// gain.
    [[nodiscard]] double propose(double h, double error, double) const override {
        if (error > 1.0)
            return 0.5 * h;
        return error < 1.0 / 128.0 && (known_ >= 3 || spacing_ == 0.0) ? 2.0 * h : h;
    }

  private:
    std::unique_ptr<Scheme> starter_;
    std::array<std::vector<double>, 3> past_; // derivatives, the newest first
    int known_ = 0;
    double spacing_ = 0.0;
    std::vector<double> at_;
    std::vector<double> rate_;
};

} // namespace

std::unique_ptr<Scheme> make_adams(std::size_t size) { return std::make_unique<Adams>(size); }

} // namespace widthwise::sim
