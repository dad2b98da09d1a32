// The simulation as awaitables and resources see it: scheduling, suspending, granting, and the process
// lifecycle. Models use `Simulation`, which derives from this class and hides it.
//
// Why processes end through one function (`retire`) and stop through another (`destroy`): a simulation can be
// destroyed at any moment outside of run(). Processes that have not ended by then are destroyed as if an
// exception had left their bodies, so that destructors of locals run on every back-end.
//
// Invariants:
//   the clock never runs backwards;
//   the next event is decided by (time, priority, order of scheduling) alone, never by addresses or
//   back-ends; no process runs between two events; a cancelled process's locals are destroyed before the next
//   event.
#pragma once

#include "widthwise/sim/agenda.hpp"
#include "widthwise/sim/detail/process_state.hpp"
#include "widthwise/sim/errors.hpp"
#include "widthwise/sim/motion.hpp"
#include "widthwise/sim/options.hpp"
#include "widthwise/sim/pool.hpp"
#include "widthwise/sim/switching.hpp"
#include "widthwise/sim/waiting.hpp"

#include <any>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace widthwise::sim {

class Process;
class Resource;

namespace detail {

class Kernel {
  public:
    Kernel(const Kernel &) = delete;
    Kernel &operator=(const Kernel &) = delete;

    [[nodiscard]] Simulation &simulation() noexcept;
    [[nodiscard]] double now() const noexcept { return now_; }

    // Scheduling

    /// The time `delay` from now. A negative delay throws TimeBackwards, also one that the clock cannot
    /// resolve.
    [[nodiscard]] double later(double delay) const {
        const double time = now_ + delay;
        if (time <= now_ && delay < 0.0) [[unlikely]]
            refuse_delay(delay);
        return time;
    }
    void schedule(Node &node, double time, std::int16_t priority) {
        insert(node, time, rank_of(priority, next_sequence()));
    }
    /// With the priority that the process has.
    [[gnu::always_inline]] void schedule_process(ProcessState &process, double time) {
        insert(process, time, (process.rank & ~last_sequence) | next_sequence());
    }
    [[gnu::always_inline]] void schedule_now(ProcessState &process) {
        process.time = now_;
        process.rank = (process.rank & ~last_sequence) | next_sequence();
        agenda_.insert_now(process);
    }
    void unschedule(Node &node) { agenda_.remove(node); }
    void cancel(EventNode &event);

    // Suspending and resuming

    /// Stops the current process. True if its `coroutine` must suspend; false if the process stopped on its
    /// stack, and has been resumed there.
    bool suspend(ProcessState &process, void *coroutine) {
        if (switcher_ != nullptr) [[unlikely]] {
            block(process);
            return false;
        }
        process.resume_at(coroutine);
        return true;
    }
    /// The same for a process that has a stack.
    void block(ProcessState &process);
    /// Every wait calls this before it schedules or enqueues anything. While a process's stack is unwound,
    /// neither a destructor nor a `catch (...)` that has kept Unwind can wait: Unwind is thrown once more.
    static void need_no_unwinding(ProcessState &process) {
        if ((process.flags & ProcessState::unwinding) != 0) [[unlikely]]
            process.kernel().unwind_again(process);
    }
    /// Schedules the current process `delay` from now, and suspends it. A delay of 0 calls no function, so
    /// that few registers are saved around it.
    [[gnu::always_inline]] bool wait(ProcessState &process, double delay, void *coroutine) {
        const bool is_zero = std::bit_cast<std::uint64_t>(delay) << 1 == 0; // of either sign, and no NaN
        if (!is_zero || switcher_ != nullptr)
            return wait_for(process, delay, coroutine);
        process.resume_at(coroutine);
        schedule_now(process);
        return true;
    }
    /// Resumes a coroutine as a part of the present event, from the dispatcher: the stack is empty then.
    void resume_soon(void *coroutine) noexcept {
        soon_ = coroutine;
        attention_ = true;
    }
    /// A wait that has begun holds these bits and the address of its process (at most 48 bits) in place of
    /// its delay. Read as a delay they are a NaN, so that a second await is refused like every bad time.
    static constexpr std::uint64_t begun_wait = std::uint64_t{0xffff} << 48;
    /// Every wait that can be interrupted calls this at its end.
    static void after_wait(ProcessState &process) {
        if ((process.flags & ProcessState::interrupted) != 0) [[unlikely]]
            process.kernel().raise_interrupt(process);
    }

    // Granting

    void grant(Waiter &waiter);
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

    // Process lifecycle

    [[nodiscard]] ProcessState *running() const noexcept { return current_; }
    [[nodiscard]] bool has_stacks() const noexcept { return switcher_ != nullptr; }
    /// Whether the simulation is being destroyed: resources may have been destroyed before it.
    [[nodiscard]] bool ending() const noexcept { return ending_; }
    /// Memory for a process. It looks dead until enlist(): its constructor may throw.
    void *allocate_frame(std::size_t size) {
        void *frame = frames_.allocate(size);
        clear_serial(frame);
        return frame;
    }
    /// A walk over all frames takes a serial number for a living process.
    static void clear_serial(void *frame) noexcept {
        std::memset(static_cast<std::byte *>(frame) + state_offset + offsetof(Node, serial), 0,
                    sizeof(Node::serial));
    }
    Pool &records() noexcept { return records_; }
    Details &details(ProcessState &process);
    std::uint32_t next_serial();
    /// A process begins to live, and ends.
    void enlist(ProcessState &process);
    void retire(ProcessState &process) noexcept;
    /// Keeps the exception that is being handled; run() throws it.
    void fail(ProcessState &process) noexcept;
    void activate(ProcessState &process);
    void cancel(ProcessState &process);
    void interrupt(ProcessState &process, std::any cause);
    void set_priority(ProcessState &process, std::int16_t priority);

