// The diagram as it is wired: nodes, what they are computed from, and in which order.
#include "continuous/diagram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace widthwise::sim {
namespace {

bool finite(double x) { return x - x == 0.0; }

double sum(double x, double y) { return x + y; }
double difference(double x, double y) { return x - y; }
double product(double x, double y) { return x * y; }
double quotient(double x, double y) { return x / y; }

} // namespace

Diagram::Diagram(Simulation &sim, Method method, Control control)
    : sim_(&sim), method_(method), control_(std::move(control)), self_(std::make_shared<Diagram *>(this)) {}

Diagram::~Diagram() { *self_ = nullptr; }

void Diagram::refuse(const std::string &what) const { throw BadRequest(what, sim_->error_context()); }

std::string Diagram::shown(std::uint32_t node) const {
    return std::string(kind_name(nodes_[node].kind)) + " (" + std::to_string(node) + ")";
}

std::uint32_t Diagram::own(Signal x) const {
    if (x.diagram_ != this)
        refuse("a signal of another diagram was wired into this one");
    return x.node_;
}

Signal Diagram::add(Node node) {
    if (motion_ != nullptr)
        refuse("a block was added to a diagram that has started");
    nodes_.push_back(std::move(node));
    return {*this, static_cast<std::uint32_t>(nodes_.size() - 1)};
}

Signal Diagram::add_block(Signal x, std::unique_ptr<Block> block) {
    Node node{Part::block, {own(x)}, 1};
    node.block = std::move(block);
    return add(std::move(node));
}

Signal Diagram::constant(double value) {
    Node node{Part::constant};
    node.value = value;
    return add(std::move(node));
}
Signal Diagram::variable(double value) {
    Node node{Part::variable};
    node.value = value;
    return add(std::move(node));
}
Signal Diagram::time() { return add(Node{Part::time}); }

Signal Diagram::function(std::function<double(double)> f, Signal x) {
    Node node{Part::function, {own(x)}, 1};
    node.one = std::move(f);
    return add(std::move(node));
}
Signal Diagram::function(std::function<double(double, double)> f, Signal x, Signal y) {
    Node node{Part::function, {own(x), own(y)}, 2};
    node.two = std::move(f);
    return add(std::move(node));
}

Signal Diagram::combine(Signal a, Signal b, double (*f)(double, double)) {
    Diagram &d = *a.diagram_;
    Node node{Part::operation, {d.own(a), d.own(b)}, 2};
    node.operation = f;
    return d.add(std::move(node));
}

Signal operator+(Signal a, Signal b) { return Diagram::combine(a, b, sum); }
Signal operator-(Signal a, Signal b) { return Diagram::combine(a, b, difference); }
Signal operator*(Signal a, Signal b) { return Diagram::combine(a, b, product); }
Signal operator/(Signal a, Signal b) { return Diagram::combine(a, b, quotient); }
Signal operator-(Signal a) { return Diagram::combine(a.diagram_->constant(0.0), a, difference); }
Signal operator+(Signal a, double b) { return a + a.diagram_->constant(b); }
Signal operator-(Signal a, double b) { return a - a.diagram_->constant(b); }
Signal operator*(Signal a, double b) { return a * a.diagram_->constant(b); }
Signal operator/(Signal a, double b) { return a / a.diagram_->constant(b); }
Signal operator+(double a, Signal b) { return b.diagram_->constant(a) + b; }
Signal operator-(double a, Signal b) { return b.diagram_->constant(a) - b; }
Signal operator*(double a, Signal b) { return b.diagram_->constant(a) * b; }
Signal operator/(double a, Signal b) { return b.diagram_->constant(a) / b; }

double Signal::value() const { return diagram_->value(*this); }

Signal Diagram::integrator(double initial) {
    Node node{Part::integrator};
    node.value = initial;
    node.index = integrators_.size();
    const Signal signal = add(std::move(node));
    integrators_.push_back(signal.node_);
    return signal;
}
Signal Diagram::integrator(Signal input, double initial) {
    const Signal signal = integrator(initial);
    connect(signal, input);
    return signal;
}

