// What a switch costs: hot (two processes in turn), and over 30,000 processes whose frames and stacks do not
// fit the cache.
//
// Two levels: "raw" is the switch alone, there or back (a round trip divided by two), beside Boost.Context's
// fiber as its users have it; "model" is a whole event of a simulation, a wait included, on each back-end.
#include "timing.hpp"

#include "../src/switching/first_frame.hpp"

#include "widthwise/sim/process.hpp"

#include <coroutine>
#include <cstdlib>
#include <memory>
#include <vector>

#if defined(WIDTHWISE_SIM_BOOST_CONTEXT)
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#endif

using namespace widthwise::sim;

namespace {

constexpr std::size_t stack_size = 16384;

/// C++20 coroutine that does nothing but suspend.
struct Bare {
    struct promise_type {
        Bare get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::abort(); }
    };
    std::coroutine_handle<promise_type> handle;
};
Bare bare() {
    for (;;)
        co_await std::suspend_always{};
}

/// The time of a switch, there or back: `go(i)` switches to contestant `i` and is switched back from.
template <class Go> double one_way(std::size_t processes, std::size_t switches, Go go) {
    const auto round = [&] {
        for (std::size_t i = 0; i < processes; ++i)
            go(i);
    };
    round(); // each has begun
    const std::size_t rounds = switches / processes;
    const double began = bench::seconds();
    for (std::size_t i = 0; i < rounds; ++i)
        round();
    return (bench::seconds() - began) / static_cast<double>(2 * rounds * processes);
}

double raw_coroutines(std::size_t processes, std::size_t switches) {
    std::vector<Bare> all;
    for (std::size_t i = 0; i < processes; ++i)
        all.push_back(bare());
    const double time = one_way(processes, switches, [&](std::size_t i) { all[i].handle.resume(); });
    for (Bare &one : all)
        one.handle.destroy();
    return time;
}

/// Stacks of the raw switch: staggered, as the library's.
struct Stacks {
    explicit Stacks(std::size_t count) : memory(count * (stack_size + 64)) {}
    std::byte *top(std::size_t i) {
        return reinterpret_cast<std::byte *>(
            reinterpret_cast<std::uintptr_t>(memory.data() + (i + 1) * (stack_size + 64)) &
            ~std::uintptr_t{15});
    }
    std::vector<std::byte> memory;
};

void *raw_dispatcher = nullptr;

void raw_body(void *own) {
    for (;;)
        widthwise_sim_switch(static_cast<void **>(own), raw_dispatcher);
}

double raw_assembly(std::size_t processes, std::size_t switches) {
    Stacks stacks(processes);
    std::vector<void *> pointers(processes);
    for (std::size_t i = 0; i < processes; ++i) {
        auto *frame = reinterpret_cast<FirstFrame *>(stacks.top(i) - sizeof(FirstFrame));
        *frame = first_frame(&raw_body, &pointers[i]);
        pointers[i] = frame;
    }
    return one_way(processes, switches,
                   [&](std::size_t i) { widthwise_sim_switch(&raw_dispatcher, pointers[i]); });
}

#if defined(WIDTHWISE_SIM_BOOST_CONTEXT)
double raw_boost(std::size_t processes, std::size_t switches) {
    namespace ctx = boost::context;
    std::vector<ctx::fiber> all;
    for (std::size_t i = 0; i < processes; ++i)
        all.emplace_back(std::allocator_arg, ctx::fixedsize_stack(stack_size), [](ctx::fiber &&back) {
            for (;;)
                back = std::move(back).resume();
            return std::move(back);
        });
    return one_way(processes, switches, [&](std::size_t i) { all[i] = std::move(all[i]).resume(); });
}
#endif

Process waits(Simulation &, double step) {
    for (;;)
        co_await wait(step);
}

/// Cost of one event, dispatch and wait included.
double model(Switching switching, std::size_t processes, std::size_t events) {
    Options options;
    options.switching = switching;
    options.stack_size = stack_size;
    Simulation sim(options);
    for (std::size_t i = 0; i < processes; ++i)
        sim.start(waits(sim, 1.0));
    sim.run_until(2.5);
    const double rounds = static_cast<double>(events / processes + 1);
    const double began = bench::seconds();
    const auto before_run = sim.events();
    sim.run_until(2.5 + rounds);
    return (bench::seconds() - began) / static_cast<double>(sim.events() - before_run);
}

Process turns(Simulation &, std::size_t count) {
    co_await wait(1.0);
    for (std::size_t i = 0; i < count; ++i)
        co_await wait(0.0);
}

/// Cost of one event in which processes take turns at the present time: the switch through the dispatcher,
/// with no event list to sort.
double turn(Switching switching, std::size_t processes, std::size_t events) {
    Options options;
    options.switching = switching;
    options.stack_size = stack_size;
    Simulation sim(options);
    for (std::size_t i = 0; i < processes; ++i)
        sim.start(turns(sim, events / processes + 10));
    sim.run_until(0.5);
    const double began = bench::seconds();
    const auto before_run = sim.events();
    sim.run_until(1.0);
    return (bench::seconds() - began) / static_cast<double>(sim.events() - before_run);
}

void at(std::size_t processes, std::size_t switches, int rounds, const char *how) {
    std::vector<bench::Contestant> raw = {
        {"C++20 coroutine", [=] { return raw_coroutines(processes, switches); }},
        {"own assembly", [=] { return raw_assembly(processes, switches); }},
#if defined(WIDTHWISE_SIM_BOOST_CONTEXT)
        {"Boost.Context fiber", [=] { return raw_boost(processes, switches); }},
#endif
    };
    bench::compare((std::string("raw switch, one way, ") + how).c_str(), raw, rounds, 1e9, "ns");
    std::vector<bench::Contestant> in_turn = {
        {"coroutine", [=] { return turn(Switching::Coroutine, processes, switches); }},
        {"assembly", [=] { return turn(Switching::Assembly, processes, switches); }},
        {"copy", [=] { return turn(Switching::StackCopy, processes, switches); }},
        {"hot raw C++20 resume", [=] { return raw_coroutines(2, 1000000); }},
    };
    bench::compare((std::string("turn through the dispatcher, ") + how).c_str(), in_turn, rounds, 1e9, "ns");
    std::vector<bench::Contestant> models;
    for (const Switching switching : available_switching()) {
        if (switching == Switching::BoostContext || (switching == Switching::Thread && processes > 1000))
            continue;
        const std::size_t events = switching == Switching::Thread     ? 2000
                                   : switching == Switching::Ucontext ? 100000
                                                                      : switches;
        models.push_back({name_of(switching), [=] { return model(switching, processes, events); }});
    }
    for (const Switching switching : available_switching())
        if (switching == Switching::BoostContext)
            models.push_back({name_of(switching), [=] { return model(switching, processes, switches); }});
    bench::compare((std::string("event of a model, ") + how).c_str(), models, rounds, 1e9, "ns");
}

} // namespace

int main(int count, char **arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 11;
    at(2, 1000000, rounds, "2 processes");
    at(30000, 6000000, rounds, "30,000 processes");
}
