// What processes queue for: the base of facilities, stores, queues, semaphores and barriers.
#pragma once

#include "widthwise/sim/simulation.hpp"

#include <string>
#include <string_view>

namespace widthwise::sim {

/// It registers itself for reports. A process that waits in it when it is destroyed waits for ever. Once its
/// simulation has been destroyed, it can only be destroyed, too: what asks it for a time or changes it throws
/// WrongState.
class Resource {
  public:
    Resource(Simulation &sim, std::string_view name);
    virtual ~Resource();
    Resource(const Resource &) = delete;
    Resource &operator=(const Resource &) = delete;

    [[nodiscard]] const std::string &name() const noexcept { return name_; }
    [[nodiscard]] virtual std::string report() const = 0;
    virtual void clear_statistics() = 0;
    /// The name in errors: `facility "till"`.
    [[nodiscard]] std::string shown() const { return std::string(kind()) + " \"" + name_ + '"'; }

  protected:
    friend class detail::Kernel;
    friend class Simulation;
    [[nodiscard]] virtual const char *kind() const noexcept = 0;
    /// `process` has ended: releases what it holds. False if it holds nothing.
    virtual bool forget(ProcessState &) noexcept { return false; }
    /// Throws WrongState once the simulation has been destroyed.
    [[nodiscard]] Simulation &sim() const {
        if (sim_ == nullptr) [[unlikely]]
            refuse_without_simulation();
        return *sim_;
    }
    [[nodiscard]] detail::Kernel &kernel() const { return sim().kernel(); }
    /// Only processes of the same simulation may wait here.
    void check_owner(const ProcessState &process) const {
        if (&process.sim() != sim_) [[unlikely]]
            refuse_other_simulation(process);
    }
    [[noreturn]] void refuse_other_simulation(const ProcessState &process) const;
    [[noreturn]] void refuse_without_simulation() const;

    Simulation *sim_; // null once the simulation has been destroyed
    std::string name_;
};

} // namespace widthwise::sim
