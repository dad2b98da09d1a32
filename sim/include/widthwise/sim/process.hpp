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

#include <cstdint>
#include <optional>

namespace widthwise::sim {

// Awaitables learn whose they are from the awaiting coroutine's handle, so that nothing is kept beside them:
// gcc gives every temporary of an awaiting expression room of its own in the frame.

/// `co_await wait(dt)`: goes on `delay` later. Negative throws TimeBackwards, NaN or infinity BadTime. It is
/// awaited once, where it is made; the second time throws WrongState.
class [[nodiscard]] Wait {
  public:
    explicit Wait(double delay) noexcept : delay_(delay) {}
    [[nodiscard]] double delay() const noexcept { return delay_; }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Promise> handle) {
        ProcessState &process = handle.promise().process_state();
        const double delay = delay_;
        begun_ = Simulation::begun_wait | reinterpret_cast<std::uintptr_t>(&process);
        return process.sim().wait(process, delay, handle.address());
    }
    void await_resume() {
        const auto address = static_cast<std::uintptr_t>(begun_ & ~Simulation::begun_wait);
        Simulation::after_wait(*reinterpret_cast<ProcessState *>(address));
    }

  private:
    union {
        double delay_;        // before it begins
        std::uint64_t begun_; // from then on: a NaN that holds the process's address
    };
};
inline Wait wait(double delay) noexcept { return Wait(delay); }

/// `co_await passivate()`: goes on when somebody activates the process.
class [[nodiscard]] Passivate {
  public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise> bool await_suspend(std::coroutine_handle<Promise> handle) {
        if (process_ != nullptr) [[unlikely]]
            Simulation::refuse_second_await("the wait for an activation", handle.promise().process_state());
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
        belong_to(owner);
        if (self().begin(owner))
            return true;
        owner.place = Place::Waiting;
        owner.link.waiter = this;
        return false;
    }

    /// Says whose it is. Each is awaited once: what it was granted, and where it stands in line, is kept in
    /// it.
    void belong_to(ProcessState &owner) {
        if (process != nullptr) [[unlikely]]
            Simulation::refuse_second_await(shown(), owner);
        process = &owner;
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
    /// For errors.
    std::string shown() {
        if constexpr (requires { self().of(); })
            return "the wait for " + self().of().shown();
        else
            return "a wait";
    }
};

/// How a coroutine begins: suspended, once its frame has been looked at. gcc 11 and 12 put a body's first
/// variables in front of the frame, if it declares none at its outermost level and awaits in a condition
/// there (GCC's PR 106188): whoever resumes or destroys such a frame goes astray. Thrown from here, the error
/// leaves the call that made the coroutine.
struct FirstSuspension {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[gnu::always_inline]] void await_suspend(std::coroutine_handle<Promise> handle,
                                              const char *body = __builtin_FUNCTION()) const {
        if (handle.promise().frame() != handle.address()) [[unlikely]]
            refuse<Promise>(static_cast<std::byte *>(handle.address()), body);
    }
    void await_resume() const noexcept {}

  private:
    /// The promise lies somewhat further on than it should: whoever was given its coroutine lets go of it.
    template <class Promise>
    [[gnu::noinline, gnu::cold, noreturn]] static void refuse(std::byte *frame, const char *body) {
        for (std::size_t off = alignof(void *); off < 512; off += alignof(void *)) {
            const auto there = std::coroutine_handle<Promise>::from_address(frame + off);
            if (there.promise().frame() == there.address()) {
                there.promise().disown();
                break;
            }
        }
        Simulation::refuse_frame(frame, body);
    }
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
        FirstSuspension initial_suspend() noexcept { return {}; }
        /// As the promise sees it; until the process begins.
        [[nodiscard]] void *frame() const noexcept { return context; }
        /// The compiler has misplaced it. It leaves nothing where each_process() looks for one that lives.
        void disown() noexcept {
            static_cast<Node &>(*this) = Node();
            kind = Kind::Process;
            flags = doomed;
            context = nullptr;
        }
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

/// What tasks of every type have: their places in a chain of tasks in tasks, of any length.
///
/// Tasks begin, and go on when one within them has ended, by calls, and not by transfer from one to the
/// other, which without optimisation leaves its stack behind each time. After so many calls in calls the way
/// goes through the dispatcher, with an empty stack.
struct TaskLink {
    static constexpr std::uint32_t calls_in_calls = 16;

    ProcessState *process = nullptr;
    std::coroutine_handle<> continuation; // who awaits it; before that, itself
    TaskLink *outer = nullptr;            // the task that awaits it
    TaskLink *inner = nullptr;            // the task it awaits
    void **handle;                        // where the outer one keeps this one's frame
    std::uint32_t depth = 0;              // in tasks
    bool beginning = false;               // still in the first of its steps: who awaits it goes on by itself

    void stand_in(TaskLink &within, void **where) noexcept {
        outer = &within;
        within.inner = this;
        handle = where;
        depth = within.depth + 1;
    }

    /// Resumes, now (true), or soon: then everything up to the dispatcher is left.
    bool go_on(std::coroutine_handle<> next) {
        if (depth % calls_in_calls != calls_in_calls - 1) [[likely]] {
            next.resume();
            return true;
        }
        process->sim().go_on_soon(next.address());
        return false;
    }

    /// Destroys the tasks within, the innermost first: a frame that destroyed the next would need a stack as
    /// deep as the chain is long.
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

} // namespace process_detail

template <class Value> class [[nodiscard]] Task {
  public:
    struct promise_type : process_detail::TaskResult<Value>, process_detail::TaskLink {
        std::exception_ptr failure;

        promise_type() noexcept { continuation = std::coroutine_handle<promise_type>::from_promise(*this); }

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
        FirstSuspension initial_suspend() noexcept { return {}; }
        /// As the promise sees it; until somebody awaits it.
        [[nodiscard]] void *frame() const noexcept { return continuation.address(); }
        /// The compiler has misplaced it.
        void disown() noexcept { continuation = nullptr; }
        struct Final {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                process_detail::TaskLink &link = ended.promise();
                if (!link.beginning)
                    link.go_on(link.continuation); // which destroys what has ended
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
        if (handle_ && handle_.promise().continuation) // else it goes by itself
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
                Simulation::refuse_second_await("a task", process);
            promise_type &promise = handle.promise();
            promise.process = &process;
            promise.continuation = parent;
            if constexpr (std::is_base_of_v<process_detail::TaskLink, Parent>)
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
