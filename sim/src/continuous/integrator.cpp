#include "widthwise/sim/ode.hpp"

#include "continuous/schemes.hpp"
#include "math/double_double.hpp"

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/step_control.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace widthwise::sim {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon();
/// The least error allowed: of a component that is 0 where errors are only relative. Without it 0 / 0 would
/// be its error.
constexpr double least_allowed = std::numeric_limits<double>::min();
/// The shortest step near the time 0. Its inverse is finite.
constexpr double shortest = 1e-300;

struct Row {
    std::string_view name;
    int order;
};

/// Those that are tableaus come first, in the tableaus' order.
constexpr std::array<Row, 10> methods = {{{"euler", 1},
                                          {"rke", 4},
                                          {"rkf3", 3},
                                          {"rkf5", 5},
                                          {"rkf8", 8},
                                          {"tsit5", 5},
                                          {"vern7", 7},
                                          {"vern8", 8},
                                          {"abm4", 4},
                                          {"rodas4", 4}}};

std::unique_ptr<Scheme> make_scheme(Method method, std::size_t size, const Jacobian &jacobian) {
    switch (method) {
    case Method::abm4:
        return make_adams(size);
    case Method::rodas4:
        return make_rosenbrock(size, jacobian);
    default:
        return make_runge_kutta(method, size);
    }
}

bool finite(double x) { return x - x == 0.0; }

/// Whether all are finite; the difference of what is not, from itself, is no zero.
bool all_finite(std::span<const double> values) {
    double sum = 0.0;
    for (const double x : values)
        sum += x - x;
    return sum == 0.0;
}

/// The first that is not finite, or the length.
std::size_t first_bad(std::span<const double> values) {
    return static_cast<std::size_t>(
        std::find_if(values.begin(), values.end(), [](double x) { return !finite(x); }) - values.begin());
}

std::string shown(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

} // namespace

std::string_view name_of(Method method) { return methods[static_cast<std::size_t>(method)].name; }
int order_of(Method method) { return methods[static_cast<std::size_t>(method)].order; }

void check_control(const Control &control, const ErrorContext &where) {
    const auto need = [&](const char *member, double value, bool right, const char *what) {
        if (!right)
            throw BadRequest(
                std::string("Control::") + member + " is " + shown(value) + ", but must be " + what, where);
    };
    const auto need_finite = [&](const char *member, double value) {
        need(member, value, value >= 0.0 && finite(value), "finite and not negative");
    };
    need_finite("relative", control.relative);
    need_finite("absolute", control.absolute);
    need("absolute", control.absolute, control.relative + control.absolute > 0.0,
         "positive where Control::relative is 0");
    need("absolute", control.absolute, finite(control.relative + control.absolute),
         "finite together with Control::relative");
    need_finite("step", control.step);
    need("longest", control.longest, control.longest >= 0.0, "0 or positive");
}

Integrator::Integrator(Method method, Derivative derivative, std::vector<double> initial, double start,
                       Control control, const ErrorContext &where)
    : Integrator(method, make_scheme(method, initial.size(), control.jacobian), std::move(derivative),
                 initial, start, control, where) {}

Integrator::Integrator(Method method, std::unique_ptr<Scheme> scheme, Derivative derivative,
                       std::vector<double> initial, double start, Control control, const ErrorContext &where)
    : method_(method), derivative_(std::move(derivative)), control_(std::move(control)),
      scheme_(std::move(scheme)), time_(start), last_time_(start), last_end_(start), size_(initial.size()),
      memory_(8 * size_), state_(memory_.data()), state_rest_(state_ + size_), rate_(state_rest_ + size_),
      last_state_(rate_ + size_), last_state_rest_(last_state_ + size_), last_rate_(last_state_rest_ + size_),
      increment_(last_rate_ + size_), error_(increment_ + size_), where_(where) {
    std::copy(initial.begin(), initial.end(), state_);
    std::copy(initial.begin(), initial.end(), last_state_);
    if (!finite(start))
        throw BadTime("an integrator cannot begin at " + shown(start), error_context());
    check_control(control_, error_context());
    absolute_ = std::max(control_.absolute, least_allowed);
    if (size_ == 0 || !derivative_ || scheme_ == nullptr)
        throw BadRequest("an integrator needs a state and a derivative", error_context());
    new_rate_ = scheme_->last_rate();
    share_ = 1.0 / static_cast<double>(static_cast<std::int64_t>(size_));
    if (!all_finite(state()))
        refuse_state("the state", first_bad(state()));
}

void Integrator::know_rate() {
    if (rate_known_)
        return;
    derivative_(time_, state(), all(rate_));
    ++evaluations_;
    if (!all_finite(all(rate_)))
        refuse_state("the derivative", first_bad(all(rate_)));
    rate_known_ = true;
}

/// The mean square of the components' errors, each in units of what is allowed. NaN if an increment is not
/// finite.
inline double Integrator::mean_square(const double *error, const double *increment) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < size_; ++k) {
        const double size = std::max(std::fabs(state_[k]), std::fabs(state_[k] + increment[k]));
        const double e = error[k] / (absolute_ + control_.relative * size);
        sum += e * e + (increment[k] - increment[k]);
    }
    return sum * share_;
}

