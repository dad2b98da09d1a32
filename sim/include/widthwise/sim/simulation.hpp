// One simulation: its clock, its agenda, its processes, its random stream. There is nothing global, so that
// there may be many in one program and on many threads.
//
// Why processes end through one place (`retire`) and stop through another (`destroy`): a simulation can be
// destroyed at any moment outside of run(). What has not ended by then is destroyed as if its body had been
// left by an exception, so that destructors of locals run on every back-end.
//
// Invariants:
//   the clock never runs backwards;
//   what happens next is decided by (time, priority, order of scheduling) alone, never by addresses or
//   back-ends; between two events no process runs; a cancelled process's locals are destroyed before the next
//   event.
// A simulation and all that belongs to it must be used by one thread at a time.
#pragma once

#include "widthwise/sim/agenda.hpp"
#include "widthwise/sim/errors.hpp"
#include "widthwise/sim/pool.hpp"
#include "widthwise/sim/random.hpp"
#include "widthwise/sim/switching.hpp"
#include "widthwise/sim/waiting.hpp"

#include <algorithm>
#include <any>
#include <bit>
#include <coroutine>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace widthwise::sim {

class Simulation;
class Process;
class Resource;

struct Options {
    std::uint64_t seed = 1;
    double start = 0.0; // model time at the beginning
    Switching switching = Switching::Coroutine;
    Listing listing = Listing::Automatic;
    std::size_t stack_size = 65536;          // bytes for each process, where processes have stacks
    bool trace = false;                      // whether trace_hash() takes in every event
    std::uint64_t most_at_once = 10'000'000; // events at one time, more of which are taken for a loop
};

/// What only some processes have: kept apart, so that the others are smaller.
struct Details {
    std::string name;
    Line joiners;
    std::any cause; // of an interrupt on its way
};

/// A process as the simulation sees it. It is the coroutine's promise, or stands before a plain function's
/// closure.
struct ProcessState : Node {
    static constexpr std::uint8_t interrupted = 1;
    static constexpr std::uint8_t unwinding = 2;
    static constexpr std::uint8_t plain = 4;
    static constexpr std::uint8_t doomed = 8;
    static constexpr std::uint8_t held_many = 16; // `held` has gone round at least once

    /// Every process lies in its simulation's memory, which knows whose it is: no pointer is needed for that.
    [[nodiscard]] Simulation &sim() const noexcept {
        return *static_cast<Simulation *>(Pool::owner_of(this));
    }

    /// Says where a coroutine is to be resumed. Seldom elsewhere than before: only where a process waits in a
    /// part told elsewhere (Task).
    void goes_on_at(void *coroutine) noexcept {
        if (context != coroutine) [[unlikely]]
            context = coroutine;
    }

    void *context = nullptr; // where to go on: a coroutine's frame, or a Context of the switcher
    Details *details = nullptr;
};

/// Where the state lies in its block: after the two function pointers every coroutine frame begins with.
constexpr std::size_t state_offset = (2 * sizeof(void *) + alignof(Node) - 1) / alignof(Node) * alignof(Node);

/// A body that is a plain function: laid out as a coroutine's frame, so that the pool can walk over both.
struct PlainFrame {
    alignas(Node) std::byte unused[state_offset];
    ProcessState state;
    void (*invoke)(PlainFrame &);
    void (*dispose)(PlainFrame &) noexcept;
};

/// Thrown through a process's stack to destroy its locals. Never catch it without throwing it on.
struct Unwind {};

/// Thrown inside a process whose waiting somebody interrupted.
class Interrupted : public std::exception {
  public:
    explicit Interrupted(std::any cause) : cause_(std::move(cause)) {}
    [[nodiscard]] const char *what() const noexcept override { return "the wait was interrupted"; }
    /// What the interrupter gave as its reason.
    [[nodiscard]] const std::any &cause() const noexcept { return cause_; }

  private:
    std::any cause_;
};

/// Names a process without owning it. Outlives the process (its use then throws UsedAfterEnd), not the
/// simulation.
class ProcessRef {
  public:
    ProcessRef() = default;
    ProcessRef(Simulation &sim, ProcessState &state) noexcept
        : sim_(&sim), state_(&state), serial_(state.serial) {}

