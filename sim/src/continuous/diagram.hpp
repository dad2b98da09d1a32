// What a diagram is made of.
#pragma once

#include "widthwise/sim/blocks.hpp"

#include "continuous/block_modes.hpp"

#include <array>
#include <deque>
#include <limits>

namespace widthwise::sim {

enum class Part : std::uint8_t {
    constant,
    variable,
    time,
    operation,
    function,
    integrator,
    wire,
    loop,
    block,
    delay,
    sampled
};

constexpr const char *kind_name(Part kind) {
    constexpr const char *names[] = {"constant", "variable",   "time",         "operation",
                                     "function", "integrator", "wire",         "loop",
                                     "block",    "delay",      "sampled delay"};
    return names[static_cast<int>(kind)];
}

struct Diagram::Node {
    Part kind;
    std::array<std::uint32_t, 2> input = {};
    int inputs = 0;
    double value = 0.0;
    std::size_t index = 0; // among the integrators, loops, delays or samples
    double (*operation)(double, double) = nullptr;
    std::function<double(double)> one = {};
    std::function<double(double, double)> two = {};
    std::unique_ptr<Block> block = {};

    /// Whether its value is known before its input's.
    [[nodiscard]] bool remembers() const {
        return kind == Part::integrator || kind == Part::delay || kind == Part::sampled;
    }
};

struct Diagram::Solver {
    Loop how;
    std::uint32_t node;
    std::vector<std::uint32_t> body; // in order
    std::vector<std::uint32_t> needs = {};
};

/// A delay's input, step by step: its values at the places of Diagram::places_ within each.
struct Diagram::History {
    struct Step {
        double begin = 0.0;
        double end = 0.0;
        std::vector<double> values = {};
    };
    /// A jump of what goes in, or several so close that they come out at one time.
    struct Jump {
        double first; // when they went in
        double last;
        double out; // where a step ends
        int order;  // the lowest derivative that jumps
    };
    double lag;
    double before;
    std::uint32_t node;
    std::deque<Step> steps = {};
    Step last = {};              // the step that was taken last, as long as it may be shortened
    std::deque<Jump> jumps = {}; // those that are to come out, and the last that has
    std::vector<std::uint8_t> integrators = {}; // by node: how many, at the least, from it to here
    bool circular = false; // whether it lies in a circle of delays without an integrator, or behind one

    History(double by, double initial, std::uint32_t of) : lag(by), before(initial), node(of) {}

    /// What comes out at `t`, in a step from `begun` on.
    [[nodiscard]] double at(double t, double begun, std::span<const double> places) const;
};

struct Diagram::Sampled {
    double period;
    double held;
    double stored;
    std::uint32_t node;
    double count;      // samplings so far
    double next = 0.0; // when it is due
};

} // namespace widthwise::sim
