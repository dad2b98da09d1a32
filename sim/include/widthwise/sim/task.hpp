// Tasks: parts of a process's body that several places await.
//
//     Task<double> service(Simulation &sim, Facility &till) { ...; co_return 3.0; }
//     const double time = co_await service(sim, till);
//
// A task's first parameter is the Simulation. It runs as a part of the process that awaits it.
#pragma once

#include "widthwise/sim/detail/first_suspension.hpp"
#include "widthwise/sim/simulation.hpp"

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace widthwise::sim {

template <class Value = void> class Task;

namespace detail {

template <class Value> struct TaskResult {
    std::optional<Value> value;
    template <class From> void return_value(From &&from) { value.emplace(std::forward<From>(from)); }
    Value take() { return std::move(*value); }
};
template <> struct TaskResult<void> {
    void return_void() noexcept {}
    void take() noexcept {}
};

/// A task's place in a chain of tasks that await each other. The chain may be of any length.
///
/// Tasks begin, and continue after an inner task, by calls. Transfer from one coroutine to the other would
/// leave a stack frame behind each time where the compiler does not optimise. After `calls_in_calls` nested
/// calls the dispatcher resumes the next task, with an empty stack.
struct TaskLink {
    static constexpr std::uint32_t calls_in_calls = 16;

    ProcessState *process = nullptr;
    std::coroutine_handle<> continuation; // the awaiting coroutine; before the await, the task itself
    TaskLink *outer = nullptr;            // the task that awaits this one
    TaskLink *inner = nullptr;            // the task that this one awaits
    void **handle;                        // where the outer task keeps this task's frame
    std::uint32_t depth = 0;              // in tasks
    bool beginning = false; // in its first step: the awaiting coroutine then continues by itself

    void stand_in(TaskLink &within, void **where) noexcept {
        outer = &within;
        within.inner = this;
        handle = where;
        depth = within.depth + 1;
    }

    /// Resumes `next`: by a call (true), or soon, from the dispatcher.
    bool go_on(std::coroutine_handle<> next) {
        if (depth % calls_in_calls != calls_in_calls - 1) [[likely]] {
            next.resume();
            return true;
        }
        process->kernel().resume_soon(next.address());
        return false;
    }

    /// Destroys the inner tasks, the innermost first. If each frame destroyed the next, the stack would have
    /// to be as deep as the chain is long.
    void destroy_inner() noexcept {
        TaskLink *last = this;
        while (last->inner != nullptr)
            last = last->inner;
        while (last != this) {
            TaskLink *next = last->outer;
            next->inner = nullptr;
            std::coroutine_handle<>::from_address(std::exchange(*last->handle, nullptr)).destroy();
            last = next;
        }
    }
};

} // namespace detail

template <class Value> class [[nodiscard]] Task {
  public:
    struct promise_type : detail::TaskResult<Value>, detail::TaskLink {
        std::exception_ptr failure;

        promise_type() noexcept { continuation = std::coroutine_handle<promise_type>::from_promise(*this); }

        template <class... Arguments>
        [[gnu::always_inline]] static void *operator new(std::size_t size, Simulation &owner,
                                                         Arguments &&...) {
            return owner.kernel().records().allocate(size);
        }
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            [[gnu::always_inline]] static void *
            operator new(std::size_t size, Object &&, Simulation &owner, Arguments &&...) {
            return owner.kernel().records().allocate(size);
        }
        static void operator delete(void *frame) noexcept { Pool::release(frame); }

        Task get_return_object() noexcept {
            return Task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        detail::FirstSuspension initial_suspend() noexcept { return {}; }
        /// The frame's address as the promise computes it; valid until the task is awaited.
        [[nodiscard]] void *frame() const noexcept { return continuation.address(); }
        /// The compiler has misplaced the frame: the task must not destroy it.
        void disown(void *) noexcept { continuation = nullptr; }
        struct Final {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                detail::TaskLink &link = ended.promise();
                if (!link.beginning)
                    link.go_on(link.continuation); // which destroys the ended task
            }
            void await_resume() const noexcept {}
        };
        Final final_suspend() noexcept { return {}; }
        void unhandled_exception() noexcept { failure = std::current_exception(); }
        ProcessState &process_state() noexcept { return *process; }
    };

    Task(Task &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task &operator=(Task &&) = delete;
    ~Task() {
        if (handle_ && handle_.promise().continuation) // unless its frame is misplaced
            handle_.destroy();
    }

    struct Run {
        std::coroutine_handle<promise_type> handle;
        explicit Run(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
        Run(Run &&other) noexcept : handle(std::exchange(other.handle, {})) {}
        Run &operator=(Run &&) = delete;
        ~Run() {
            if (!handle)
                return;
            if (handle.promise().inner != nullptr) [[unlikely]]
                handle.promise().destroy_inner();
            handle.destroy();
        }
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class Parent> bool await_suspend(std::coroutine_handle<Parent> parent) {
            ProcessState &process = parent.promise().process_state();
            if (!handle) [[unlikely]]
                detail::Kernel::refuse_second_await("a task", process);
            promise_type &promise = handle.promise();
            promise.process = &process;
            promise.continuation = parent;
            if constexpr (std::is_base_of_v<detail::TaskLink, Parent>)
                promise.stand_in(parent.promise(), reinterpret_cast<void **>(&handle));
            promise.beginning = true;
            const bool begun = promise.go_on(handle);
            promise.beginning = false;
            return !begun || !handle.done();
        }
        Value await_resume() {
            promise_type &promise = handle.promise();
            if (promise.outer != nullptr)
                promise.outer->inner = nullptr;
            if (promise.failure)
                std::rethrow_exception(promise.failure);
            return promise.take();
        }
    };
    Run operator co_await() &&noexcept { return Run(std::exchange(handle_, {})); }

  private:
    explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

} // namespace widthwise::sim
