#include "model.hpp"

#include <array>

namespace widthwise::sim::models {
namespace {

// Rates and references: see the derivations' sources; numbers follow from the constants in each model.
constexpr std::array<Model, 28> all = {{
    {"arenstorf", "period of a satellite", 17.0652165601579625588917206249,
     "Arenstorf's orbit (Hairer, Norsett and Wanner I, II.0)", arenstorf, 1.0, 1.0},
    {"ball", "time of the last impact over its closed form", 1.0,
     "falls and bounces of a point: t1 (1 + 2 e + ... + 2 e^(n-1)), t1 = sqrt(2 h / g)", ball, 12.0, 5.0},
    {"barrier-rounds", "mean length of a round of four", 25.0 / 12.0,
     "greatest of four exponentials: 1 + 1/2 + 1/3 + 1/4", rounds, 20000.0, 200.0},
    {"breakdowns", "mean time in the system", 23.0 / 6.0,
     "M/M/1 with a server that fails (White and Christie, Operations Research 6, 1958), by its generating "
     "function",
     breakdowns, 40000.0, 300.0},
    {"circle", "radius after so many rounds", 1.0, "y'' = -y goes round a circle", circle, 1000.0, 5.0},
    {"delayed", "y' = -y(t - 1) over its closed form", 1.0,
     "the method of steps: a polynomial on each interval", delayed, 4.0, 1.5},
    {"fuzzy-cart", "where it comes to rest", 1.0, "rules and sets are symmetric about the aim", fuzzy_cart,
     60.0, 5.0},
    {"heating", "mean length of a cycle", 4.013413909243022,
     "Newton's law of cooling: 20 ln(11/9), between 19 and 21 degrees", heating, 50.0, 5.0},
    {"impatience", "share that gives up", 0.31303528549933135, "Erlang A with one server: p0 = 2 / (e^2 - 1)",
     impatience, 40000.0, 300.0},
    {"jackson", "mean time in the network", 35.0 / 9.0 + 30.0 / 7.0,
     "Jackson, Operations Research 5, 1957: rho = 35/44, 15/22, 15/22", jackson, 40000.0, 200.0},
    {"little", "L over lambda W", 1.0,
     "Little, Operations Research 9, 1961; an identity for a run that begins and ends empty", little, 20000.0,
     300.0},
    {"lorenz", "rate at which volumes shrink", 41.0 / 3.0,
     "Liouville's formula: the trace of the Jacobian, sigma + 1 + beta", lorenz, 1.0, 0.5},
    {"lotka-volterra", "what stays over what it was", 1.0, "Volterra 1926: x - ln x + y - ln y is constant",
     lotka_volterra, 100.0, 5.0},
    {"md1", "mean time in the system", 2.4, "Pollaczek and Khinchine, rho = 0.8, no variance", md1, 40000.0,
     300.0},
    {"mg1", "mean time in the system", 3.2, "Pollaczek and Khinchine, rho = 0.8, squared variation 1/2", mg1,
     40000.0, 300.0},
    {"mm1", "mean time in the system", 4.0, "1 / (mu - lambda)", mm1, 40000.0, 300.0},
    {"mm3", "mean wait", 11.52 / 17.8 / 0.25, "Erlang C with 2.4 erlangs on 3 servers", mm3, 40000.0, 300.0},
    {"mm3-loss", "share lost", 2.304 / 8.584, "Erlang B with 2.4 erlangs on 3 lines", mm3_loss, 40000.0,
     300.0},
    {"packets", "mean delay", 512.0 / 63.0,
     "each link M/M/1 at 1/2 (Kleinrock 1964; product form), 256/63 links on average", packets, 2000.0, 6.0},
    {"philosophers", "most that eat at once", 2.0, "two neighbours share a fork: five seats feed two",
     philosophers, 2000.0, 60.0},
    {"preemption", "mean time of the unimportant", 100.0 / 21.0,
     "two classes, preemptive resume (White and Christie 1958): 1/0.7 + 0.7/(0.7 0.3)", preemption, 40000.0,
     300.0},
    {"rc-circuit", "highest voltage under a square wave", 0.7310585786300049,
     "charging and discharging through RC for one RC each: 1 / (1 + 1/e)", rc_circuit, 15.0, 3.0},
    {"relay", "mean time of a relay", 4.0, "four legs of mean 1", relay, 5000.0, 60.0},
    {"repair", "mean number working", 12.552 / 3.5104, "M/M/1 with five customers (machine interference)",
     repair, 60000.0, 400.0},
    {"rlc-circuit", "highest voltage after a step", 1.486396675070711,
     "the overshoot of a damped oscillation: 1 + exp(-pi a / w), a = R / 2 L, w^2 = 1 / L C - a^2",
     rlc_circuit, 1.0, 1.0},
    {"thermostat", "mean length of a cycle", 4.013413909243022,
     "Newton's law of cooling: 20 ln(11/9), between 19 and 21 degrees", thermostat, 50.0, 5.0},
    {"three-bodies", "energy over what it was", 1.0,
     "the figure of eight (Chenciner and Montgomery, Annals of Mathematics 152, 2000; Simo's numbers)",
     three_bodies, 10.0, 1.0},
    {"van-der-pol", "y at t = 2, mu = 1e6", 1.706167732170483, "Hairer and Wanner II, IV.10 (VDPOL)",
     van_der_pol, 1.0, 1.0},
}};

} // namespace

std::span<const Model> catalogue() { return all; }

const Model *find(std::string_view name) {
    for (const Model &model : all)
        if (model.name == name)
            return &model;
    return nullptr;
}

} // namespace widthwise::sim::models
