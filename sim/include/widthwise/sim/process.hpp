// Processes: what a model's author writes, and what `co_await` means inside.
//
//     Process customer(Simulation &sim, Facility &till) {
//         co_await till.seize();
//         co_await wait(exponential(sim.random(), 3.0));
//         till.release();
//     }
//
// A process's first parameter is its Simulation: its frame comes from there. Parameters are copied into the
// frame, references stay references, so what they refer to must outlive the process (never hand a temporary
// to a reference; a lambda with captures must outlive it too).
//
// Invariants: an operation that waits derives from Awaitable and lives in the frame from `begin` to `result`;
// `begin` either has what it wants (true) or stands in a line, with `withdraw` set, from where
// Simulation::grant takes it. On a stack, suspending means leaving the stack: await_suspend returns false
// when it is entered again, and the coroutine goes on without ever having been suspended.
#pragma once

#include "widthwise/sim/simulation.hpp"

#include <optional>

namespace widthwise::sim {

// Awaitables learn whose they are from the awaiting coroutine's handle, so that nothing is kept beside them:
// gcc gives every temporary of an awaiting expression room of its own in the frame.

/// `co_await wait(dt)`: goes on `delay` later. Negative throws TimeBackwards, NaN or infinity BadTime. To be
/// awaited once, where it is made.
class [[nodiscard]] Wait {
  public:
    explicit Wait(double delay) noexcept : delay_(delay) {}
    [[nodiscard]] double delay() const noexcept { return delay_; }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Promise> handle) {
        ProcessState &process = handle.promise().process_state();
        const double delay = delay_;
        process_ = &process;
        return process.sim().wait(process, delay, handle.address());
    }
    void await_resume() const { Simulation::after_wait(*process_); }

  private:
    union {
        double delay_;          // before it begins
        ProcessState *process_; // after
    };
};
inline Wait wait(double delay) noexcept { return Wait(delay); }

/// `co_await passivate()`: goes on when somebody activates the process.
class [[nodiscard]] Passivate {
  public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise> bool await_suspend(std::coroutine_handle<Promise> handle) {
        process_ = &handle.promise().process_state();
        process_->place = Place::Passive;
        return process_->sim().suspend(*process_, handle.address());
    }
    void await_resume() const { Simulation::after_wait(*process_); }

  private:
    ProcessState *process_ = nullptr;
};
inline Passivate passivate() noexcept { return {}; }

/// What every operation that waits for something other than time has.
template <class Operation>
concept Waitable = std::is_base_of_v<Waiter, Operation> &&
    requires(Operation operation, ProcessState &process) {
    { operation.begin(process) } -> std::same_as<bool>;
    operation.result();
};

/// Makes an operation with `begin` and `result` awaitable.
template <class Operation> class [[nodiscard]] Awaitable : public Waiter {
  public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise> bool await_suspend(std::coroutine_handle<Promise> handle) {
        ProcessState &owner = handle.promise().process_state();
        return !start(owner) && owner.sim().suspend(owner, handle.address());
    }
    decltype(auto) await_resume() { return finish(); }

    /// Begins; true if there is nothing to wait for.
    bool start(ProcessState &owner) {
        process = &owner;
        if (self().begin(owner))
            return true;
        owner.place = Place::Waiting;
        owner.link.waiter = this;
        return false;
    }

    decltype(auto) finish() {
        if ((process->flags & ProcessState::interrupted) != 0) [[unlikely]] {
            // Granted and interrupted before it could go on: what was granted goes back.
            give_back();
            Simulation::after_wait(*process);
        }
        granted = false; // it is the process's affair from here on
        return self().result();
    }

  protected:
    /// Undoes what was granted and not taken; for destructors of what can be undone: a process may be
    /// cancelled between the two.
    void give_back() {
        if constexpr (requires { self().undo(); })
            if (std::exchange(granted, false) && !process->sim().ending())
                self().undo();
    }

  private:
    Operation &self() noexcept { return static_cast<Operation &>(*this); }
};

/// The return type of a process's body. It owns the process until it is started.
class [[nodiscard]] Process {
  public:
    struct promise_type : ProcessState {
        template <class... Arguments> explicit promise_type(Simulation &owner, Arguments &&...) {
            begin(owner);
        }
        // Member functions and lambdas have their object in front.
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            promise_type(Object &&, Simulation &owner, Arguments &&...) {
            begin(owner);
        }
        ~promise_type() { sim().retire(*this); }

        // Inlined at -O0 too: gcc holds a template for no match of the operator delete below, and says so
        // otherwise.
        template <class... Arguments>
        [[gnu::always_inline]] static void *operator new(std::size_t size, Simulation &owner,
                                                         Arguments &&...) {
            return owner.frames().allocate(size);
        }
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            [[gnu::always_inline]] static void *
            operator new(std::size_t size, Object &&, Simulation &owner, Arguments &&...) {
            return owner.frames().allocate(size);
        }
        static void operator delete(void *frame) noexcept { Pool::release(frame); }

        Process get_return_object() noexcept { return Process(*this); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        // No suspension at the end: the frame goes at once, and the promise's destructor says good-bye.
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { sim().fail(*this); }
        ProcessState &process_state() noexcept { return *this; }

      private:
        void begin(Simulation &owner) {
            kind = Kind::NewProcess;
            context = std::coroutine_handle<promise_type>::from_promise(*this).address();
            owner.enlist(*this);
        }
    };

