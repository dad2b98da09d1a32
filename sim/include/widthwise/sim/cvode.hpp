// CVODE of SUNDIALS behind the same door as an Integrator, where it is installed.
//
// Why: for large or very stiff systems its variable-order formulas are hard to beat, and it is what others'
// results are made with. What it costs: it stands on the C library's mathematics, so its bits are those of
// one ABI, and no trace may depend on it. Reference: Hindmarsh et al., ACM TOMS 31 (2005) 363-396.
#pragma once

#include "widthwise/sim/ode.hpp"

#include <memory>
#include <span>
#include <vector>

namespace widthwise::sim {

class Cvode {
  public:
    /// Whether this build has it.
    static bool available() noexcept;

    enum class Formula : std::uint8_t { bdf, adams }; // for stiff systems, and for others

    /// Of a control, the tolerances, the longest step and the Jacobian count. Throws what an Integrator
    /// throws (BadRequest, BadTime, BadState), and BadRequest where SUNDIALS was not found when this library
    /// was built.
    Cvode(Formula formula, Derivative derivative, std::vector<double> initial, double start = 0.0,
          Control control = {});
    ~Cvode();
    Cvode(const Cvode &) = delete;
    Cvode &operator=(const Cvode &) = delete;

    [[nodiscard]] double time() const noexcept;
    [[nodiscard]] std::span<const double> state() const noexcept;
    [[nodiscard]] std::uint64_t evaluations() const noexcept;
    /// Up to `to` exactly. Throws AccuracyUnmet, BadState, BadTime.
    void advance(double to);
    /// The state jumps: it begins afresh. A value that is not finite throws BadState, and the state stays.
    void set(std::size_t component, double value);

  private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
};

} // namespace widthwise::sim
