// The numbers of the tableaus as constants: what the engine unrolls, and what tableaus() shows.
//
// They are the methods' definitions, as published. tests/tableaus_test.cpp holds every one of them against
// the order conditions of all rooted trees: exactly where they are fractions.
#pragma once

#include "widthwise/sim/ode.hpp"

namespace widthwise::sim::tableau_data {

/// The order of what the step takes, and of the formula it is measured against; below the diagonal row by
/// row.
template <int S> struct Rational {
    int order;
    int embedded;
    Ratio a[S * (S - 1) / 2];
    Ratio b[S];
    Ratio embedded_weights[S];
};

template <int S> struct Decimal {
    int order;
    int embedded;
    double a[S * (S - 1) / 2];
    double b[S];
    double error[S];
};

template <int S> struct Coefficients {
    int order;
    int embedded;
    double a[S * (S - 1) / 2];
    double b[S];
    double error[S];
    double c[S];

    /// The last stage is the derivative at the new state: its row is the step's own weights.
    [[nodiscard]] constexpr bool first_same_as_last() const {
        for (int i = 0; i < S - 1; ++i)
            if (a[(S - 1) * (S - 2) / 2 + i] != b[i])
                return false;
        return b[S - 1] == 0.0;
    }
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
    Coefficients<S> to{from.order, from.embedded, {}, {}, {}, {}};
    for (int i = 0; i < S * (S - 1) / 2; ++i)
        to.a[i] = static_cast<double>(from.a[i].n) / static_cast<double>(from.a[i].d);
    for (int i = 0; i < S; ++i) {
        const Ratio b = from.b[i];
        const Ratio e = from.embedded_weights[i];
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
    Coefficients<S> to{from.order, from.embedded, {}, {}, {}, {}};
    for (int i = 0; i < S * (S - 1) / 2; ++i)
        to.a[i] = from.a[i];
    for (int i = 0; i < S; ++i) {
        to.b[i] = from.b[i];
        to.error[i] = from.error[i];
    }
    sum_rows(to);
    return to;
}

inline constexpr Rational<2> euler_data = {1,
                                           2,
                                           {
                                               {1, 1},
                                           },
                                           {{1, 1}, {0, 1}},
                                           {{1, 2}, {1, 2}}};

inline constexpr Rational<6> rke_data = {4,
                                         5,
                                         {
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

inline constexpr Rational<4> rkf3_data = {3,
                                          2,
                                          {
                                              {1, 4},
                                              {-189, 800},
                                              {729, 800},
                                              {214, 891},
                                              {1, 33},
                                              {650, 891},
                                          },
                                          {{41, 162}, {0, 1}, {800, 1053}, {-1, 78}},
                                          {{214, 891}, {1, 33}, {650, 891}, {0, 1}}};

inline constexpr Rational<6> rkf5_data = {
    5,
    4,
    {
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

inline constexpr Rational<13> rkf8_data = {
    8,
    7,
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

inline constexpr Decimal<7> tsit5_data = {5,
                                          4,
                                          {
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
                                          {-0.001780011052225777, -0.0008164344596567469,
                                           0.007880878010261995, -0.1447110071732629, 0.5823571654525552,
                                           -0.45808210592918697, 0.015151515151515152}};

inline constexpr Decimal<10> vern7_data = {
    7,
    6,
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

inline constexpr Decimal<13> vern8_data = {
    8,
    7,
    {
        0.05,
        -0.0069931640625,
        0.1135556640625,
        0.0399609375,
        0.0,
        0.1198828125,
        0.36139756280045754,
        0.0,
        -1.3415240667004928,
        1.3701265039000352,
        0.049047202797202795,
        0.0,
        0.0,
        0.23509720422144048,
        0.18085559298135673,
        0.06169289044289044,
        0.0,
        0.0,
        0.11236568314640277,
        -0.03885046071451367,
        0.01979188712522046,
        -1.767630240222327,
        0.0,
        0.0,
        -62.5,
        -6.061889377376669,
        5.6508231982227635,
        65.62169641937624,
        -1.1809450665549708,
        0.0,
        0.0,
        -41.50473441114321,
        -4.434438319103725,
        4.260408188586133,
        43.75364022446172,
        0.00787142548991231,
        -1.2814059994414884,
        0.0,
        0.0,
        -45.047139960139866,
        -4.731362069449577,
        4.514967016593808,
        47.44909557172985,
        0.010592282971116612,
        -0.0057468422638446166,
        -1.7244701342624853,
        0.0,
        0.0,
        -60.92349008483054,
        -5.951518376222393,
        5.556523730698456,
        63.98301198033305,
        0.014642028250414961,
        0.06460408772358203,
        -0.0793032316900888,
        -3.301622667747079,
        0.0,
        0.0,
        -118.01127235975251,
        -10.141422388456112,
        9.139311332232058,
        123.37594282840426,
        4.62324437887458,
        -3.3832777380682018,
        4.527592100324618,
        -5.828495485811623,
        -3.039515033766309,
        0.0,
        0.0,
        -109.26086808941763,
        -9.290642497400293,
        8.43050498176491,
        114.20100103783314,
        -0.9637271342145479,
        -5.0348840888021895,
        5.958130824002923,
        0.0,
        0.0,
    },
    {0.04427989419007951, 0.0, 0.0, 0.0, 0.0, 0.3541049391724449, 0.2479692154956438, -15.694202038838084,
     25.084064965558564, -31.738367786260277, 22.938283273988784, -0.2361324633071542, 0.0},
    {-3.2721039010281375e-05, 0.0, 0.0, 0.0, 0.0, -0.0005046250618777704, 0.0001211723589784759,
     -20.142336771313868, 5.2371785994398286, -8.156744408794658, 22.938283273988784, -0.2361324633071542,
     0.36016794372897754}};

/// What the engine unrolls.
template <Method M> inline constexpr auto numbers = nullptr;
template <> inline constexpr auto numbers<Method::euler> = rounded(euler_data);
template <> inline constexpr auto numbers<Method::rke> = rounded(rke_data);
template <> inline constexpr auto numbers<Method::rkf3> = rounded(rkf3_data);
template <> inline constexpr auto numbers<Method::rkf5> = rounded(rkf5_data);
template <> inline constexpr auto numbers<Method::rkf8> = rounded(rkf8_data);
template <> inline constexpr auto numbers<Method::tsit5> = rounded(tsit5_data);
template <> inline constexpr auto numbers<Method::vern7> = rounded(vern7_data);
template <> inline constexpr auto numbers<Method::vern8> = rounded(vern8_data);

} // namespace widthwise::sim::tableau_data
