// Continuous models as diagrams of blocks, or as expressions: what is wired is what is computed.
//
//     Diagram d(sim);
//     Signal x = d.integrator(1.0), v = d.integrator(0.0);
//     d.connect(x, v);
//     d.connect(v, -4.0 * x - 0.2 * v);
//     d.start();
//
// Why a block that switches has a mode of its own: a method's error estimate holds for smooth functions only.
// A mode lasts for whole steps; where it ends is located like any other crossing, and the next step begins
// afresh there.
//
// Invariants:
//   a block is computed after what it depends on; a circle without an integrator, a delay or a loop solver in
//   it is an error before anything moves;
//   values read between events are those of the simulation's time;
//   a delay is never asked for a time that has not been: steps are no longer than half of the shortest;
//   what a delay remembers of a step is as accurate as the step: a polynomial of the method's order, whose
//   error is held to the same tolerance, else the step is taken again;
//   where a jump comes out of a delay, a step ends. When it does, it is followed into the delays behind, so
//   that each jump that a delay holds is scheduled once.
// A diagram must outlive the run of its simulation, and not the simulation itself.
// References: the kinds of blocks are those of SIMLIB/C++ (Peringer 2007), whose names stand beside ours;
// regula falsi as Dowell and Jarratt's Illinois algorithm, BIT 11 (1971) 168-174.
#pragma once

#include "widthwise/sim/continuous.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace widthwise::sim {

class Diagram;
class Block;

/// What a block puts out. Copied freely; belongs to its diagram.
class Signal {
  public:
    /// At the simulation's time.
    [[nodiscard]] double value() const;

  private:
    friend class Diagram;
    Signal(Diagram &diagram, std::uint32_t node) noexcept : diagram_(&diagram), node_(node) {}
    Diagram *diagram_;
    std::uint32_t node_;

    friend Signal operator+(Signal a, Signal b);
    friend Signal operator-(Signal a, Signal b);
    friend Signal operator*(Signal a, Signal b);
    friend Signal operator/(Signal a, Signal b);
    friend Signal operator-(Signal a);
    friend Signal operator+(Signal a, double b);
    friend Signal operator-(Signal a, double b);
    friend Signal operator*(Signal a, double b);
    friend Signal operator/(Signal a, double b);
    friend Signal operator+(double a, Signal b);
    friend Signal operator-(double a, Signal b);
    friend Signal operator*(double a, Signal b);
    friend Signal operator/(double a, Signal b);
};

/// How a loop z = F(z) is solved: by z := F(z) (Iterations), or by looking for a zero of F(z) - z between
/// `low` and `high` (Bisect, RegulaFalsi) or near the last solution (Newton).
enum class Solving : std::uint8_t { iterations, bisect, regula_falsi, newton };

struct Loop {
    Solving method = Solving::newton;
    double low = -1.0;
    double high = 1.0;
    double tolerance = 1e-12; // of z, relative to it where it is above one
    int most = 200;           // evaluations of F allowed
};

class Diagram {
  public:
    explicit Diagram(Simulation &sim, Method method = Method::rke, Control control = {});
    ~Diagram();
    Diagram(const Diagram &) = delete;
    Diagram &operator=(const Diagram &) = delete;

    Signal constant(double value); // Constant
    Signal variable(double value); // Variable, Parameter: set() changes it
    Signal time();
    Signal function(std::function<double(double)> f, Signal x);                   // Function1
    Signal function(std::function<double(double, double)> f, Signal x, Signal y); // Function2

    static Signal combine(Signal a, Signal b, double (*f)(double, double)); // what the operators do

    Signal integrator(double initial); // its input comes by connect()
    Signal integrator(Signal input, double initial);
    /// A signal that is named before what it equals is there to connect().
    Signal wire();
    /// A signal that depends on itself; what it equals comes by connect(). Searches begin at `guess`, later
    /// at the last solution.
    Signal loop(const Loop &how, double guess = 0.0);
    /// Says what an integrator integrates, or what a wire or a loop's signal equals.
    void connect(Signal to, Signal input);

    /// x, but not beyond low and high. (Lim)
    Signal limit(Signal x, double low, double high);
    /// How far x is out of [low, high]. (Insv)
    Signal dead_zone(Signal x, double low, double high);
    /// The nearest multiple of a step. Beyond 2^51 steps: BadState. (Qntzr)
    Signal quantiser(Signal x, double step);
    /// x + high above zero, x + low below it, low <= 0 <= high: one of them is 0 where one
    /// direction has no friction. Not stiction: what holds a body must be modelled. (Frict)
    Signal friction(Signal x, double low, double high);
    /// By straight lines through points whose xs ascend, level outside. (Rline)
    Signal polyline(Signal x, std::vector<std::pair<double, double>> points);
    /// Three levels, `low`, 0, `high`: up to 0 at up_to_zero, up to high at up_to_high, back at down_to_zero
    /// and down_to_low. down_to_low <= up_to_zero <= up_to_high, down_to_low <= down_to_zero <= up_to_high.
    /// (Relay)
    struct Levels {
        double down_to_low, up_to_zero, down_to_zero, up_to_high, low, high;
    };
    Signal relay(Signal x, const Levels &levels);
    /// Two levels: `high` from where x comes up to `on`, `low` from where it comes down to `off` < `on`.
    Signal relay(Signal x, double off, double on, double low, double high);
    /// Follows slope (x - right) upwards, slope (x - left) downwards, and stands still between. (Blash)
    Signal backlash(Signal x, double left, double right, double slope = 1.0);
    /// Backlash whose output ends at low and high. (Hyst)
    Signal hysteresis(Signal x, double left, double right, double slope, double low, double high);