    /// Whether it has not ended.
    [[nodiscard]] bool alive() const noexcept;
    explicit operator bool() const noexcept { return alive(); }
    /// Wakes a passive process now, and one that waits for a time before its time.
    void activate() const;
    /// Ends it where it waits; its locals are destroyed, what it holds is released.
    void cancel() const;
    /// Makes what it waits for throw Interrupted.
    void interrupt(std::any cause = {}) const;
    [[nodiscard]] std::string name() const;
    /// Unique in its simulation, in the order of creation.
    [[nodiscard]] std::uint32_t serial() const noexcept { return serial_; }
    [[nodiscard]] Place place() const;
    /// What orders it among equals in time, and in the lines it joins from now on.
    void set_priority(std::int16_t priority) const;
    /// The simulation's own view; throws UsedAfterEnd.
    [[nodiscard]] ProcessState &state(const char *deed) const;
    friend bool operator==(const ProcessRef &, const ProcessRef &) = default;

  private:
    Simulation *sim_ = nullptr;
    ProcessState *state_ = nullptr;
    std::uint32_t serial_ = 0;
};

/// A scheduled call.
struct EventNode : Node {
    void (*happen)(EventNode &, Simulation &);
    /// Frees it; or else, given a place for it, says what it calls.
    void (*dispose)(EventNode &, std::string *name);
};

/// What a scheduled call is called in errors: by its own name() if it has one, else by its type.
template <class Call> std::string name_of_call([[maybe_unused]] const Call &call) {
    if constexpr (requires { std::string(call.name()); }) {
        return std::string(call.name());
    } else {
        std::string_view text = __PRETTY_FUNCTION__; // "... [with Call = TYPE; ...]", "... [Call = TYPE]"
        text.remove_prefix(std::min(text.size(), text.find("Call = ") + 7));
        return std::string(text.substr(0, text.find_first_of(";]")));
    }
}

/// Names a scheduled call. Outlives it, not the simulation.
class EventRef {
  public:
    EventRef() = default;
    EventRef(Simulation &sim, EventNode &node) noexcept : sim_(&sim), node_(&node), serial_(node.serial) {}
    /// Whether it is still to come.
    [[nodiscard]] bool pending() const noexcept { return node_ != nullptr && node_->serial == serial_; }
    /// It will not happen. Throws UsedAfterEnd if it has.
    void cancel() const;

  private:
    Simulation *sim_ = nullptr;
    EventNode *node_ = nullptr;
    std::uint32_t serial_ = 0;
};

/// A timer inside of another wait.
struct TimerNode : Node {
    Waiter *waiter = nullptr;
};

/// Something that moves while the clock advances between events: the continuous half of a combined model.
class Motion {
  public:
    virtual ~Motion() = default;
    /// Moves from `from` towards `to`; returns the time reached, earlier than `to` only if something was
    /// scheduled for it.
    virtual double advance(Simulation &sim, double from, double to) = 0;
};

class Simulation {
  public:
    /// Throws SwitchingUnavailable if this build lacks the back-end.
    explicit Simulation(const Options &options = {});
    ~Simulation();
    Simulation(const Simulation &) = delete;
    Simulation &operator=(const Simulation &) = delete;

    [[nodiscard]] double now() const noexcept { return now_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return options_.seed; }
    [[nodiscard]] const Options &options() const noexcept { return options_; }

    /// The simulation's first stream. More, which never overlap it: stream(1), stream(2), ...
    Random &random() noexcept { return random_; }
    [[nodiscard]] Random stream(std::uint64_t index) const noexcept {
        return Random(options_.seed).stream(index);
    }

    /// Begins a process `delay` from now.
    ProcessRef start(Process process, std::string_view name = {}, double delay = 0.0,
                     std::int16_t priority = 0);

    /// Makes it known and nameable, but passive: ProcessRef::activate() begins it.
    ProcessRef adopt(Process process, std::string_view name = {}, std::int16_t priority = 0);

    /// Calls `call()` or `call(Simulation &)` at a time, or after a delay.
    template <class Call> EventRef at(double time, Call call, std::int16_t priority = 0);
    template <class Call> EventRef after(double delay, Call call, std::int16_t priority = 0) {
        return at(now_ + delay, std::move(call), priority);
    }

