#include "widthwise/sim/tableaus.hpp"

// The numbers are the methods' definitions, as published. tests/tableaus_test.cpp holds every one of them
// against the order conditions of all rooted trees: exactly where they are fractions.
namespace widthwise::sim {
namespace {

template <int S> struct Rational {
    Ratio a[S * (S - 1) / 2];
    Ratio b[S];
    Ratio embedded[S];
};

template <int S> struct Decimal {
    double a[S * (S - 1) / 2];
    double b[S];
    double error[S];
};

template <int S> struct Coefficients {
    double a[S * (S - 1) / 2];
    double b[S];
    double error[S];
    double c[S];
};

/// Nodes are the sums of the rows.
template <int S> constexpr void sum_rows(Coefficients<S> &to) {
    int at = 0;
    for (int i = 0; i < S; ++i) {
        double sum = 0.0;
        for (int j = 0; j < i; ++j)
            sum += to.a[at++];
        to.c[i] = sum;
    }
}

/// A fraction is rounded once: numerators and denominators are exact as doubles.
template <int S> constexpr Coefficients<S> rounded(const Rational<S> &from) {
    Coefficients<S> to{};
    for (int i = 0; i < S * (S - 1) / 2; ++i)
        to.a[i] = static_cast<double>(from.a[i].n) / static_cast<double>(from.a[i].d);
    for (int i = 0; i < S; ++i) {
        const Ratio b = from.b[i];
        const Ratio e = from.embedded[i];
        to.b[i] = static_cast<double>(b.n) / static_cast<double>(b.d);
        to.error[i] = static_cast<double>(b.n * e.d - e.n * b.d) / static_cast<double>(b.d * e.d);
    }
    for (int i = 0, at = 0; i < S; ++i) {
        Ratio c = {0, 1};
        for (int j = 0; j < i; ++j, ++at)
            c = sum(c, from.a[at]);
        to.c[i] = static_cast<double>(c.n) / static_cast<double>(c.d);
    }
    return to;
}

template <int S> constexpr Coefficients<S> rounded(const Decimal<S> &from) {
    Coefficients<S> to{};
    for (int i = 0; i < S * (S - 1) / 2; ++i)
        to.a[i] = from.a[i];
    for (int i = 0; i < S; ++i) {
        to.b[i] = from.b[i];
        to.error[i] = from.error[i];
    }
    sum_rows(to);
    return to;
}

constexpr Rational<2> euler_data = {{
                                        {1, 1},
                                    },
                                    {{1, 1}, {0, 1}},
                                    {{1, 2}, {1, 2}}};

constexpr Rational<6> rke_data = {{
                                      {1, 2},
                                      {1, 4},
                                      {1, 4},
                                      {0, 1},
                                      {-1, 1},
                                      {2, 1},
                                      {7, 27},
                                      {10, 27},
                                      {0, 1},
                                      {1, 27},
                                      {28, 625},
                                      {-1, 5},
                                      {546, 625},
                                      {54, 625},
                                      {-378, 625},
                                  },
                                  {{1, 6}, {0, 1}, {2, 3}, {1, 6}, {0, 1}, {0, 1}},
                                  {{1, 24}, {0, 1}, {0, 1}, {5, 48}, {27, 56}, {125, 336}}};

constexpr Rational<4> rkf3_data = {{
                                       {1, 4},
                                       {-189, 800},
                                       {729, 800},
                                       {214, 891},
                                       {1, 33},
                                       {650, 891},
                                   },
                                   {{41, 162}, {0, 1}, {800, 1053}, {-1, 78}},
                                   {{214, 891}, {1, 33}, {650, 891}, {0, 1}}};

constexpr Rational<6> rkf5_data = {{
                                       {1, 4},
                                       {3, 32},
                                       {9, 32},
                                       {1932, 2197},
                                       {-7200, 2197},
                                       {7296, 2197},
                                       {439, 216},
                                       {-8, 1},
                                       {3680, 513},
                                       {-845, 4104},
                                       {-8, 27},
                                       {2, 1},
                                       {-3544, 2565},
                                       {1859, 4104},
                                       {-11, 40},
                                   },
                                   {{16, 135}, {0, 1}, {6656, 12825}, {28561, 56430}, {-9, 50}, {2, 55}},
                                   {{25, 216}, {0, 1}, {1408, 2565}, {2197, 4104}, {-1, 5}, {0, 1}}};

constexpr Rational<13> rkf8_data = {
    {
        {2, 27},      {1, 36},    {1, 12},      {1, 24},       {0, 1},     {1, 8},      {5, 12},
        {0, 1},       {-25, 16},  {25, 16},     {1, 20},       {0, 1},     {0, 1},      {1, 4},
        {1, 5},       {-25, 108}, {0, 1},       {0, 1},        {125, 108}, {-65, 27},   {125, 54},
        {31, 300},    {0, 1},     {0, 1},       {0, 1},        {61, 225},  {-2, 9},     {13, 900},
        {2, 1},       {0, 1},     {0, 1},       {-53, 6},      {704, 45},  {-107, 9},   {67, 90},
        {3, 1},       {-91, 108}, {0, 1},       {0, 1},        {23, 108},  {-976, 135}, {311, 54},
        {-19, 60},    {17, 6},    {-1, 12},     {2383, 4100},  {0, 1},     {0, 1},      {-341, 164},
        {4496, 1025}, {-301, 82}, {2133, 4100}, {45, 82},      {45, 164},  {18, 41},    {3, 205},
        {0, 1},       {0, 1},     {0, 1},       {0, 1},        {-6, 41},   {-3, 205},   {-3, 41},
        {3, 41},      {6, 41},    {0, 1},       {-1777, 4100}, {0, 1},     {0, 1},      {-341, 164},
        {4496, 1025}, {-289, 82}, {2193, 4100}, {51, 82},      {33, 164},  {12, 41},    {0, 1},
        {1, 1},
    },
    {{0, 1},
     {0, 1},
     {0, 1},
     {0, 1},
     {0, 1},
     {34, 105},
     {9, 35},
     {9, 35},
     {9, 280},
     {9, 280},
     {0, 1},
     {41, 840},
     {41, 840}},
    {{41, 840},
     {0, 1},
     {0, 1},
     {0, 1},
     {0, 1},
     {34, 105},
     {9, 35},
     {9, 35},
     {9, 280},
     {9, 280},
     {41, 840},
     {0, 1},
     {0, 1}}};

constexpr Decimal<7> tsit5_data = {{
                                       0.161,
                                       -0.008480655492356989,
                                       0.335480655492357,
                                       2.8971530571054935,
                                       -6.359448489975075,
                                       4.3622954328695815,
                                       5.325864828439257,
                                       -11.748883564062828,
                                       7.4955393428898365,
                                       -0.09249506636175525,
                                       5.86145544294642,
                                       -12.92096931784711,
                                       8.159367898576159,
                                       -0.071584973281401,
                                       -0.028269050394068383,
                                       0.09646076681806523,
                                       0.01,
                                       0.4798896504144996,
                                       1.379008574103742,
                                       -3.290069515436081,
                                       2.324710524099774,
                                   },
                                   {0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742,
                                    -3.290069515436081, 2.324710524099774, 0.0},
                                   {-0.001780011052225777, -0.0008164344596567469, 0.007880878010261995,
                                    -0.1447110071732629, 0.5823571654525552, -0.45808210592918697,
                                    0.015151515151515152}};

constexpr Decimal<10> vern7_data = {
    {
        0.005,
        -1.07679012345679,
        1.185679012345679,
        0.04083333333333333,
        0.0,
        0.1225,
        0.6389139236255726,
        0.0,
        -2.455672638223657,
        2.272258714598084,
        -2.6615773750187572,
        0.0,
        10.804513886456137,
        -8.3539146573962,
        0.820487594956657,
        6.067741434696771,
        0.0,
        -24.711273635911084,
        20.427517930788895,
        -1.9061579788166472,
        1.006172249242068,
        12.054670076253203,
        0.0,
        -49.75478495046899,
        41.142888638604674,
        -4.461760149974004,
        2.042334822239175,
        -0.09834843665406107,
        10.138146522881808,
        0.0,
        -42.6411360317175,
        35.76384003992257,
        -4.3480228403929075,
        2.0098622683770357,
        0.3487490460338272,
        -0.27143900510483127,
        -45.030072034298676,
        0.0,
        187.3272437654589,
        -154.02882369350186,
        18.56465306347536,
        -7.141809679295079,
        1.3088085781613787,
        0.0,
        0.0,
    },
    {0.04715561848627222, 0.0, 0.0, 0.25750564298434153, 0.26216653977412624, 0.15216092656738558,
     0.4939969170032485, -0.29430311714032503, 0.08131747232495111, 0.0},
    {0.002547011879931045, 0.0, 0.0, -0.00965839487279575, 0.04206470975639691, -0.0666822437469301,
     0.2650097464621281, -0.29430311714032503, 0.08131747232495111, -0.02029518466335628}};

constexpr auto euler_rounded = rounded(euler_data);
constexpr auto rke_rounded = rounded(rke_data);
constexpr auto rkf3_rounded = rounded(rkf3_data);
constexpr auto rkf5_rounded = rounded(rkf5_data);
constexpr auto rkf8_rounded = rounded(rkf8_data);
constexpr auto tsit5_rounded = rounded(tsit5_data);
constexpr auto vern7_rounded = rounded(vern7_data);

template <int S>
constexpr Tableau row(const char *name, const char *source, int order, int embedded, bool fsal,
                      const Coefficients<S> &k, const Rational<S> *exact = nullptr) {
    return {name,
            source,
            order,
            embedded,
            S,
            fsal,
            k.a,
            k.b,
            k.error,
            k.c,
            exact != nullptr ? exact->a : nullptr,
            exact != nullptr ? exact->b : nullptr,
            exact != nullptr ? exact->embedded : nullptr};
}

constexpr Tableau all[] = {
    row("euler", "Euler, with Heun's formula as its measure; the second stage is the next step's first", 1, 2,
        true, euler_rounded, &euler_data),
    row("rke", "R. England, The Computer Journal 12 (1969) 166-170, scheme of six stages", 4, 5, false,
        rke_rounded, &rke_data),
    row("rkf3", "E. Fehlberg, NASA TR R-315 (1969), RK2(3)", 3, 2, false, rkf3_rounded, &rkf3_data),
    row("rkf5", "E. Fehlberg, NASA TR R-315 (1969), RK4(5), formula 2", 5, 4, false, rkf5_rounded,
        &rkf5_data),
    row("rkf8", "E. Fehlberg, NASA TR R-287 (1968), RK7(8)", 8, 7, false, rkf8_rounded, &rkf8_data),
    row("tsit5", "Ch. Tsitouras, Computers and Mathematics with Applications 62 (2011) 770-775", 5, 4, true,
        tsit5_rounded),
    row("vern7", "J. H. Verner, Numerical Algorithms 53 (2010) 383-396, the efficient pair 7(6)", 7, 6, false,
        vern7_rounded),
};

} // namespace

std::span<const Tableau> tableaus() { return all; }

} // namespace widthwise::sim
