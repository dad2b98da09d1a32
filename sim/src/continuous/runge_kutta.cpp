#include "widthwise/sim/runge_kutta.hpp"

#include "continuous/schemes.hpp"

namespace widthwise::sim {

std::unique_ptr<Scheme> make_runge_kutta(Method method, std::size_t size) {
    switch (method) {
    case Method::euler:
        return std::make_unique<RungeKutta<Method::euler>>(size);
    case Method::rke:
        return std::make_unique<RungeKutta<Method::rke>>(size);
    case Method::rkf3:
        return std::make_unique<RungeKutta<Method::rkf3>>(size);
    case Method::rkf5:
        return std::make_unique<RungeKutta<Method::rkf5>>(size);
    case Method::rkf8:
        return std::make_unique<RungeKutta<Method::rkf8>>(size);
    case Method::tsit5:
        return std::make_unique<RungeKutta<Method::tsit5>>(size);
    case Method::vern7:
        return std::make_unique<RungeKutta<Method::vern7>>(size);
    default:
        return std::make_unique<RungeKutta<Method::vern8>>(size);
    }
}

} // namespace widthwise::sim
