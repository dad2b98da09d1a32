// The errors of a simulation, by type. Each names process, model time and seed.
//
// Why the seed: seed and time are enough to run the model to the same moment again. An error of a process's
// own call (a negative wait, a release without seize) is thrown inside that process, which may catch it. An
// exception that leaves a process's body is thrown by Simulation::run().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace widthwise::sim {

/// The process, model time and seed of an error.
struct ErrorContext {
    std::string process; // empty: outside of every process
    std::uint32_t serial = 0;
    double time = 0.0;
    std::uint64_t seed = 0;
};

class SimulationError : public std::runtime_error {
  public:
    SimulationError(const std::string &what, ErrorContext where);
    [[nodiscard]] const ErrorContext &where() const noexcept { return where_; }

  private:
    ErrorContext where_;
};

/// A wait or a schedule into the past.
class TimeBackwards : public SimulationError {
    using SimulationError::SimulationError;
};

/// A time that is NaN or infinite.
class BadTime : public SimulationError {
    using SimulationError::SimulationError;
};

/// A facility released by a process that does not hold it, or more left than was entered.
class ReleaseWithoutSeize : public SimulationError {
    using SimulationError::SimulationError;
};

/// A process ended while it held a facility.
class EndedWhileHolding : public SimulationError {
    using SimulationError::SimulationError;
};

/// A process or event was used after its end.
class UsedAfterEnd : public SimulationError {
    using SimulationError::SimulationError;
};

/// A process cannot do this in its present state: a running process cannot be activated, for example.
class WrongState : public SimulationError {
    using SimulationError::SimulationError;
};

/// An impossible argument, such as to enter a store with more places than its capacity.
class BadRequest : public SimulationError {
    using SimulationError::SimulationError;
};

/// More events at one time than Options::most_at_once: the clock does not advance.
class SameTimeLoop : public SimulationError {
    using SimulationError::SimulationError;
};

/// An exception left a process's body. The original is nested (std::rethrow_if_nested).
class ProcessFailed : public SimulationError, public std::nested_exception {
  public:
    ProcessFailed(const std::string &what, ErrorContext where) : SimulationError(what, std::move(where)) {}
};

/// A process on a stack of its own needed more than its size.
class StackOverflow : public SimulationError {
    using SimulationError::SimulationError;
};

/// An integrator's step became as small as time's own resolution and still missed its accuracy.
class AccuracyUnmet : public SimulationError {
    using SimulationError::SimulationError;
};

/// The blocks of a diagram depend on each other in a circle that nothing solves.
class AlgebraicLoop : public SimulationError {
    using SimulationError::SimulationError;
};

/// A search for a solution ended without one: of an algebraic loop, or of a least value.
class NoConvergence : public SimulationError {
    using SimulationError::SimulationError;
};

/// A continuous state, or its derivative, is NaN or infinite.
class BadState : public SimulationError {
    using SimulationError::SimulationError;
};

/// The compiler has misplaced a coroutine's frame, which can be neither resumed nor destroyed. Thrown where
/// the coroutine is made.
class BodyMisplaced : public SimulationError {
    using SimulationError::SimulationError;
};

/// A switching back-end is missing, or cannot allocate another stack.
class SwitchingUnavailable : public SimulationError {
    using SimulationError::SimulationError;
};

} // namespace widthwise::sim