/// Hairer, Norsett and Wanner I, II.4: from the sizes of the state, its derivative and its second derivative.
double Integrator::first_step(double limit) {
    std::fill_n(increment_, size_, 0.0);
    const double d0 = std::sqrt(mean_square(state_, increment_));
    const double d1 = std::sqrt(mean_square(rate_, increment_));
    const bool known = d0 >= 1e-5 && d1 >= 1e-5 && finite(d0) && finite(d1);
    double h = known ? 0.01 * d0 / d1 : 1e-6;
    h = std::min(h, limit - time_);
    for (std::size_t k = 0; k < size_; ++k)
        error_[k] = state_[k] + h * rate_[k];
    derivative_(time_ + h, all(error_), all(increment_));
    ++evaluations_;
    if (!all_finite(all(increment_)))
        return h;
    for (std::size_t k = 0; k < size_; ++k)
        error_[k] = increment_[k] - rate_[k];
    std::fill_n(increment_, size_, 0.0);
    const double most = std::max(d1, std::sqrt(mean_square(error_, increment_)) / h);
    const double wanted =
        most <= 1e-15 ? std::max(1e-6, h * 1e-3) : math::pow(0.01 / most, 1.0 / (order_of(method_) + 1));
    return finite(most) ? std::min(100.0 * h, wanted) : 1e-6 * h;
}

/// Moves by the increment. `end` is where the time stands then; NaN: by `h` on.
inline void Integrator::take(double h, double end) {
    ++steps_;
    last_time_ = time_;
    last_time_rest_ = time_rest_;
    if (end == end) {
        time_ = end;
        time_rest_ = 0.0;
    } else {
        const DoubleDouble t = two_sum(time_, h + time_rest_);
        time_ = t.hi;
        time_rest_ = t.lo;
    }
    std::swap(last_state_, state_);
    std::swap(last_state_rest_, state_rest_);
    std::swap(last_rate_, rate_);
    double off = 0.0; // NaN if the new state is not finite
    for (std::size_t k = 0; k < size_; ++k) {
        const DoubleDouble y = two_sum(last_state_[k], increment_[k] + last_state_rest_[k]);
        state_[k] = y.hi;
        state_rest_[k] = y.lo;
        off += y.hi - y.hi;
    }
    last_end_ = std::max(last_end_, time_);
    double off_rate = 0.0;
    for (std::size_t k = 0; k < new_rate_.size(); ++k) {
        rate_[k] = new_rate_[k];
        off_rate += rate_[k] - rate_[k];
    }
    rate_known_ = !new_rate_.empty() && off_rate == 0.0;
    if (off != 0.0)
        refuse_state("the state", first_bad(state()));
}

void Integrator::step(double limit) {
    if (!(limit > time_))
        return;
    know_rate();
    const bool fixed = control_.step > 0.0;
    if (fixed)
        next_ = control_.step;
    else if (next_ == 0.0)
        next_ = first_step(limit);
    double h = next_;
    if (control_.longest > 0.0)
        h = std::min(h, control_.longest);
    const double left = (limit - time_) - time_rest_;
    const double least = std::max(16.0 * unit * std::fabs(time_), shortest);
    h = std::max(h, least);
    Scheme::Start start{time_, state(), all(rate_), false};
    for (;;) {
        // No sliver is left for a last step: it would be all round-off.
        bool cut = false;
        double length = h;
        if (length >= left * (1.0 - 1e-9)) {
            length = left;
            cut = true;
        } else if (!fixed && method_ != Method::abm4 && 2.0 * length > left) {
            length = 0.5 * left;
        }
        scheme_->attempt(derivative_, start, length, all(increment_), all(error_));
        start.repeated = true;
        const double end = cut ? limit : std::numeric_limits<double>::quiet_NaN();
        if (fixed) {
            if (!all_finite(all(increment_)))
                refuse_state("the state after a step", first_bad(all(increment_)));
            if (scheme_->remembers())
                scheme_->accept(start, length);
            take(length, end);
            return;
        }
        const double square = mean_square(error_, increment_);
        if (square <= 1.0) {
            if (scheme_->remembers())
                scheme_->accept(start, length);
            double proposed = length;
            if (!keeps_length(square))
                proposed = scheme_->propose(length, std::sqrt(square), std::sqrt(before_));
            before_ = square;
            // A step that was cut short at the limit does not show the length that the error allows, unless
            // it shows that a shorter one is needed.
            next_ = length < h ? std::max(proposed, std::min(h, next_)) : proposed;
            if (refused_last_)
                next_ = std::min(next_, length);
            refused_last_ = false;
            take(length, end);
            return;
        }
        ++refused_;
        refused_last_ = true;
        h = finite(square) ? scheme_->propose(length, std::sqrt(square), 0.0) : 0.2 * length;
        if (!(h >= least)) {
            if (!all_finite(all(increment_)))
                refuse_state("the state after the shortest step", first_bad(all(increment_)));
            // Euler's increment knows the derivative at the step's beginning only, its error also that at
            // the end.
            if (!all_finite(all(error_)))
                refuse_state("the derivative after the shortest step", first_bad(all(error_)));
            throw AccuracyUnmet("method " + std::string(name_of(method_)) + " cannot keep the error below " +
                                    shown(control_.relative) + " (relative) and " + shown(control_.absolute) +
                                    " (absolute) with steps longer than " + shown(h) +
                                    "; allow more, or look for a jump in the derivative",
                                error_context());
        }
    }
}