    explicit Process(ProcessState &state) noexcept : state_(&state) {}
    Process(Process &&other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Process &operator=(Process &&other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~Process();

    /// Null once it has been given up.
    [[nodiscard]] ProcessState *state() const noexcept { return state_; }
    /// Gives the process up to its simulation.
    ProcessState &release() noexcept { return *std::exchange(state_, nullptr); }

  private:
    ProcessState *state_;
};

/// A part of a process's story, told once and awaited from several places: `co_await part(sim, ...)`. Its
/// first parameter is the Simulation. It runs as part of the process that awaits it.
template <class Value = void> class Task;

namespace process_detail {

template <class Value> struct TaskResult {
    std::optional<Value> value;
    template <class From> void return_value(From &&from) { value.emplace(std::forward<From>(from)); }
    Value take() { return std::move(*value); }
};
template <> struct TaskResult<void> {
    void return_void() noexcept {}
    void take() noexcept {}
};

} // namespace process_detail

template <class Value> class [[nodiscard]] Task {
  public:
    struct promise_type : process_detail::TaskResult<Value> {
        ProcessState *process = nullptr;
        std::coroutine_handle<> continuation;
        std::exception_ptr failure;
        bool beginning = false; // still in the first of its steps: who awaits it goes on by itself

        template <class... Arguments>
        [[gnu::always_inline]] static void *operator new(std::size_t size, Simulation &owner,
                                                         Arguments &&...) {
            return owner.records().allocate(size);
        }
        template <class Object, class... Arguments>
        requires(!std::is_same_v<Simulation, std::remove_cvref_t<Object>>)
            [[gnu::always_inline]] static void *
            operator new(std::size_t size, Object &&, Simulation &owner, Arguments &&...) {
            return owner.records().allocate(size);
        }
        static void operator delete(void *frame) noexcept { Pool::release(frame); }

        Task get_return_object() noexcept {
            return Task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        // By calls, and not by transfer from one to the other, which without optimisation leaves its stack
        // behind each time: calls are as deep as tasks are in tasks.
        struct Final {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                if (!ended.promise().beginning)
                    ended.promise().continuation.resume(); // which destroys what has ended
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
        if (handle_)
            handle_.destroy();
    }

    struct Run {
        std::coroutine_handle<promise_type> handle;
        explicit Run(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
        Run(Run &&other) noexcept : handle(std::exchange(other.handle, {})) {}
        Run &operator=(Run &&) = delete;
        ~Run() {
            if (handle)
                handle.destroy();
        }
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class Parent> bool await_suspend(std::coroutine_handle<Parent> parent) {
            promise_type &promise = handle.promise();
            promise.process = &parent.promise().process_state();
            promise.continuation = parent;
            promise.beginning = true;
            handle.resume();
            promise.beginning = false;
            return !handle.done();
        }
        Value await_resume() {
            if (handle.promise().failure)
                std::rethrow_exception(handle.promise().failure);
            return handle.promise().take();
        }
    };
    Run operator co_await() &&noexcept { return Run(std::exchange(handle_, {})); }

  private:
    explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

/// What a plain function's body has in place of `co_await`. Only stackful back-ends run such bodies.
class Self {
  public:
    explicit Self(ProcessState &state) noexcept : state_(&state) {}

    void wait(double delay) {
        Simulation &sim = state_->sim();
        sim.schedule_process(*state_, sim.now() + delay);
        sim.block(*state_);
        Simulation::after_wait(*state_);
    }

    void passivate() {
        state_->place = Place::Passive;
        state_->sim().block(*state_);
        Simulation::after_wait(*state_);
    }

    /// `self(till.seize())` for `co_await till.seize()`. The operation lives in the simulation's memory
    /// meanwhile, because a copied stack is not where its addresses say.
    template <Waitable Operation> decltype(auto) operator()(Operation operation) {
        struct Release {
            Operation *held;
            ~Release() {
                held->~Operation();
                Pool::release(held);
            }
        };
        const Release release{new (sim().records().allocate(sizeof(Operation)))
                                  Operation(std::move(operation))};
        if (!release.held->start(*state_))
            sim().block(*state_);
        return release.held->finish();
    }

    [[nodiscard]] Simulation &sim() const noexcept { return state_->sim(); }
    [[nodiscard]] double now() const noexcept { return state_->sim().now(); }
    [[nodiscard]] ProcessRef ref() const noexcept { return {state_->sim(), *state_}; }

  private:
    ProcessState *state_;
};

/// A process whose body is a plain function of `Self &`; throws SwitchingUnavailable where processes have no
/// stacks.
template <class Body> Process function(Simulation &sim, Body body) {
    struct Frame : PlainFrame {
        explicit Frame(Body &&b) : body(std::move(b)) {}
        Body body;
    };
    if (!sim.has_stacks())
        throw SwitchingUnavailable(
            "a plain function cannot be a process on coroutines; choose a stackful back-end",
            sim.circumstance());
    auto *frame = new (sim.frames().allocate(sizeof(Frame))) Frame(std::move(body));
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
    sim.enlist(frame->state);
    return Process(frame->state);
}

/// `co_await join(other)`: goes on when the other process has ended; at once if it has already.
class Join : public Awaitable<Join> {
  public:
    explicit Join(ProcessRef target) : target_(target) {}
    bool begin(ProcessState &process);
    void result() const noexcept {}

  private:
    ProcessRef target_;
    Line *line_ = nullptr; // the target's, while this stands in it
};
[[nodiscard]] inline Join join(ProcessRef target) { return Join(target); }

/// `co_await wait_until(condition)`: tests the condition now and after every event, and goes on once it has
/// held: at the same time, but after whoever was scheduled before, who may have changed it again. What moves
/// continuously is looked at when something happens; Continuous::when notices a crossing.
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
            if (self.in_line)
                self.process->sim().remove_condition(self);
        };
        owner.sim().add_condition(*this);
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