    // Errors

    [[nodiscard]] ErrorContext error_context(const ProcessState *process) const;
    [[nodiscard]] ErrorContext error_context() const { return error_context(current_); }
    [[noreturn]] static void refuse_second_await(const std::string &what, ProcessState &process);
    /// The compiler has misplaced the frame of the coroutine `body`, which has just been made.
    [[noreturn]] static void refuse_frame(void *frame, const char *body);

  protected:
    explicit Kernel(const Options &options);
    ~Kernel() = default;

  private:
    friend class widthwise::sim::Simulation;

    /// 2^48 schedulings take a month without rest; one more would change priorities.
    std::uint64_t next_sequence() {
        if ((sequence_ & (last_sequence + 1)) != 0) [[unlikely]]
            refuse_sequence();
        return sequence_++;
    }

    /// Two comparisons, whatever `time` is: they are half of the cost of a wait.
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

    [[nodiscard]] std::uint64_t events() const noexcept { return counted_ - until_check_; }
    void mix(std::uint64_t bits) noexcept { hash_ = std::rotl((hash_ ^ bits) * 0x9e3779b97f4a7c15u, 29); }

    // The dispatcher (dispatcher.cpp)
    static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
    /// Dispatches at most `most` events up to `limit`; false if something stopped it before.
    bool dispatch(double limit, std::uint64_t most);
    void dispatch_event(Node &node, bool fast_path);
    void resume(ProcessState &process, bool on_stack);
    void resume_on_stack(ProcessState &process);
    bool wait_for(ProcessState &process, double delay, void *coroutine);
    bool between_events();
    void test_conditions();
    void rethrow_failure();
    bool advance_continuous_state(double limit);
    double advance_motion(double to);

    // The check for a loop at one time (same_time_loop.cpp)
    static std::uint64_t events_between_checks(const Options &options);
    void check_for_loop();
    [[nodiscard]] std::string describe_next(const Node &next, const ProcessState *&process) const;

    // Stacks of processes (stackful_processes.cpp)
    static void run_on_stack(void *argument);
    void allocate_stack(ProcessState &process);
    void free_stack(ProcessState &process, Context &context);
    void unwind_stack(ProcessState &process);
    [[noreturn]] void unwind_again(ProcessState &process);

    // Process lifecycle (process_lifecycle.cpp)
    template <class Visit> void each_process(Visit visit);
    ProcessState &take_over(Process &process, std::string_view name, std::int16_t priority);
    void release_resources_of(ProcessState &process) noexcept;
    void stop_waiting(ProcessState &process);
    void destroy(ProcessState &process) noexcept;
    void reap();

    [[noreturn]] void refuse_sequence() const;
    [[noreturn]] void refuse_time(double time) const;
    [[noreturn]] void refuse_delay(double delay) const;
    [[noreturn]] void raise_interrupt(ProcessState &process);

    double now_;
    std::uint64_t sequence_ = 0;
    Agenda agenda_;
    std::unique_ptr<Switcher> switcher_;
    // Set before a process is resumed, and reset only before something else may read it.
    ProcessState *current_ = nullptr;
    // Work is due before the next event: a failure, a stop, reaping, conditions, a motion, counting.
    bool attention_ = false;
    bool stopped_ = false;
    bool running_ = false;
    bool ending_ = false;
    bool destroying_ = false; // outside of run(): cancelled processes are destroyed one after the other
    // Events are counted down: the count itself shows when the next check for a loop is due.
    std::uint64_t counted_;
    std::uint64_t until_check_;
    std::uint64_t hash_ = 0;
    Motion *motion_ = nullptr;
    std::uint32_t serial_ = 0;
    std::size_t alive_ = 0;
    bool context_ended_ = false;
    bool context_lost_ = false; // a stack overflowed: nothing destroys the processes that its locals own
    std::uint32_t waits_unwound_ = 0; // of the process whose stack is being unwound
    // The check for a loop: the time at its first check there, and the events until then.
    double watched_time_ = std::numeric_limits<double>::quiet_NaN();
    std::uint64_t watched_events_ = 0;
    void *soon_ = nullptr; // the coroutine of resume_soon()
    std::exception_ptr failure_;
    WaitQueue conditions_;
    Waiter *next_condition_ = nullptr; // the next to test, during the tests: a grant may withdraw others
    std::vector<std::pair<ProcessState *, std::uint32_t>> cancelled_; // and their serial numbers
    std::vector<Resource *> resources_;
    Options options_;
    Pool frames_;  // of processes: ProcessRef may read a block after the process's end
    Pool calls_;   // of scheduled calls: likewise for EventRef
    Pool records_; // of everything else
};

} // namespace detail
} // namespace widthwise::sim
