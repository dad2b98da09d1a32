// The kinds of methods behind an Integrator.
#pragma once

#include "widthwise/sim/ode.hpp"

namespace widthwise::sim {

std::unique_ptr<Scheme> make_runge_kutta(Method method, std::size_t size);
std::unique_ptr<Scheme> make_adams(std::size_t size);
std::unique_ptr<Scheme> make_rosenbrock(std::size_t size, const Jacobian &jacobian);

/// Throws BadRequest for a control that allows nothing.
void check_control(const Control &control, const ErrorContext &where);

} // namespace widthwise::sim