    /// Until nothing is scheduled, or stop() is called. What goes wrong inside a process is thrown from here.
    void run();
    /// Everything up to and at `time`; the clock then stands at `time`, unless stop() was called.
    void run_until(double time);
    /// One event. False if there is none.
    bool step();
    /// Ends run() after the present event.
    void stop() noexcept { stopped_ = attention_ = true; }

    /// The process that runs now; a null reference between processes.
    [[nodiscard]] ProcessRef current() noexcept {
        return current_ != nullptr ? ProcessRef(*this, *current_) : ProcessRef();
    }

    [[nodiscard]] std::uint64_t events() const noexcept { return counted_ - until_look_; }
    /// How many processes have not ended.
    [[nodiscard]] std::size_t alive() const noexcept { return alive_; }
    /// All of them, by serial number: who still waits when run() has come back.
    [[nodiscard]] std::vector<ProcessRef> processes();
    /// Of everything that happened so far, in order, if Options::trace is set (else of trace()'s figures
    /// alone): equal for one model on every back-end, event list and ABI.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept { return hash_; }
    /// Takes a model's own figure into the trace.
    void trace(double value) noexcept { mix(std::bit_cast<std::uint64_t>(value)); }

    /// Lets something move with the clock, in place of what did; null ends it.
    void set_motion(Motion *motion) noexcept {
        motion_ = motion;
        attention_ = true;
    }
    /// Whether something moves with the clock.
    [[nodiscard]] bool in_motion() const noexcept { return motion_ != nullptr; }

    /// Reports of all queues, facilities and stores, in the order of their creation.
    [[nodiscard]] std::string report() const;
    /// Ends the warm-up: forgets all queues', facilities' and stores' statistics.
    void clear_statistics();

    /// Bytes taken from the system for processes and events.
    [[nodiscard]] std::size_t reserved() const noexcept {
        return frames_.reserved() + calls_.reserved() + records_.reserved();
    }

    // -- For awaitables
    // ------------------------------------------------------------------------------------------

    /// Puts a node on the agenda.
    void schedule(Node &node, double time, std::int16_t priority) {
        insert(node, time, rank_of(priority, next_sequence()));
    }
    /// With the priority the process has.
    [[gnu::always_inline]] void schedule_process(ProcessState &process, double time) {
        insert(process, time, (process.rank & ~last_sequence) | next_sequence());
    }
    [[gnu::always_inline]] void schedule_now(ProcessState &process) {
        process.time = now_;
        process.rank = (process.rank & ~last_sequence) | next_sequence();
        agenda_.insert_now(process);
    }
    void unschedule(Node &node) { agenda_.remove(node); }

    /// Stops the current process. True if its coroutine, where it is to go on, must suspend; false if it has
    /// been stopped with its stack, and has gone on already.
    bool suspend(ProcessState &process, void *coroutine) {
        if (switcher_ != nullptr) [[unlikely]] {
            block(process);
            return false;
        }
        process.goes_on_at(coroutine);
        return true;
    }
    /// The same for what has a stack.
    void block(ProcessState &process);
    /// Schedules the current process `delay` from now, and suspends it. Nothing is called for a turn at the
    /// present time: there are few registers to save around it then.
    [[gnu::always_inline]] bool wait(ProcessState &process, double delay, void *coroutine) {
        const bool is_zero = std::bit_cast<std::uint64_t>(delay) << 1 == 0; // of either sign, and no NaN
        if (!is_zero || switcher_ != nullptr)
            return wait_at(process, now_ + delay, coroutine);
        process.goes_on_at(coroutine);
        schedule_now(process);
        return true;
    }

    /// Resumes a coroutine as a part of the present event, once everything above the dispatcher has returned.
    void go_on_soon(void *coroutine) noexcept {
        soon_ = coroutine;
        attention_ = true;
    }

    /// What a wait that has begun has in place of its delay, beside the address of its process, which has 48
    /// bits at most. As a delay it is a NaN: awaited again, it is refused where every bad time is.
    static constexpr std::uint64_t begun_wait = std::uint64_t{0xffff} << 48;

