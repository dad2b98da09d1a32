// Systems of first-order equations y' = f(t, y), integrated step by step.
//
// Why not only the answer at the end: a combined model needs to stop at the times of discrete events, to look
// between steps for what crosses a threshold, and to go on after the state has jumped.
//
// Invariants:
//   a step ends exactly at the limit it is given or before it; time is kept as a sum of two doubles, so that
//   a million small steps drift no more than one;
//   every accepted state has its derivative evaluated at that state, not at a predicted one;
//   nothing comes from libm: a run has the same bits in every ABI.
// References: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I (2nd ed., 1993), II.4
// (step size, first step), II.6 (Hermite); Kahan's and Neumaier's compensated sums.
#pragma once

#include "widthwise/sim/errors.hpp"
#include "widthwise/sim/tableaus.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace widthwise::sim {

/// Writes y' for (t, y); all of the state's length.
using Derivative = std::function<void(double t, std::span<const double> y, std::span<double> rate)>;

/// Writes df/dy by rows (n * n values), and df/dt (n values).
using Jacobian = std::function<void(double t, std::span<const double> y, std::span<double> by_state,
                                    std::span<double> by_time)>;

/// rodas4 is the one for stiff systems; abm4 keeps one step size as long as it can.
enum class Method { euler, rke, rkf3, rkf5, rkf8, tsit5, vern7, vern8, abm4, rodas4 };

std::string_view name_of(Method method);
/// Of the global error in the step size.
int order_of(Method method);

struct Control {
    double relative = 1e-6; // error of a step allowed, relative to the state's component
    double absolute = 1e-9; // and in its own unit; one of the two may be 0
    double step = 0.0;      // > 0: steps of this length, whatever their error; 0: chosen for accuracy
    double longest = 0.0;   // > 0: no step is longer
    Jacobian jacobian = {}; // for rodas4; differences are taken without it
};

/// What one step of a method has to do; kept apart from the choice of its length.
class Scheme {
  public:
    /// `remembers`: it uses earlier steps, and accept() must be called after each accepted one.
    explicit Scheme(bool remembers = false) noexcept : remembers_(remembers) {}
    virtual ~Scheme() = default;
    [[nodiscard]] bool remembers() const noexcept { return remembers_; }
    struct Start {
        double time;
        std::span<const double> state;
        std::span<const double> rate; // at that state
        bool repeated;                // the step before from the same state was refused
    };
    /// Writes the increment over `h`, and its estimated error.
    virtual void attempt(const Derivative &f, const Start &from, double h, std::span<double> increment,
                         std::span<double> error) = 0;
    /// The derivative at the new state, where attempts have it; empty otherwise;
    /// always in the same place.
    [[nodiscard]] virtual std::span<const double> last_rate() const { return {}; }
    /// The step is taken.
    virtual void accept(const Start &, double) {}
    /// The state has jumped: what is remembered of earlier steps does not hold.
    virtual void forget() {}
    /// The next length, for an error of 1 being just allowed; `before` is that of the accepted step before
    /// (0: there was none).
    [[nodiscard]] virtual double propose(double h, double error, double before) const = 0;
    /// By evaluations of the derivative so far.
    [[nodiscard]] std::uint64_t evaluations() const noexcept { return evaluations_; }

  protected:
    std::uint64_t evaluations_ = 0;

  private:
    bool remembers_;
};

class Integrator {
  public:
    /// Throws BadRequest for a control that allows nothing; `where` is what errors are to name.
    Integrator(Method method, Derivative derivative, std::vector<double> initial, double start = 0.0,
               Control control = {}, const ErrorContext &where = {});
    /// With another scheme; `method` gives its name and order.
    Integrator(Method method, std::unique_ptr<Scheme> scheme, Derivative derivative,
               std::vector<double> initial, double start = 0.0, Control control = {},
               const ErrorContext &where = {});

    [[nodiscard]] double time() const noexcept { return time_; }
    [[nodiscard]] std::span<const double> state() const noexcept { return {state_, size_}; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] Method method() const noexcept { return method_; }

    /// One step, which ends at `limit` at the latest; infinity is no limit. Does nothing if that is not after
    /// time(). Throws AccuracyUnmet, BadState.
    void step(double limit);
    /// Steps up to `to` exactly. Throws BadTime if that is not finite.
    void advance(double to);

    /// The state at a time within the last step, by the cubic that has values and derivatives of both ends:
    /// of fourth order.
    void interpolate(double time, std::span<double> state);
    /// The same by the method's own step from the last one's beginning to `time`: as accurate as the steps
    /// are, and it costs the evaluations of one. Throws BadTime.
    void dense(double time, std::span<double> state);
    /// Takes the last step again, so that it ends at `time`, within it as it was taken first.
    void retake(double time);

    /// The next step is no longer than this, unless steps are of one length.
    void limit_next(double length) noexcept {
        if (length < next_)
            next_ = length;
    }

    /// The state jumps: the next step begins afresh. A value that is not finite throws BadState, and the
    /// state stays as it was.
    void set(std::size_t component, double value);

    /// The beginning of the last step.
    [[nodiscard]] double last_time() const noexcept { return last_time_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
    [[nodiscard]] std::uint64_t evaluations() const noexcept { return scheme_->evaluations() + evaluations_; }

    /// Whom errors are to name; their time is always the integrator's.
    void set_error_context(const ErrorContext &where) { where_ = where; }

  private:
    void know_rate();
    [[nodiscard]] double first_step(double limit);
    [[nodiscard]] double mean_square(const double *error, const double *increment) const;
    void take(double h, double end);
    [[nodiscard]] std::span<double> all(double *values) const { return {values, size_}; }
    [[noreturn]] void refuse_state(std::string_view what, std::size_t component) const;
    [[nodiscard]] ErrorContext error_context() const;

    Method method_;
    Derivative derivative_;
    Control control_;
    std::unique_ptr<Scheme> scheme_;
    double time_;
    double time_rest_ = 0.0; // what time_ lacks
    double last_time_;
    double last_time_rest_ = 0.0;
    double last_end_;
    std::size_t size_;
    std::vector<double> memory_; // all of what follows: a step swaps pointers
    double *state_;
    double *state_rest_;
    double *rate_; // at the state, if rate_known_
    double *last_state_;
    double *last_state_rest_;
    double *last_rate_;
    double *increment_;
    double *error_;
    double absolute_ = 0.0;            // error allowed, never 0
    double share_ = 1.0;               // of a component in the mean
    std::span<const double> new_rate_; // where the scheme has it
    bool rate_known_ = false;
    double next_ = 0.0;         // length of the next step; 0: to be found
    double before_ = 0.0;       // mean square of the errors of the last accepted step; 0: there is none
    bool refused_last_ = false; // a step that follows a refused one does not grow
    std::uint64_t steps_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t evaluations_ = 0;
    ErrorContext where_;
};

} // namespace widthwise::sim
