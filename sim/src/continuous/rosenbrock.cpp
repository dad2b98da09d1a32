// Rodas4: a stiffly accurate Rosenbrock method of order 4(3) with six stages. It solves linear systems only,
// one matrix a step.
//
// Coefficients and the form that needs no product by the Jacobian: Hairer and Wanner, Solving Ordinary
// Differential Equations II (2nd ed., 1996), IV.7 and VI.4, method RODAS.
#include "continuous/schemes.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/step_control.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace widthwise::sim {
namespace {

constexpr int stages = 6;
constexpr double gamma = 0.25;
constexpr std::array<double, stages> alpha = {0.0, 0.386, 0.21, 0.63, 1.0, 1.0};
constexpr std::array<double, stages> gammas = {0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0};
// Rows below the diagonal, one after another.
constexpr std::array<double, 15> a = {
    1.544,
    0.9466785280815826,
    0.2557011698983284,
    3.314825187068521,
    2.896124015972201,
    0.9986419139977817,
    1.221224509226641,
    6.019134481288629,
    12.53708332932087,
    -0.6878860361058950,
    1.221224509226641,
    6.019134481288629,
    12.53708332932087,
    -0.6878860361058950,
    1.0,
};
constexpr std::array<double, 15> c = {
    -5.6688,
    -2.430093356833875,
    -0.2063599157091915,
    -0.1073529058151375,
    -9.594562251023355,
    -20.47028614809616,
    7.496443313967647,
    -10.24680431464352,
    -33.99990352819905,
    11.70890893206160,
    8.083246795921522,
    -7.981132988064893,
    -31.52159432874371,
    16.31930543123136,
    -6.058818238834054,
};

class Rosenbrock final : public Scheme {
  public:
    Rosenbrock(std::size_t size, const Jacobian &jacobian)
        : n_(size), jacobian_(jacobian), by_state_(size * size), by_time_(size), matrix_(size * size),
          pivots_(size), u_(stages * size), at_(size), rate_(size) {}

    void attempt(const Derivative &f, const Start &from, double h, std::span<double> increment,
                 std::span<double> error) override {
        if (!from.repeated)
            linearise(f, from, h);
        for (std::size_t i = 0; i < n_ * n_; ++i)
            matrix_[i] = -by_state_[i];
        for (std::size_t i = 0; i < n_; ++i)
            matrix_[i * n_ + i] += 1.0 / (h * gamma);
        if (!factorise()) {
            // A step of another length has another matrix.
            std::fill(error.begin(), error.end(), std::numeric_limits<double>::quiet_NaN());
            std::fill(increment.begin(), increment.end(), std::numeric_limits<double>::quiet_NaN());
            return;
        }
        for (int i = 0; i < stages; ++i) {
            const std::size_t row = static_cast<std::size_t>(i * (i - 1) / 2);
            double *u = &u_[static_cast<std::size_t>(i) * n_];
            if (i == 0) {
                std::copy(from.rate.begin(), from.rate.end(), rate_.begin());
            } else {
                std::copy(from.state.begin(), from.state.end(), at_.begin());
                for (int j = 0; j < i; ++j)
                    for (std::size_t k = 0; k < n_; ++k)
                        at_[k] += a[row + static_cast<std::size_t>(j)] * stage(j)[k];
                f(from.time + alpha[static_cast<std::size_t>(i)] * h, at_, rate_);
                ++evaluations_;
            }
            for (std::size_t k = 0; k < n_; ++k) {
                double sum = 0.0;
                for (int j = 0; j < i; ++j)
                    sum += c[row + static_cast<std::size_t>(j)] * stage(j)[k];
                u[k] = rate_[k] + sum / h + gammas[static_cast<std::size_t>(i)] * h * by_time_[k];
            }
            solve(u);
        }
        const std::size_t last = 10; // the sixth row of a, and 1 for the sixth stage
        for (std::size_t k = 0; k < n_; ++k) {
            double sum = 0.0;
            for (int j = 0; j < stages - 1; ++j)
                sum += a[last + static_cast<std::size_t>(j)] * stage(j)[k];
            error[k] = stage(stages - 1)[k];
            increment[k] = sum + error[k];
        }
    }