void Integrator::advance(double to) {
    if (!finite(to))
        throw BadTime("an integrator cannot advance to " + shown(to), error_context());
    while (time_ < to)
        step(to);
}

void Integrator::interpolate(double time, std::span<double> state) {
    know_rate();
    const double h = time_ - last_time_;
    const double x = h > 0.0 ? (time - last_time_) / h : 1.0;
    const double y = 1.0 - x;
    for (std::size_t k = 0; k < size_; ++k) {
        const double rise = state_[k] - last_state_[k];
        state[k] = y * last_state_[k] + x * state_[k] +
                   x * y * (y * (h * last_rate_[k] - rise) - x * (h * rate_[k] - rise));
    }
}

void Integrator::dense(double time, std::span<double> state) {
    if (!(time >= last_time_ && time <= time_))
        throw BadTime("the state at " + shown(time) + " is not within the last step", error_context());
    const double h = (time - last_time_) - last_time_rest_;
    if (time == time_ || !(h > 0.0)) {
        std::copy_n(time == time_ ? state_ : last_state_, size_, state.data());
        return;
    }
    scheme_->attempt(derivative_, {last_time_, {last_state_, size_}, all(last_rate_), false}, h,
                     all(increment_), all(error_));
    if (!all_finite(all(increment_)))
        refuse_state("the state within the last step", first_bad(all(increment_)));
    for (std::size_t k = 0; k < size_; ++k)
        state[k] = last_state_[k] + (increment_[k] + last_state_rest_[k]);
}

void Integrator::retake(double time) {
    if (!(time >= last_time_ && time <= last_end_))
        throw BadTime("a step cannot be taken again to " + shown(time) + ", which it does not hold",
                      error_context());
    scheme_->forget();
    time_ = last_time_;
    time_rest_ = last_time_rest_;
    std::copy_n(last_state_, size_, state_);
    std::copy_n(last_state_rest_, size_, state_rest_);
    std::copy_n(last_rate_, size_, rate_);
    rate_known_ = true;
    const double h = (time - time_) - time_rest_;
    if (!(h > 0.0))
        return;
    --steps_;
    scheme_->attempt(derivative_, {time_, state(), all(rate_), false}, h, all(increment_), all(error_));
    take(h, time);
}

void Integrator::set(std::size_t component, double value) {
    if (component >= size_)
        throw BadRequest("component " + std::to_string(component) + " of a state of " +
                             std::to_string(size_) + " was set",
                         error_context());
    if (!finite(value))
        throw BadState("component " + std::to_string(component) + " of a state was set to " + shown(value),
                       error_context());
    state_[component] = value;
    state_rest_[component] = 0.0;
    rate_known_ = false;
    next_ = 0.0;
    before_ = 0.0;
    scheme_->forget();
    last_time_ = last_end_ = time_; // nothing to look back at beyond the jump
    std::copy_n(state_, size_, last_state_);
}

void Integrator::refuse_state(std::string_view what, std::size_t component) const {
    const double value = what == "the derivative" ? rate_[component] : state_[component];
    throw BadState(std::string(what) + " is " + (finite(value) ? "not finite" : shown(value)) +
                       " in component " + std::to_string(component),
                   error_context());
}

ErrorContext Integrator::error_context() const {
    ErrorContext where = where_;
    where.time = time_;
    return where;
}

} // namespace widthwise::sim
