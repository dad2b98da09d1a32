// The base of every operation that waits for something other than time.
//
// Invariants: an operation lives in the coroutine's frame from `begin` to `result`. `begin` either has what
// it wants (true), or has put itself into a wait queue and set `withdraw`; Kernel::grant then resumes its
// process. On a stack, to suspend means to leave the stack: await_suspend returns false when the stack is
// entered again, and the coroutine continues without having been suspended.
#pragma once

#include "widthwise/sim/simulation.hpp"

#include <concepts>
#include <coroutine>
#include <string>
#include <type_traits>
#include <utility>

namespace widthwise::sim {

/// What every operation that waits for something other than time has.
template <class Operation>
concept Waitable = std::is_base_of_v<Waiter, Operation> &&
    requires(Operation operation, ProcessState &process) {
    { operation.begin(process) } -> std::same_as<bool>;
    operation.result();
};

/// Makes an operation with `begin` and `result` awaitable.
///
/// It learns its process from the awaiting coroutine's handle, and keeps nothing beside it: gcc gives every
/// temporary of an awaiting expression room of its own in the frame.
template <class Operation> class [[nodiscard]] Awaitable : public Waiter {
  public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise> bool await_suspend(std::coroutine_handle<Promise> handle) {
        ProcessState &owner = handle.promise().process_state();
        return !start(owner) && owner.kernel().suspend(owner, handle.address());
    }
    decltype(auto) await_resume() { return finish(); }

    /// Begins; true if there is nothing to wait for.
    bool start(ProcessState &owner) {
        detail::Kernel::need_no_unwinding(owner);
        belong_to(owner);
        if (self().begin(owner))
            return true;
        owner.place = Place::Waiting;
        owner.link.waiter = this;
        return false;
    }

    /// Sets its process. An operation is awaited once: it holds what it was granted and its place in the wait
    /// queue.
    void belong_to(ProcessState &owner) {
        if (process != nullptr) [[unlikely]]
            detail::Kernel::refuse_second_await(shown(), owner);
        process = &owner;
    }

    decltype(auto) finish() {
        if ((process->flags & ProcessState::interrupted) != 0) [[unlikely]] {
            // Granted, and interrupted before the process could continue: the grant is undone.
            give_back();
            detail::Kernel::after_wait(*process);
        }
        granted = false; // from here on the process releases it
        return self().result();
    }

  protected:
    /// Undoes a grant that the process has not taken. Destructors call it: a process may be cancelled between
    /// the grant and its turn.
    void give_back() {
        if constexpr (requires { self().undo(); })
            if (std::exchange(granted, false) && !process->kernel().ending())
                self().undo();
    }

  private:
    Operation &self() noexcept { return static_cast<Operation &>(*this); }
    /// The name in errors.
    std::string shown() {
        if constexpr (requires { self().of(); })
            return "the wait for " + self().of().shown();
        else
            return "a wait";
    }
};

} // namespace widthwise::sim