    /// Gives a waiter what it waits for.
    void grant(Waiter &waiter);
    /// Called at the end of every wait that may have been interrupted.
    static void after_wait(ProcessState &process) {
        if ((process.flags & ProcessState::interrupted) != 0) [[unlikely]]
            process.sim().raise_interrupt(process);
    }

    void activate(ProcessState &process);
    void cancel(ProcessState &process);
    void interrupt(ProcessState &process, std::any cause);
    void set_priority(ProcessState &process, std::int16_t priority);
    void cancel(EventNode &event);

    Pool &frames() noexcept { return frames_; }
    Pool &records() noexcept { return records_; }
    Details &details(ProcessState &process);
    [[nodiscard]] ProcessState *running() const noexcept { return current_; }
    [[nodiscard]] bool has_stacks() const noexcept { return switcher_ != nullptr; }
    /// Whether the simulation is being destroyed: resources may have gone before it.
    [[nodiscard]] bool ending() const noexcept { return ending_; }
    std::uint32_t next_serial();

    /// A state is made known (begins to live), and ends.
    void enlist(ProcessState &process);
    void retire(ProcessState &process) noexcept;
    /// Keeps the exception being handled, for run() to throw.
    void fail(ProcessState &process) noexcept;

    void add_condition(Waiter &waiter) noexcept {
        conditions_.insert(waiter);
        attention_ = true;
    }
    void remove_condition(Waiter &waiter) noexcept {
        if (&waiter == next_condition_)
            next_condition_ = waiter.next;
        conditions_.remove(waiter);
    }

    void add(Resource &resource);
    void remove(Resource &resource) noexcept;

    [[noreturn]] static void refuse_second_await(const std::string &what, ProcessState &process);
    /// The frame of the coroutine `body`, which has been made just now, is not laid out as it must be.
    [[noreturn]] static void refuse_frame(void *frame, const char *body);

    [[nodiscard]] Circumstance circumstance(const ProcessState *process) const;
    [[nodiscard]] Circumstance circumstance() const { return circumstance(current_); }

  private:
    friend class ProcessRef;

    /// 2^48 schedulings take a month without rest; one more would change priorities.
    std::uint64_t next_sequence() {
        if ((sequence_ & (last_sequence + 1)) != 0) [[unlikely]]
            refuse_sequence();
        return sequence_++;
    }
    [[noreturn]] void refuse_sequence() const;
    void look_for_loop();

    /// Two comparisons, whatever `time` is: this is half of what a wait costs.
    [[gnu::always_inline]] void insert(Node &node, double time, std::uint64_t rank) {
        if (time <= now_) {
            if (time < now_) [[unlikely]]
                refuse_time(time);
            node.time = time;
            node.rank = rank;
            agenda_.insert_now(node);
        } else {
            if (!(time <= std::numeric_limits<double>::max())) [[unlikely]]
                refuse_time(time);
            node.time = time;
            node.rank = rank;
            agenda_.insert_later(node);
        }
    }

    void mix(std::uint64_t bits) noexcept { hash_ = std::rotl((hash_ ^ bits) * 0x9e3779b97f4a7c15u, 29); }

    static constexpr std::uint64_t without_end = ~std::uint64_t{0};
    /// Dispatches `most` events until `limit`; false if something stopped it.
    bool dispatch(double limit, std::uint64_t most);
    void happen(Node &node, bool short_way);
    void resume(ProcessState &process, bool on_stack);
    void resume_on_stack(ProcessState &process);
    void give_stack(ProcessState &process);
    void take_stack_back(ProcessState &process, Context &context);
    bool wait_at(ProcessState &process, double time, void *coroutine);
    static void run_on_stack(void *argument);
    bool attend();
    void test_conditions();
    void rethrow_failure();
    void take_back(ProcessState &process) noexcept;
    ProcessState &take_over(Process &process, std::string_view name, std::int16_t priority);
    void destroy(ProcessState &process) noexcept;
    void bury();
    [[noreturn]] void refuse_time(double time) const;
    [[noreturn]] void raise_interrupt(ProcessState &process);
    template <class Visit> void each_process(Visit visit);
    bool carry(double limit);
    double move(double to);

