#include "widthwise/sim/tableaus.hpp"

#include "widthwise/sim/tableau_data.hpp"

namespace widthwise::sim {
namespace {

using namespace tableau_data;

template <int S> constexpr Tableau row(const char *name, const char *source, const Coefficients<S> &k) {
    return {name, source, k.order, k.embedded, S, k.first_same_as_last(), k.a, k.b, k.error, k.c};
}

/// What is made of fractions.
template <int S>
constexpr Tableau row(const char *name, const char *source, const Coefficients<S> &k,
                      const Rational<S> &exact) {
    Tableau all = row(name, source, k);
    all.exact_a = exact.a;
    all.exact_b = exact.b;
    all.exact_embedded = exact.embedded_weights;
    return all;
}

constexpr Tableau all[] = {
    row("euler", "Euler, with Heun's formula as its measure; the second stage is the next step's first",
        numbers<Method::euler>, euler_data),
    row("rke", "R. England, The Computer Journal 12 (1969) 166-170, scheme of six stages",
        numbers<Method::rke>, rke_data),
    row("rkf3", "E. Fehlberg, NASA TR R-315 (1969), RK2(3)", numbers<Method::rkf3>, rkf3_data),
    row("rkf5", "E. Fehlberg, NASA TR R-315 (1969), RK4(5), formula 2", numbers<Method::rkf5>, rkf5_data),
    row("rkf8", "E. Fehlberg, NASA TR R-287 (1968), RK7(8)", numbers<Method::rkf8>, rkf8_data),
    row("tsit5", "Ch. Tsitouras, Computers and Mathematics with Applications 62 (2011) 770-775",
        numbers<Method::tsit5>),
    row("vern7", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 7(6)",
        numbers<Method::vern7>),
    row("vern8", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 8(7)",
        numbers<Method::vern8>),
};

} // namespace

std::span<const Tableau> tableaus() { return all; }

} // namespace widthwise::sim
