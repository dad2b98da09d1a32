// References to processes and to scheduled calls. A reference does not own what it refers to, and may outlive
// it, but not the simulation.
#pragma once

#include "widthwise/sim/detail/process_state.hpp"

#include <any>
#include <cstdint>
#include <string>

namespace widthwise::sim {

/// Refers to a process. After the process's end every use but alive() and serial() throws UsedAfterEnd.
class ProcessRef {
  public:
    ProcessRef() = default;
    ProcessRef(Simulation &sim, ProcessState &state) noexcept
        : sim_(&sim), state_(&state), serial_(state.serial) {}

    /// Whether the process has not ended.
    [[nodiscard]] bool alive() const noexcept {
        return state_ != nullptr && state_->serial == serial_ &&
               (state_->flags & ProcessState::cancelled) == 0;
    }
    explicit operator bool() const noexcept { return alive(); }
    /// Wakes a passive process now, and one that waits for a time before its time.
    void activate() const;
    /// Ends the process where it waits. Its locals are destroyed and what it holds is released.
    void cancel() const;
    /// The wait of the process throws Interrupted.
    void interrupt(std::any cause = {}) const;
    [[nodiscard]] std::string name() const;
    /// Unique in its simulation, in the order of creation.
    [[nodiscard]] std::uint32_t serial() const noexcept { return serial_; }
    [[nodiscard]] Place place() const;
    /// The order among equals in time, and in the wait queues that the process joins from now on.
    void set_priority(std::int16_t priority) const;
    /// The process's record; throws UsedAfterEnd, with `operation` in its message.
    [[nodiscard]] ProcessState &state(const char *operation) const;
    friend bool operator==(const ProcessRef &, const ProcessRef &) = default;

  private:
    Simulation *sim_ = nullptr;
    ProcessState *state_ = nullptr;
    std::uint32_t serial_ = 0;
};

/// Refers to a scheduled call.
class EventRef {
  public:
    EventRef() = default;
    EventRef(Simulation &sim, EventNode &node) noexcept : sim_(&sim), node_(&node), serial_(node.serial) {}
    /// Whether the call is still scheduled.
    [[nodiscard]] bool pending() const noexcept { return node_ != nullptr && node_->serial == serial_; }
    /// Removes the call from the schedule. Throws UsedAfterEnd if it has been made or removed.
    void cancel() const;

  private:
    Simulation *sim_ = nullptr;
    EventNode *node_ = nullptr;
    std::uint32_t serial_ = 0;
};

} // namespace widthwise::sim
