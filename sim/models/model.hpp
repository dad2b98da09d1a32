// The catalogue of models. Each builds itself in a simulation, runs, and returns one figure whose true value
// is known.
//
// Why: a simulation library is trusted when its results agree with theory.
// tests/models_test.cpp holds every model's answer against its reference with t-intervals over replications,
// and its trace against every back-end, event list and ABI.
#pragma once

#include "widthwise/sim/simulation.hpp"

#include <span>
#include <string_view>

namespace widthwise::sim::models {

struct Model {
    std::string_view name;
    std::string_view answers; // what the figure is
    double reference;         // its true value by theory
    std::string_view source;  // of the theory
    /// Runs for `length` (customers, or units of time, as fits) and returns the figure.
    double (*run)(Simulation &sim, double length);
    double length;       // enough for the reference's confidence interval
    double short_length; // enough for a trace to go everywhere
};

/// All models, in order of name.
std::span<const Model> catalogue();

/// Null if there is none of that name.
const Model *find(std::string_view name);

// Queues with one kind of server (queues.cpp).
double mm1(Simulation &sim, double customers);
double md1(Simulation &sim, double customers);
double mg1(Simulation &sim, double customers);
double mm3(Simulation &sim, double customers);
double mm3_loss(Simulation &sim, double customers);
double little(Simulation &sim, double customers);

// Queues with impatient customers, preemption or breakdowns (disturbed.cpp).
double impatience(Simulation &sim, double customers);
double preemption(Simulation &sim, double customers);
double breakdowns(Simulation &sim, double customers);
double repair(Simulation &sim, double time);

// Processes that depend on each other (together.cpp).
double philosophers(Simulation &sim, double time);
double rounds(Simulation &sim, double count);
double relay(Simulation &sim, double count);

// What moves continuously, alone and with processes (continuous.cpp).
double ball(Simulation &sim, double impacts);
double heating(Simulation &sim, double cycles);
double lorenz(Simulation &sim, double time);
double rc_circuit(Simulation &sim, double periods);

// What moves continuously alone (orbits.cpp).
double arenstorf(Simulation &sim, double);
double circle(Simulation &sim, double rounds);
double lotka_volterra(Simulation &sim, double time);
double three_bodies(Simulation &sim, double periods);
double van_der_pol(Simulation &sim, double);

// Wired from blocks (diagrams.cpp).
double delayed(Simulation &sim, double time);
double fuzzy_cart(Simulation &sim, double time);
double rlc_circuit(Simulation &sim, double);
double thermostat(Simulation &sim, double cycles);

// Networks (networks.cpp).
double jackson(Simulation &sim, double customers);
double packets(Simulation &sim, double time);

} // namespace widthwise::sim::models
