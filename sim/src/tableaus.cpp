#include "widthwise/sim/tableaus.hpp"

#include "widthwise/sim/tableau_data.hpp"

namespace widthwise::sim {
namespace {

using namespace tableau_data;

template <int S>
constexpr Tableau row(const char *name, const char *source, int order, int embedded, bool fsal,
                      const Coefficients<S> &k) {
    return {name, source, order, embedded, S, fsal, k.a, k.b, k.error, k.c, nullptr, nullptr, nullptr};
}

template <int S>
constexpr Tableau row(const char *name, const char *source, int order, int embedded, bool fsal,
                      const Coefficients<S> &k, const Rational<S> &exact) {
    return {name, source, order, embedded, S, fsal, k.a, k.b, k.error, k.c, exact.a, exact.b, exact.embedded};
}

constexpr Tableau all[] = {
    row("euler", "Euler, with Heun's formula as its measure; the second stage is the next step's first", 1, 2,
        true, euler_rounded, euler_data),
    row("rke", "R. England, The Computer Journal 12 (1969) 166-170, scheme of six stages", 4, 5, false,
        rke_rounded, rke_data),
    row("rkf3", "E. Fehlberg, NASA TR R-315 (1969), RK2(3)", 3, 2, false, rkf3_rounded, rkf3_data),
    row("rkf5", "E. Fehlberg, NASA TR R-315 (1969), RK4(5), formula 2", 5, 4, false, rkf5_rounded, rkf5_data),
    row("rkf8", "E. Fehlberg, NASA TR R-287 (1968), RK7(8)", 8, 7, false, rkf8_rounded, rkf8_data),
    row("tsit5", "Ch. Tsitouras, Computers and Mathematics with Applications 62 (2011) 770-775", 5, 4, true,
        tsit5_rounded),
    row("vern7", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 7(6)", 7, 6, false,
        vern7_rounded),
    row("vern8", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 8(7)", 8, 7, false,
        vern8_rounded),
};

} // namespace

std::span<const Tableau> tableaus() { return all; }

} // namespace widthwise::sim
