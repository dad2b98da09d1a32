#include "widthwise/sim/tableaus.hpp"

#include "widthwise/sim/tableau_data.hpp"

namespace widthwise::sim {
namespace {

using namespace tableau_data;

template <int S>
constexpr Tableau row(const char *name, const char *source, const Coefficients<S> &k,
                      const Rational<S> *exact = nullptr) {
    Tableau all = {name, source, k.order, k.embedded, S, k.first_same_as_last(), k.a, k.b, k.error, k.c};
    if (exact != nullptr) {
        all.exact_a = exact->a;
        all.exact_b = exact->b;
        all.exact_embedded = exact->embedded_weights;
    }
    return all;
}

constexpr Tableau all[] = {
    row("euler", "Euler, with Heun's formula as its measure; the second stage is the next step's first",
        euler_rounded, &euler_data),
    row("rke", "R. England, The Computer Journal 12 (1969) 166-170, scheme of six stages", rke_rounded,
        &rke_data),
    row("rkf3", "E. Fehlberg, NASA TR R-315 (1969), RK2(3)", rkf3_rounded, &rkf3_data),
    row("rkf5", "E. Fehlberg, NASA TR R-315 (1969), RK4(5), formula 2", rkf5_rounded, &rkf5_data),
    row("rkf8", "E. Fehlberg, NASA TR R-287 (1968), RK7(8)", rkf8_rounded, &rkf8_data),
    row("tsit5", "Ch. Tsitouras, Computers and Mathematics with Applications 62 (2011) 770-775",
        tsit5_rounded),
    row("vern7", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 7(6)",
        vern7_rounded),
    row("vern8", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 8(7)",
        vern8_rounded),
};

} // namespace

std::span<const Tableau> tableaus() { return all; }

} // namespace widthwise::sim