    [[nodiscard]] double propose(double h, double error, double before) const override {
        return h * step_factor(error, before, 4, 6.0, 0.4);
    }

  private:
    [[nodiscard]] const double *stage(int j) const { return &u_[static_cast<std::size_t>(j) * n_]; }

    /// Differences are taken over a small part of the component, or of what it changes by in this step: a
    /// component that is tiny for its own reasons (a radical's concentration) keeps its scale.
    void linearise(const Derivative &f, const Start &from, double h) {
        if (jacobian_) {
            jacobian_(from.time, from.state, by_state_, by_time_);
            return;
        }
        constexpr double unit = std::numeric_limits<double>::epsilon();
        std::copy(from.state.begin(), from.state.end(), at_.begin());
        for (std::size_t j = 0; j < n_; ++j) {
            const double old = at_[j];
            const double size = std::max(std::fabs(old), std::fabs(h * from.rate[j]));
            at_[j] = old + math::sqrt(unit) * (size > 0.0 ? size : 1.0);
            const double delta = at_[j] - old; // what was really added
            f(from.time, at_, rate_);
            at_[j] = old;
            for (std::size_t i = 0; i < n_; ++i)
                by_state_[i * n_ + j] = (rate_[i] - from.rate[i]) / delta;
        }
        const double later = from.time + math::sqrt(unit * std::max(1e-5, std::fabs(from.time)));
        f(later, at_, rate_);
        for (std::size_t i = 0; i < n_; ++i)
            by_time_[i] = (rate_[i] - from.rate[i]) / (later - from.time);
        evaluations_ += n_ + 1;
    }

    /// LU with the greatest pivot of each column; false if there is none.
    bool factorise() {
        for (std::size_t k = 0; k < n_; ++k) {
            std::size_t best = k;
            for (std::size_t i = k + 1; i < n_; ++i)
                if (std::fabs(matrix_[i * n_ + k]) > std::fabs(matrix_[best * n_ + k]))
                    best = i;
            pivots_[k] = best;
            if (!(std::fabs(matrix_[best * n_ + k]) > 0.0))
                return false;
            if (best != k)
                std::swap_ranges(&matrix_[k * n_], &matrix_[k * n_] + n_, &matrix_[best * n_]);
            for (std::size_t i = k + 1; i < n_; ++i) {
                const double factor = matrix_[i * n_ + k] / matrix_[k * n_ + k];
                matrix_[i * n_ + k] = factor;
                for (std::size_t j = k + 1; j < n_; ++j)
                    matrix_[i * n_ + j] -= factor * matrix_[k * n_ + j];
            }
        }
        return true;
    }

    void solve(double *x) const {
        for (std::size_t k = 0; k < n_; ++k)
            std::swap(x[k], x[pivots_[k]]);
        for (std::size_t i = 1; i < n_; ++i)
            for (std::size_t j = 0; j < i; ++j)
                x[i] -= matrix_[i * n_ + j] * x[j];
        for (std::size_t i = n_; i-- > 0;) {
            for (std::size_t j = i + 1; j < n_; ++j)
                x[i] -= matrix_[i * n_ + j] * x[j];
            x[i] /= matrix_[i * n_ + i];
        }
    }

    std::size_t n_;
    Jacobian jacobian_;
    std::vector<double> by_state_;
    std::vector<double> by_time_;
    std::vector<double> matrix_;
    std::vector<std::size_t> pivots_;
    std::vector<double> u_;
    std::vector<double> at_;
    std::vector<double> rate_;
};

} // namespace

std::unique_ptr<Scheme> make_rosenbrock(std::size_t size, const Jacobian &jacobian) {
    return std::make_unique<Rosenbrock>(size, jacobian);
}

} // namespace widthwise::sim
