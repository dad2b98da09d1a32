// Processes whose bodies are plain functions, on the stackful back-ends.
#pragma once

#include "widthwise/sim/awaitable.hpp"
#include "widthwise/sim/process.hpp"

#include <utility>

namespace widthwise::sim {

/// The argument of a plain function's body, in place of `co_await`.
class Self {
  public:
    explicit Self(ProcessState &state) noexcept : state_(&state) {}

    void wait(double delay) {
        detail::Kernel &kernel = state_->kernel();
        detail::Kernel::need_no_unwinding(*state_);
        kernel.schedule_process(*state_, kernel.later(delay));
        kernel.block(*state_);
        detail::Kernel::after_wait(*state_);
    }

    void passivate() {
        detail::Kernel::need_no_unwinding(*state_);
        state_->place = Place::Passive;
        state_->kernel().block(*state_);
        detail::Kernel::after_wait(*state_);
    }

    /// `self(till.seize())` for `co_await till.seize()`. The operation lives in the simulation's memory: a
    /// copied stack is not at its own addresses while the process waits.
    template <Waitable Operation> decltype(auto) operator()(Operation operation) {
        static_assert(alignof(Operation) <= Pool::alignment);
        struct Release {
            Operation *held;
            ~Release() {
                held->~Operation();
                Pool::release(held);
            }
        };
        detail::Kernel &kernel = state_->kernel();
        const Release release{new (kernel.records().allocate(sizeof(Operation)))
                                  Operation(std::move(operation))};
        if (!release.held->start(*state_))
            kernel.block(*state_);
        return release.held->finish();
    }

    [[nodiscard]] Simulation &sim() const noexcept { return state_->sim(); }
    [[nodiscard]] double now() const noexcept { return state_->kernel().now(); }
    [[nodiscard]] ProcessRef ref() const noexcept { return {state_->sim(), *state_}; }

  private:
    ProcessState *state_;
};

/// A process whose body is a plain function of `Self &`. Throws SwitchingUnavailable where processes have no
/// stacks.
template <class Body> Process function(Simulation &sim, Body body) {
    struct Frame : PlainFrame {
        explicit Frame(Body &&b) : body(std::move(b)) {}
        Body body;
    };
    detail::Kernel &kernel = sim.kernel();
    if (!kernel.has_stacks())
        throw SwitchingUnavailable(
            "a plain function cannot be a process on coroutines; choose a stackful back-end",
            sim.error_context());
    static_assert(alignof(Body) <= Pool::alignment, "a body's captures cannot be aligned to more");
    void *memory = kernel.allocate_frame(sizeof(Frame));
    Frame *frame = nullptr;
    try {
        frame = new (memory) Frame(std::move(body));
    } catch (...) {
        Pool::release(memory);
        throw;
    }
    frame->state.kind = Kind::NewProcess;
    frame->state.flags = ProcessState::plain;
    frame->invoke = [](PlainFrame &plain) {
        Self self(plain.state);
        static_cast<Frame &>(plain).body(self);
    };
    frame->dispose = [](PlainFrame &plain) noexcept {
        static_cast<Frame &>(plain).~Frame();
        Pool::release(&plain);
    };
    kernel.enlist(frame->state);
    return Process(frame->state);
}

} // namespace widthwise::sim
