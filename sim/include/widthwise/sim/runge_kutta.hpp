// Explicit Runge-Kutta methods, unrolled by the compiler; with the derivative inlined if it is known by type.
//
// Why each tableau is a type: its zeros cost nothing and its sums stay in registers, two components at a
// time. Why there is `compiled` beside Integrator's own constructor: on a small system a call through
// std::function costs as much as the arithmetic of a stage. Both take the same steps, bit for bit. A sum has
// one order, that of the stages' numbers, and both components of a pair are computed alike: the bits do not
// depend on the ABI, nor on where in the state a component stands.
#pragma once

#include "widthwise/sim/ode.hpp"
#include "widthwise/sim/step_control.hpp"
#include "widthwise/sim/tableau_data.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace widthwise::sim {

/// `N` components, or as many as its constructor's argument if `N` is 0. `F` is the derivative's type; with
/// Derivative the one given to each attempt is called.
template <Method M, std::size_t N = 0, class F = Derivative> class RungeKutta final : public Scheme {
    static constexpr const auto &numbers = tableau_data::numbers<M>;
    using Numbers = std::remove_cvref_t<decltype(numbers)>;
    static constexpr int stages = static_cast<int>(std::size(numbers.b));
    static constexpr bool first_same_as_last = numbers.first_same_as_last();
    static constexpr bool fixed = N != 0;

  public:
    explicit RungeKutta(std::size_t size, F f = {}) : f_(std::move(f)), size_(size) {
        if constexpr (!fixed) {
            rates_.resize(size * stages);
            at_.resize(size);
        }
    }

    void attempt(const Derivative &f, const Start &from, double h, std::span<double> increment,
                 std::span<double> error) override {
        evaluations_ += stages - 1;
        if constexpr (fixed) {
            std::array<double, N * stages> rates; // in registers, as far as there are any
            std::array<double, N> at;
            go(rates.data(), at.data(), f, from, h, increment, error);
            if constexpr (first_same_as_last)
                std::memcpy(rates_.data(), &rates[(stages - 1) * N], N * sizeof(double));
        } else {
            go(rates_.data(), at_.data(), f, from, h, increment, error);
        }
    }

    [[nodiscard]] std::span<const double> last_rate() const override {
        if constexpr (!first_same_as_last)
            return {};
        else if constexpr (fixed)
            return rates_;
        else
            return {rates_.data() + (stages - 1) * size_, size_};
    }

    [[nodiscard]] double propose(double h, double error, double before) const override {
        return h * step_factor(error, before, std::min(numbers.order, numbers.embedded) + 1, 5.0);
    }

  private:
    using Pair = double __attribute__((vector_size(16)));

    template <class Value> static Value load(const double *from) {
        Value value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }
    template <class Value> static void store(double *to, Value value) {
        std::memcpy(to, &value, sizeof value);
    }

    [[nodiscard]] std::size_t size() const {
        if constexpr (fixed)
            return N;
        else
            return size_;
    }

    [[gnu::always_inline]] void go(double *rates, double *at, const Derivative &f, const Start &from,
                                   double h, std::span<double> increment, std::span<double> error) {
        std::memcpy(rates, from.rate.data(), size() * sizeof(double));
        [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
            (reach<I + 1>(rates, at, f, from, h), ...);
        }
        (std::make_integer_sequence<int, stages - 1>());
        each([&]<class Value>(std::size_t k) __attribute__((always_inline)) {
            store(&increment[k], h * sum<Value, &Numbers::b, 0, stages>(rates, k));
            store(&error[k], h * sum<Value, &Numbers::error, 0, stages>(rates, k));
        });
    }

    /// Calls for every component: by pairs, unless there are so few that the derivative's last stores, one
    /// double each, are still on their way when a pair of them is loaded, which waits until they have landed.
    template <class Call> [[gnu::always_inline]] void each(Call &&call) const {
        constexpr std::size_t few = 8;
        std::size_t k = 0;
        if (size() >= few)
            for (; k + 2 <= size(); k += 2)
                call.template operator()<Pair>(k);
        for (; k < size(); ++k)
            call.template operator()<double>(k);
    }

    /// Stage `I`: where it is, and the derivative there. The newest rate comes in last, by one product and
    /// one sum: all else is ready before it is.
    template <int I>
    [[gnu::always_inline]] void reach(double *rates, double *at, const Derivative &f, const Start &from,
                                      double h) {
        constexpr int row = I * (I - 1) / 2;
        const double newest = h * numbers.a[row + I - 1];
        each([&]<class Value>(std::size_t k) __attribute__((always_inline)) {
            Value to = load<Value>(&from.state[k]);
            if constexpr (I > 1)
                to += h * sum<Value, &Numbers::a, row, I - 1>(rates, k);
            if constexpr (numbers.a[row + I - 1] != 0.0)
                to += newest * load<Value>(rates + (I - 1) * size() + k);
            store(at + k, to);
        });
        const std::span<const double> state(at, size());
        const std::span<double> rate(rates + I * size(), size());
        if constexpr (std::is_same_v<F, Derivative>)
            f(from.time + numbers.c[I] * h, state, rate);
        else
            f_(from.time + numbers.c[I] * h, state, rate);
    }

    /// Of the first `Count` stages, by the weights that begin at `First` in one of the arrays of numbers.
    template <class Value, auto Weights, int First, int Count>
    [[gnu::always_inline]] Value sum(const double *rates, std::size_t k) const {
        Value total = {};
        [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) {
            const auto add = [&]<int Stage>(std::integral_constant<int, Stage>)
                __attribute__((always_inline)) {
                constexpr double weight = (numbers.*Weights)[First + Stage];
                if constexpr (weight != 0.0)
                    total += weight * load<Value>(rates + Stage * size() + k);
            };
            (add(std::integral_constant<int, J>()), ...);
        }
        (std::make_integer_sequence<int, Count>());
        return total;
    }

    F f_;
    std::size_t size_;
    // Stage by stage; with a fixed size only what last_rate() returns.
    std::conditional_t<fixed, std::array<double, fixed ? N : 1>, std::vector<double>> rates_;
    std::conditional_t<fixed, std::array<double, 0>, std::vector<double>> at_;
};

/// An integrator of `N` components by an explicit method, into which `f` (as Derivative) is compiled.
template <Method M, std::size_t N, class F>
Integrator compiled(F f, const std::array<double, N> &initial, double start = 0.0, Control control = {}) {
    return Integrator(M, std::make_unique<RungeKutta<M, N, F>>(N, f), Derivative(f),
                      {initial.begin(), initial.end()}, start, std::move(control));
}

} // namespace widthwise::sim
