// Boost.odeint's Rosenbrock method on Van der Pol's oscillator, for work_precision.cpp: apart from it because
// the uBLAS it stands on (Boost 1.74) is no C++20.
#include <boost/numeric/odeint.hpp>
#include <boost/numeric/ublas/matrix.hpp>
#include <boost/numeric/ublas/vector.hpp>

#include <cmath>
#include <cstdint>

namespace odeint = boost::numeric::odeint;
namespace ublas = boost::numeric::ublas;

/// The error at t = 2 for mu = 1e6; counts evaluations.
double odeint_van_der_pol(double tolerance, std::uint64_t &evaluations) {
    using Vector = ublas::vector<double>;
    constexpr double stiffness = 1e6;
    std::uint64_t count = 0;
    const auto f = [&count](const Vector &y, Vector &rate, double) {
        ++count;
        rate[0] = y[1];
        rate[1] = stiffness * ((1.0 - y[0] * y[0]) * y[1] - y[0]);
    };
    const auto jacobian = [](const Vector &y, ublas::matrix<double> &j, double, Vector &by_time) {
        j(0, 0) = 0.0;
        j(0, 1) = 1.0;
        j(1, 0) = stiffness * (-2.0 * y[0] * y[1] - 1.0);
        j(1, 1) = stiffness * (1.0 - y[0] * y[0]);
        by_time[0] = by_time[1] = 0.0;
    };
    Vector y(2);
    y[0] = 2.0;
    y[1] = 0.0;
    odeint::integrate_adaptive(odeint::make_controlled<odeint::rosenbrock4<double>>(tolerance, tolerance),
                               std::make_pair(f, jacobian), y, 0.0, 2.0, 1e-6);
    evaluations = count;
    return std::fabs(y[0] - 1.706167732170483) + std::fabs(y[1] + 0.8928097010247975);
}