    /// x as it was `lag` > 0 ago; `before` as long as that was before the start. As accurate as
    /// the steps are. Jumps of blocks, of variables and of integrators that are set() pass any number of
    /// delays as jumps, located exactly; each integrator between smooths them, and after four they are not
    /// followed. In a circle of delays without an integrator, and behind it, a jump of less than a thousandth
    /// of the tolerance counts as smoothed once more by each delay. (Delay)
    Signal delay(Signal x, double lag, double before = 0.0);
    /// x one sampling ago, held in between: samplings every `period` from the start. Sampled delays of one
    /// period sample together, in whatever order they are made or wired: two in a row are x two samplings
    /// ago. (ZDelay)
    Signal z_delay(Signal x, double period, double initial = 0.0);

    /// Sorts the blocks and begins to move with the simulation's clock. Throws AlgebraicLoop, BadRequest,
    /// NoConvergence. Nothing can be added afterwards.
    void start();

    /// Changes a variable, or an integrator's state, now. Zeros that signals pass by that, and by blocks that
    /// switch because of it, are no crossings.
    void set(Signal to, double value);
    /// Calls `action(sim)` whenever x goes through zero, also where it jumps since a block switches or a jump
    /// comes out of a delay: once, after the events of that time, if it is then beyond zero. What jumps
    /// because of set(), at its time, does not cross. After start().
    void when(Signal x, Crossing crossing, std::function<void(Simulation &)> action);
    [[nodiscard]] double value(Signal x);
    /// After start().
    [[nodiscard]] Continuous &motion();

  private:
    friend class Signal;
    struct Node;
    struct Solver;
    struct History;
    struct Sampled;

    Signal add(Node node);
    Signal add_block(Signal x, std::unique_ptr<Block> block);
    [[nodiscard]] std::uint32_t own(Signal x) const;
    [[noreturn]] void refuse(const std::string &what) const;
    [[nodiscard]] std::string shown(std::uint32_t node) const;

    void sort();
    void visit(std::uint32_t node, std::vector<std::uint8_t> &marks, std::vector<std::uint32_t> &order);
    [[nodiscard]] bool depends(std::uint32_t node, std::uint32_t on, std::vector<std::uint8_t> &known) const;
    void gather(std::uint32_t node, std::vector<std::uint8_t> &seen, std::uint32_t loop) const;

    void evaluate(double t, std::span<const double> y);
    void compute(const std::vector<std::uint32_t> &order, double t, std::span<const double> y);
    void solve(Solver &solver, double t, std::span<const double> y);
    [[nodiscard]] double rate_of(std::uint32_t node, double t, std::span<const double> y);
    [[nodiscard]] double within(const Node &node, double t, std::span<const double> y);

    [[nodiscard]] double taken(const Node &node, double t) const;

    void remember(Simulation &sim);
    void settle(Simulation &sim);
    void settle_jump(Simulation &sim);
    void trace_paths();
    void jumped(std::uint32_t node, int order);
    void send(History &history, int order);
    void echo(Simulation &sim);
    void sense(double t, std::vector<double> &values);
    void write_down(double begin, double end);
    [[nodiscard]] double missed();
    bool look(Simulation &sim);
    void tick(Simulation &sim);
    void schedule_tick();

    Simulation *sim_;
    Method method_;
    Control control_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> integrators_; // by component
    std::vector<std::unique_ptr<Solver>> loops_;
    std::vector<std::unique_ptr<History>> delays_;
    std::vector<std::unique_ptr<Sampled>> samples_;
    std::vector<std::uint32_t> order_;  // of what is outside of every loop
    std::vector<std::uint32_t> blocks_; // those with modes
    std::unique_ptr<Continuous> motion_;
    std::shared_ptr<Diagram *> self_; // what is on the agenda asks here whether the diagram is still there
    std::vector<double> state_;
    std::vector<double> places_; // within a step, in which delays write down what goes in
    std::set<double> due_;       // when jumps come out of delays
    double begun_ = 0.0;         // where the present step begins
    double begun_at_ = 0.0;
};

} // namespace widthwise::sim