    double now_;
    std::uint64_t sequence_ = 0;
    Agenda agenda_;
    std::unique_ptr<Switcher> switcher_;
    // Set for each process's turn; taken back only before something else may look at it.
    ProcessState *current_ = nullptr;
    // Something is to be done before the next event: a failure, a stop, a burial, conditions, a motion,
    // counting.
    bool attention_ = false;
    bool stopped_ = false;
    bool running_ = false;
    bool ending_ = false;
    // Events are counted down, so that the count says by itself when to look whether time stands still.
    std::uint64_t counted_;
    std::uint64_t until_look_;
    std::uint64_t hash_ = 0;
    Motion *motion_ = nullptr;
    std::uint32_t serial_ = 0;
    std::size_t alive_ = 0;
    bool context_ended_ = false;
    // Whether time stands still: what it was, and how many events there had been, when it was looked at
    // first.
    double watched_time_ = std::numeric_limits<double>::quiet_NaN();
    std::uint64_t watched_events_ = 0;
    void *soon_ = nullptr; // the coroutine that go_on_soon()
    std::exception_ptr failure_;
    Line conditions_;
    Waiter *next_condition_ = nullptr; // to be tested, while they are: a grant may withdraw others
    std::vector<std::pair<ProcessState *, std::uint32_t>> doomed_; // and their serial numbers
    std::vector<Resource *> resources_;
    Random random_;
    Options options_;
    Pool frames_;  // of processes: blocks that ProcessRef may look at after their end
    Pool calls_;   // of scheduled calls: likewise for EventRef
    Pool records_; // of everything else
};

/// Something processes queue for. It registers itself for reports; when it goes, whoever waits in it waits
/// for ever.
class Resource {
  public:
    Resource(Simulation &sim, std::string_view name) : sim_(&sim), name_(name) { sim.add(*this); }
    virtual ~Resource() {
        if (sim_ != nullptr)
            sim_->remove(*this);
    }
    Resource(const Resource &) = delete;
    Resource &operator=(const Resource &) = delete;

    [[nodiscard]] const std::string &name() const noexcept { return name_; }
    [[nodiscard]] virtual std::string report() const = 0;
    virtual void clear_statistics() = 0;
    /// As errors name it: `facility "till"`.
    [[nodiscard]] std::string shown() const { return std::string(kind()) + " \"" + name_ + '"'; }

  protected:
    friend class Simulation;
    [[nodiscard]] virtual const char *kind() const noexcept = 0;
    /// `process` is gone: give back what it holds; false if it holds nothing.
    virtual bool forget(ProcessState &) noexcept { return false; }
    /// Who asks for something here must belong to the same simulation.
    void check_owner(const ProcessState &process) const {
        if (&process.sim() != sim_) [[unlikely]]
            refuse_stranger(process);
    }
    [[noreturn]] void refuse_stranger(const ProcessState &process) const;

    Simulation *sim_;
    std::string name_;
};

template <class Call> EventRef Simulation::at(double time, Call call, std::int16_t priority) {
    struct Record : EventNode {
        explicit Record(Call &&c) : call(std::move(c)) {}
        Call call;
    };
    void *memory = calls_.allocate(sizeof(Record));
    auto *record = new (memory) Record(std::move(call));
    record->kind = Kind::Event;
    record->serial = next_serial();
    record->happen = [](EventNode &node, Simulation &sim) {
        // The record goes first, so that the call may throw, or schedule its like into the same block.
        Call own = std::move(static_cast<Record &>(node).call);
        static_cast<Record &>(node).call.~Call();
        Pool::release(&node);
        if constexpr (std::is_invocable_v<Call &, Simulation &>)
            own(sim);
        else
            own();
    };
    record->dispose = [](EventNode &node, std::string *name) {
        if (name != nullptr) {
            *name = name_of_call(static_cast<Record &>(node).call);
            return;
        }
        static_cast<Record &>(node).call.~Call();
        Pool::release(&node);
    };
    try {
        schedule(*record, time, priority);
    } catch (...) {
        record->serial = 0;
        record->dispose(*record, nullptr);
        throw;
    }
    return EventRef(*this, *record);
}

inline bool ProcessRef::alive() const noexcept {
    return state_ != nullptr && state_->serial == serial_ && (state_->flags & ProcessState::doomed) == 0;
}

} // namespace widthwise::sim
