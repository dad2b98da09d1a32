// One simulation: its clock, its agenda, its processes, its random stream. Nothing is global: a program may
// have many simulations, on many threads. One thread at a time may use a simulation and all that belongs to
// it.
#pragma once

#include "widthwise/sim/detail/kernel.hpp"
#include "widthwise/sim/errors.hpp"
#include "widthwise/sim/motion.hpp"
#include "widthwise/sim/options.hpp"
#include "widthwise/sim/random.hpp"
#include "widthwise/sim/references.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace widthwise::sim {

class Simulation : private detail::Kernel {
  public:
    /// Throws SwitchingUnavailable if this build lacks the back-end.
    explicit Simulation(const Options &options = {});
    ~Simulation();
    Simulation(const Simulation &) = delete;
    Simulation &operator=(const Simulation &) = delete;

    [[nodiscard]] double now() const noexcept { return Kernel::now(); }
    [[nodiscard]] std::uint64_t seed() const noexcept { return options_.seed; }
    [[nodiscard]] const Options &options() const noexcept { return options_; }

    /// The simulation's first stream. More, which never overlap it: stream(1), stream(2), ...
    Random &random() noexcept { return random_; }
    [[nodiscard]] Random stream(std::uint64_t index) const noexcept {
        return Random(options_.seed).stream(index);
    }

    /// Begins a process `delay` from now.
    ProcessRef start(Process process, std::string_view name = {}, double delay = 0.0,
                     std::int16_t priority = 0);

    /// Takes a process over without scheduling it: ProcessRef::activate() begins it.
    ProcessRef adopt(Process process, std::string_view name = {}, std::int16_t priority = 0);

    /// Calls `call()` or `call(Simulation &)` at a time, or after a delay.
    template <class Call> EventRef at(double time, Call call, std::int16_t priority = 0);
    template <class Call> EventRef after(double delay, Call call, std::int16_t priority = 0) {
        return at(later(delay), std::move(call), priority);
    }

    /// Runs until nothing is scheduled, or until stop() is called. Throws what goes wrong inside a process.
    void run();
    /// Runs every event up to and at `time`. The clock then stands at `time`, unless stop() was called.
    void run_until(double time);
    /// Runs one event. False if there is none.
    bool step();
    /// Ends run() after the present event.
    void stop() noexcept { stopped_ = attention_ = true; }

    /// The process that runs now; an empty reference between processes.
    [[nodiscard]] ProcessRef current() noexcept {
        return running() != nullptr ? ProcessRef(*this, *running()) : ProcessRef();
    }

    /// Whether processes have stacks, so that plain functions can be their bodies.
    [[nodiscard]] bool has_stacks() const noexcept { return Kernel::has_stacks(); }

    /// How many events there have been.
    [[nodiscard]] std::uint64_t events() const noexcept { return Kernel::events(); }
    /// How many processes have not ended.
    [[nodiscard]] std::size_t alive() const noexcept { return alive_; }
    /// All processes that have not ended, by serial number. After run() these are the ones that still wait.
    [[nodiscard]] std::vector<ProcessRef> processes();
    /// A hash of the event trace: of every event so far, in order, if Options::trace is set, and of the
    /// figures given to trace(). A model has one hash on every back-end, event list and ABI.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept { return hash_; }
    /// Adds a model's own figure to the event trace.
    void trace(double value) noexcept { mix(std::bit_cast<std::uint64_t>(value)); }

    /// Sets the motion that advances with the clock, in place of the one before; null removes it.
    void set_motion(Motion *motion) noexcept {
        motion_ = motion;
        attention_ = true;
    }
    [[nodiscard]] bool has_motion() const noexcept { return motion_ != nullptr; }

    /// Reports of all queues, facilities and stores, in the order of their creation.
    [[nodiscard]] std::string report() const;
    /// Ends the warm-up: clears the statistics of all queues, facilities and stores.
    void clear_statistics();

    /// Bytes taken from the system for processes and events.
    [[nodiscard]] std::size_t reserved() const noexcept {
        return frames_.reserved() + calls_.reserved() + records_.reserved();
    }

    /// Process, time and seed, as errors name them.
    [[nodiscard]] ErrorContext error_context() const { return Kernel::error_context(); }

    /// What awaitables and resources use; models do not need it.
    [[nodiscard]] detail::Kernel &kernel() noexcept { return *this; }

  private:
    friend class detail::Kernel;

    Random random_;
};

/// A scheduled call's name in errors: its own name() if it has one, else its type.
template <class Call> std::string name_of_call([[maybe_unused]] const Call &call) {
    if constexpr (requires { std::string(call.name()); }) {
        return std::string(call.name());
    } else {
        std::string_view text = __PRETTY_FUNCTION__; // "... [with Call = TYPE; ...]", "... [Call = TYPE]"
        text.remove_prefix(std::min(text.size(), text.find("Call = ") + 7));
        return std::string(text.substr(0, text.find_first_of(";]")));
    }
}

template <class Call> EventRef Simulation::at(double time, Call call, std::int16_t priority) {
    struct Record : EventNode {
        explicit Record(Call &&c) : call(std::move(c)) {}
        Call call;
    };
    static_assert(alignof(Call) <= Pool::alignment, "a call's captures cannot be aligned to more");
    void *memory = calls_.allocate(sizeof(Record));
    auto *record = new (memory) Record(std::move(call));
    record->kind = Kind::Event;
    record->serial = next_serial();
    record->invoke = [](EventNode &node, Simulation &sim) {
        // The record is freed first: the call may throw, or schedule another call into the same block.
        Call own = std::move(static_cast<Record &>(node).call);
        static_cast<Record &>(node).call.~Call();
        Pool::release(&node);
        if constexpr (std::is_invocable_v<Call &, Simulation &>)
            own(sim);
        else
            own();
    };
    record->dispose = [](EventNode &node, std::string *name) {
        if (name != nullptr) {
            *name = name_of_call(static_cast<Record &>(node).call);
            return;
        }
        static_cast<Record &>(node).call.~Call();
        Pool::release(&node);
    };
    try {
        schedule(*record, time, priority);
    } catch (...) {
        record->serial = 0;
        record->dispose(*record, nullptr);
        throw;
    }
    return EventRef(*this, *record);
}

inline Simulation &detail::Kernel::simulation() noexcept { return static_cast<Simulation &>(*this); }

inline Simulation &ProcessState::sim() const noexcept { return kernel().simulation(); }

} // namespace widthwise::sim