Signal Diagram::wire() { return add(Node{Part::wire}); }

Signal Diagram::loop(const Loop &how, double guess) {
    const bool bracketed = how.method == Solving::bisect || how.method == Solving::regula_falsi;
    if (!(how.tolerance > 0.0) || how.most < 2 || (bracketed && !(how.low < how.high)))
        refuse("a loop solver needs a positive tolerance, at least two evaluations and low < high");
    Node node{Part::loop};
    node.value = guess;
    node.index = loops_.size();
    const Signal signal = add(std::move(node));
    loops_.push_back(std::make_unique<Solver>(Solver{how, signal.node_, {}}));
    return signal;
}

void Diagram::connect(Signal to, Signal input) {
    Node &node = nodes_[own(to)];
    if (node.kind != Part::integrator && node.kind != Part::wire && node.kind != Part::loop)
        refuse("only integrators, wires and loops are connected afterwards, not a " + shown(to.node_));
    if (node.inputs != 0)
        refuse("the " + shown(to.node_) + " was connected twice");
    if (motion_ != nullptr)
        refuse("a diagram that has started was wired anew");
    node.input[0] = own(input);
    node.inputs = 1;
}

Signal Diagram::limit(Signal x, double low, double high) {
    if (!(low <= high))
        refuse("a limit's low end is above its high end");
    return add_block(x, make_limit(low, high));
}
Signal Diagram::dead_zone(Signal x, double low, double high) {
    if (!(low <= high))
        refuse("a dead zone's low end is above its high end");
    return add_block(x, make_dead_zone(low, high));
}
Signal Diagram::quantiser(Signal x, double step) {
    if (!(step > 0.0) || !finite(step))
        refuse("a quantiser's step must be positive");
    return add_block(x, make_quantiser(step));
}
Signal Diagram::friction(Signal x, double low, double high) {
    if (!(low <= 0.0 && high >= 0.0))
        refuse("friction must act against the movement: low <= 0 <= high");
    return add_block(x, make_friction(low, high));
}
Signal Diagram::polyline(Signal x, std::vector<std::pair<double, double>> points) {
    bool ascending = points.size() >= 2;
    for (std::size_t i = 1; i < points.size(); ++i)
        ascending = ascending && points[i - 1].first < points[i].first;
    if (!ascending)
        refuse("a polyline needs at least two points, from left to right");
    return add_block(x, make_polyline(std::move(points)));
}
Signal Diagram::relay(Signal x, const Levels &l) {
    if (!(l.down_to_low <= l.up_to_zero && l.up_to_zero <= l.up_to_high && l.down_to_low <= l.down_to_zero &&
          l.down_to_zero <= l.up_to_high))
        refuse("a relay must not switch back before it switches");
    return add_block(x, make_relay(l.down_to_low, l.up_to_zero, l.down_to_zero, l.up_to_high, l.low, l.high));
}
Signal Diagram::relay(Signal x, double off, double on, double low, double high) {
    if (!(off < on))
        refuse("a relay of two levels must switch off below where it switches on");
    return add_block(x, make_two_levels(off, on, low, high));
}
Signal Diagram::backlash(Signal x, double left, double right, double slope) {
    constexpr double far = std::numeric_limits<double>::max();
    return hysteresis(x, left, right, slope, -far, far);
}
Signal Diagram::hysteresis(Signal x, double left, double right, double slope, double low, double high) {
    if (!(left < right) || !(slope > 0.0) || !(low < high))
        refuse("hysteresis needs left < right, a positive slope and low < high");
    return add_block(x, make_hysteresis(left, right, slope, low, high));
}

