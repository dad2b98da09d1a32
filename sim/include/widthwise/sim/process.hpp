// Processes: what a model's author writes, and what `co_await` means inside.
//
//     Process customer(Simulation &sim, Facility &till) {
//         co_await till.seize();
//         co_await wait(exponential(sim.random(), 3.0));
//         till.release();
//     }
//
// A process's first parameter is its Simulation: its frame comes from there. Parameters are copied into the
// frame. References stay references: what they refer to must outlive the process, so never pass a temporary
// to a reference parameter. A lambda with captures must outlive the process, too.
#pragma once

#include "widthwise/sim/awaitable.hpp"
#include "widthwise/sim/detail/first_suspension.hpp"
#include "widthwise/sim/simulation.hpp"
#include "widthwise/sim/task.hpp"

#include <any>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace widthwise::sim {

/// Thrown by a wait that ProcessRef::interrupt() ended.
class Interrupted : public std::exception {
  public:
    explicit Interrupted(std::any cause) : cause_(std::move(cause)) {}
    [[nodiscard]] const char *what() const noexcept override { return "the wait was interrupted"; }
    /// The argument of interrupt().
    [[nodiscard]] const std::any &cause() const noexcept { return cause_; }

  private:
    std::any cause_;
};

/// `co_await wait(delay)`: continues `delay` later. A negative delay throws TimeBackwards, NaN or infinity
/// BadTime. It is awaited once, where it is made; a second await throws WrongState.
class [[nodiscard]] Wait {
  public:
    explicit Wait(double delay) noexcept : delay_(delay) {}
    [[nodiscard]] double delay() const noexcept { return delay_; }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Promise> handle) {
        ProcessState &process = handle.promise().process_state();
        const double delay = delay_;
        begun_ = detail::Kernel::begun_wait | reinterpret_cast<std::uintptr_t>(&process);
        return process.kernel().wait(process, delay, handle.address());
    }
    void await_resume() {
        const auto address = static_cast<std::uintptr_t>(begun_ & ~detail::Kernel::begun_wait);
        detail::Kernel::after_wait(*reinterpret_cast<ProcessState *>(address));
    }

  private:
    union {
        double delay_;        // before the wait begins
        std::uint64_t begun_; // from then on: a NaN that holds the process's address
    };
};
inline Wait wait(double delay) noexcept { return Wait(delay); }

/// `co_await passivate()`: continues after ProcessRef::activate().
class [[nodiscard]] Passivate {
  public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise> bool await_suspend(std::coroutine_handle<Promise> handle) {
        if (process_ != nullptr) [[unlikely]]
            detail::Kernel::refuse_second_await("the wait for an activation",
                                                handle.promise().process_state());
        process_ = &handle.promise().process_state();
        detail::Kernel::need_no_unwinding(*process_);
        process_->place = Place::Passive;
        return process_->kernel().suspend(*process_, handle.address());
    }
    void await_resume() const { detail::Kernel::after_wait(*process_); }

  private:
    ProcessState *process_ = nullptr;
};
inline Passivate passivate() noexcept { return {}; }

/// The return type of a process's body. It owns the process until the process is started, and must be
/// destroyed before the simulation.
class [[nodiscard]] Process {
  public:
    struct promise_type : ProcessState {
        template <class... Arguments> explicit promise_type(Simulation &owner, Arguments &&...) {
            begin(owner);
        }
        // The first argument of member functions and lambdas is their object.
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            promise_type(Object &&, Simulation &owner, Arguments &&...) {
            begin(owner);
        }
        ~promise_type() { kernel().retire(*this); }

        // Inlined at -O0 too: otherwise gcc warns that this template does not match the operator delete
        // below.
        template <class... Arguments>
        [[gnu::always_inline]] static void *operator new(std::size_t size, Simulation &owner,
                                                         Arguments &&...) {
            return owner.kernel().allocate_frame(size);
        }
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            [[gnu::always_inline]] static void *
            operator new(std::size_t size, Object &&, Simulation &owner, Arguments &&...) {
            return owner.kernel().allocate_frame(size);
        }
        static void operator delete(void *frame) noexcept { Pool::release(frame); }

        Process get_return_object() noexcept { return Process(*this); }
        detail::FirstSuspension initial_suspend() noexcept { return {}; }
        /// The frame's address as the promise computes it; valid until the process begins.
        [[nodiscard]] void *frame() const noexcept { return context; }
        /// The compiler has misplaced the frame. The state must not look alive to a walk over the pool.
        void disown(void *block) noexcept {
            detail::Kernel::clear_serial(block);
            static_cast<Node &>(*this) = Node();
            kind = Kind::Process;
            flags = cancelled;
            context = nullptr;
        }
        // No suspension at the end: the frame is freed at once, and the promise's destructor retires the
        // process.
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { kernel().fail(*this); }
        ProcessState &process_state() noexcept { return *this; }

      private:
        void begin(Simulation &owner) {
            kind = Kind::NewProcess;
            context = std::coroutine_handle<promise_type>::from_promise(*this).address();
            owner.kernel().enlist(*this);
        }
    };

    explicit Process(ProcessState &state) noexcept : state_(&state) { state.flags |= ProcessState::owned; }
    Process(Process &&other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Process &operator=(Process &&other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~Process();

    /// Null after release().
    [[nodiscard]] ProcessState *state() const noexcept { return state_; }
    /// Passes the process's ownership to its simulation.
    ProcessState &release() noexcept {
        state_->flags &= static_cast<std::uint8_t>(~ProcessState::owned);
        return *std::exchange(state_, nullptr);
    }

  private:
    ProcessState *state_;
};

/// `co_await join(other)`: continues when the other process has ended; at once if it has ended already.
class Join : public Awaitable<Join> {
  public:
    explicit Join(ProcessRef target) : target_(target) {}
    bool begin(ProcessState &process);
    void result() const noexcept {}

  private:
    ProcessRef target_;
    WaitQueue *wait_queue_ = nullptr; // the target's, while this waits in it
};
[[nodiscard]] inline Join join(ProcessRef target) { return Join(target); }

/// `co_await wait_until(condition)`: tests the condition now and after every event, and continues once it has
/// held: at the same time, but after what was scheduled before, which may have changed the condition again. A
/// continuous state is tested at events only; Continuous::when notices a crossing between them.
template <class Predicate> class [[nodiscard]] WaitUntil : public Awaitable<WaitUntil<Predicate>> {
  public:
    explicit WaitUntil(Predicate predicate) : predicate_(std::move(predicate)) {}
    bool begin(ProcessState &owner) {
        if (predicate_())
            return true;
        this->priority = priority_of(owner.rank);
        this->holds = [](Waiter &self) {
            return static_cast<bool>(static_cast<WaitUntil &>(self).predicate_());
        };
        this->withdraw = [](Waiter &self) {
            if (self.queued)
                self.process->kernel().remove_condition(self);
        };
        owner.kernel().add_condition(*this);
        return false;
    }
    void result() const noexcept {}

  private:
    Predicate predicate_;
};
template <class Predicate> [[nodiscard]] WaitUntil<Predicate> wait_until(Predicate predicate) {
    return WaitUntil<Predicate>(std::move(predicate));
}

} // namespace widthwise::sim
