// The records behind processes and scheduled calls.
//
// Why one layout for both kinds of process (coroutine and plain function): the pool of frames is walked at
// the end of a simulation, and the state must lie at the same offset in every block.
#pragma once

#include "widthwise/sim/node.hpp"
#include "widthwise/sim/pool.hpp"
#include "widthwise/sim/waiting.hpp"

#include <any>
#include <cstddef>
#include <cstdint>
#include <string>

namespace widthwise::sim {

class Simulation;

namespace detail {
class Kernel;
}

/// What only some processes have. It is kept apart, so that the other processes are smaller.
struct Details {
    std::string name;
    WaitQueue joiners;
    std::any cause; // of an interrupt that has not been thrown yet
};

/// A process's record in the simulation. It is the coroutine's promise, or lies in front of a plain
/// function's closure.
struct ProcessState : Node {
    static constexpr std::uint8_t interrupted = 1;
    static constexpr std::uint8_t unwinding = 2;
    static constexpr std::uint8_t plain = 4;
    static constexpr std::uint8_t cancelled = 8;
    static constexpr std::uint8_t held_many = 16; // `held` has wrapped around at least once
    static constexpr std::uint8_t owned = 32;     // by a Process, whose destructor refers to it

    /// The simulation, found through the memory of the process: the state needs no pointer to it.
    [[nodiscard]] Simulation &sim() const noexcept;
    [[nodiscard]] detail::Kernel &kernel() const noexcept {
        return *static_cast<detail::Kernel *>(Pool::owner_of(this));
    }

    /// Sets the coroutine to resume. It changes only where a process waits inside a Task.
    void resume_at(void *coroutine) noexcept {
        if (context != coroutine) [[unlikely]]
            context = coroutine;
    }

    void *context = nullptr; // what to resume: a coroutine's frame, or a Context of the switcher
    Details *details = nullptr;
};

/// Offset of the state in its block: after the two function pointers at the beginning of every coroutine
/// frame.
constexpr std::size_t state_offset = (2 * sizeof(void *) + alignof(Node) - 1) / alignof(Node) * alignof(Node);

/// A process whose body is a plain function, laid out as a coroutine's frame.
struct PlainFrame {
    alignas(Node) std::byte unused[state_offset];
    ProcessState state;
    void (*invoke)(PlainFrame &);
    void (*dispose)(PlainFrame &) noexcept;
};

/// Thrown through a process's stack to destroy its locals. A `catch (...)` in a process must rethrow it; the
/// next wait throws it again.
struct Unwind {};

/// A scheduled call.
struct EventNode : Node {
    void (*invoke)(EventNode &, Simulation &);
    /// Frees the record; with a `name`, writes the call's name there instead.
    void (*dispose)(EventNode &, std::string *name);
};

/// A timer inside another wait.
struct TimerNode : Node {
    Waiter *waiter = nullptr;
};

} // namespace widthwise::sim