Signal Diagram::delay(Signal x, double lag, double before) {
    if (!(lag > 0.0) || !finite(lag))
        refuse("a delay must be positive; what is without delay is the signal itself");
    Node node{Part::delay, {own(x)}, 1};
    node.index = delays_.size();
    const Signal signal = add(std::move(node));
    delays_.push_back(std::make_unique<History>(lag, before, signal.node_));
    return signal;
}
Signal Diagram::z_delay(Signal x, double period, double initial) {
    if (!(period > 0.0) || !finite(period))
        refuse("a sampling period must be positive");
    Node node{Part::sampled, {own(x)}, 1};
    node.value = initial;
    node.index = samples_.size();
    const Signal signal = add(std::move(node));
    samples_.push_back(std::make_unique<Sampled>(Sampled{period, initial, initial, signal.node_, 0}));
    return signal;
}

/// Whether a node's value depends on another's, through loops that were made later too (they are solved
/// within it). `known`: 1 no, 2 yes.
bool Diagram::depends(std::uint32_t node, std::uint32_t on, std::vector<std::uint8_t> &known) const {
    if (node == on)
        return true;
    if (known[node] != 0)
        return known[node] == 2;
    known[node] = 1;
    const Node &n = nodes_[node];
    if (n.remembers() || (n.kind == Part::loop && n.index < nodes_[on].index))
        return false;
    bool found = false;
    for (int i = 0; i < n.inputs; ++i)
        found = depends(n.input[i], on, known) || found;
    known[node] = found ? 2 : 1;
    return found;
}

/// Everything a loop's signal is computed from, this side of what remembers, into `seen`.
void Diagram::gather(std::uint32_t node, std::vector<std::uint8_t> &seen, std::uint32_t loop) const {
    if (seen[node] != 0)
        return;
    seen[node] = 1;
    const Node &n = nodes_[node];
    if (n.remembers() || (n.kind == Part::loop && n.index <= nodes_[loop].index))
        return;
    for (int i = 0; i < n.inputs; ++i)
        gather(n.input[i], seen, loop);
}

/// Depth first. `marks`: 1 under way, 2 done.
void Diagram::visit(std::uint32_t node, std::vector<std::uint8_t> &marks, std::vector<std::uint32_t> &order) {
    if (marks[node] == 2)
        return;
    if (marks[node] == 1)
        throw AlgebraicLoop(
            "the " + shown(node) +
                " depends on itself with nothing in between that remembers; put an integrator, a "
                "delay or a loop solver (Diagram::loop) into the circle",
            sim_->error_context());
    marks[node] = 1;
    const Node &n = nodes_[node];
    if (n.kind == Part::loop) {
        // Its solver computes its body; what the body needs from outside must be there before.
        for (const std::uint32_t outside : loops_[n.index]->needs)
            visit(outside, marks, order);
    } else if (!n.remembers()) {
        for (int i = 0; i < n.inputs; ++i)
            visit(n.input[i], marks, order);
    }
    marks[node] = 2;
    order.push_back(node);
}

void Diagram::sort() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
        if ((nodes_[i].kind == Part::integrator || nodes_[i].kind == Part::wire ||
             nodes_[i].kind == Part::loop) &&
            nodes_[i].inputs == 0)
            refuse("the " + shown(i) + " has no input; connect() it");
    std::vector<int> owner(nodes_.size(), -1); // the innermost loop whose body a node is in
    for (std::size_t l = 0; l < loops_.size(); ++l) {
        const std::uint32_t node = loops_[l]->node;
        std::vector<std::uint8_t> seen(nodes_.size());
        gather(nodes_[node].input[0], seen, node);
        for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
            if (seen[i] == 0 || i == node)
                continue;
            std::vector<std::uint8_t> known(nodes_.size());
            const Node &n = nodes_[i];
            bool in = !n.remembers() && n.kind != Part::loop && depends(i, node, known);
            if (n.kind == Part::loop && n.index > l)
                in = depends(n.input[0], node, known);
            if (in)
                owner[i] = static_cast<int>(l); // later loops lie further in
            else
                loops_[l]->needs.push_back(i);
        }
    }
    std::vector<std::uint8_t> marks(nodes_.size());
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
        visit(i, marks, order);
    for (const std::uint32_t i : order)
        (owner[i] < 0 ? order_ : loops_[static_cast<std::size_t>(owner[i])]->body).push_back(i);
}

} // namespace widthwise::sim
