// A simulation's beginning and end, and what models call.
#include "widthwise/sim/simulation.hpp"

#include "core/each_process.hpp"
#include "core/frames.hpp"
#include "core/number.hpp"
#include "switching/stacks.hpp"
#include "widthwise/sim/process.hpp"
#include "widthwise/sim/resource.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace widthwise::sim {
namespace {

constexpr double forever = std::numeric_limits<double>::infinity();

/// How much of a freed block ProcessRef and EventRef may still read.
constexpr std::size_t kept_of_frames = state_offset + sizeof(Node);
constexpr std::size_t kept_of_calls = sizeof(Node);

[[noreturn]] void give_up(const char *why) {
    std::fprintf(stderr, "widthwise::sim: %s\n", why);
    std::abort();
}

} // namespace

detail::Kernel::Kernel(const Options &options)
    : now_(options.start), agenda_(options.listing), counted_(events_between_checks(options)),
      until_check_(counted_), options_(options), frames_(kept_of_frames, this), calls_(kept_of_calls, this),
      records_(sizeof(void *), this) {
    if (!(options.start - options.start == 0.0))
        throw BadTime("a simulation cannot start at " + number(options.start), error_context());
    if (options.most_at_once == 0)
        throw BadRequest("Options::most_at_once is 0: nothing could happen at any time", error_context());
    if (options.switching == Switching::Coroutine)
        return;
    if (options.stack_size >
        std::numeric_limits<std::size_t>::max() / 2) // what is added to it must not wrap round
        throw BadRequest("Options::stack_size is " + std::to_string(options.stack_size) +
                             ", more than a process can have",
                         error_context());
    switcher_ = make_switcher(options.switching, options.stack_size);
    if (switcher_ == nullptr)
        throw SwitchingUnavailable(
            std::string("this build has no switching by ") + name_of(options.switching), error_context());
}

Simulation::Simulation(const Options &options) : Kernel(options), random_(options.seed) {}

Simulation::~Simulation() {
    if (running_)
        give_up("a simulation was destroyed from within its own run()");
    const auto destroy_processes = [this](bool owned) {
        for (bool found = true; std::exchange(found, false);) // destructors may start more
            each_process([&](ProcessState &process) {
                if (!owned && detail::has(process, ProcessState::owned))
                    return;
                destroy(process);
                found = true;
            });
    };
    {
        const StackWatch watch(switcher_.get());
        destroying_ = true;
        reap();
        ending_ = true;
        // A process that is owned is destroyed by its owner, which may be another process's local.
        destroy_processes(false);
    }
    while (Node *node = agenda_.pop(forever))
        if (node->kind == Kind::Event) {
            node->serial = 0;
            static_cast<EventNode *>(node)->dispose(*static_cast<EventNode *>(node), nullptr);
        }
    if (context_lost_)
        destroy_processes(true);
    each_process([](ProcessState &process) {
        if (detail::has(process, ProcessState::owned))
            give_up("a simulation was destroyed before a Process that was made in it and not started");
    });
    for (Resource *resource : resources_)
        if (resource != nullptr)
            resource->sim_ = nullptr;
}

ProcessRef Simulation::adopt(Process process, std::string_view name, std::int16_t priority) {
    return ProcessRef(*this, take_over(process, name, priority));
}

ProcessRef Simulation::start(Process process, std::string_view name, double delay, std::int16_t priority) {
    ProcessState &state = take_over(process, name, priority);
    try {
        schedule(state, later(delay), priority);
    } catch (...) {
        cancel(state);
        throw;
    }
    return ProcessRef(*this, state);
}

std::vector<ProcessRef> Simulation::processes() {
    std::vector<ProcessRef> all;
    each_process([&](ProcessState &process) { all.emplace_back(*this, process); });
    std::sort(all.begin(), all.end(),
              [](const ProcessRef &a, const ProcessRef &b) { return a.serial() < b.serial(); });
    return all;
}

void Simulation::run() { dispatch(forever, unlimited); }

void Simulation::run_until(double time) {
    if (time - time != 0.0)
        throw BadTime("cannot run until " + detail::number(time), error_context());
    if (time < now_)
        throw TimeBackwards("cannot run until " + detail::number(time), error_context());
    if (dispatch(time, unlimited) && now_ < time)
        now_ = time;
}

bool Simulation::step() {
    const auto before_step = events();
    dispatch(forever, 1);
    return events() != before_step;
}

std::string Simulation::report() const {
    std::string text;
    for (const Resource *resource : resources_)
        text += resource->report();
    return text;
}

void Simulation::clear_statistics() {
    for (Resource *resource : resources_)
        resource->clear_statistics();
}

} // namespace widthwise::sim
