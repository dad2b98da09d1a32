#include "widthwise/sim/simulation.hpp"

#include "stacks.hpp"
#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace widthwise::sim {
namespace {

constexpr double forever = std::numeric_limits<double>::infinity();

/// How much of a freed block ProcessRef may still look at.
constexpr std::size_t kept_of_frames = state_offset + sizeof(Node);
constexpr std::size_t kept_of_calls = sizeof(Node);

void *frame_of(ProcessState &state) noexcept { return reinterpret_cast<std::byte *>(&state) - state_offset; }
PlainFrame &plain_frame(ProcessState &state) noexcept { return *static_cast<PlainFrame *>(frame_of(state)); }
bool has(const ProcessState &process, std::uint8_t flag) noexcept { return (process.flags & flag) != 0; }

/// How many events lie between two looks for a loop.
std::uint64_t looks_after(const Options &options) {
    return std::max<std::uint64_t>(1, options.most_at_once / 16);
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

} // namespace

Simulation::Simulation(const Options &options)
    : now_(options.start), agenda_(options.listing), counted_(looks_after(options)), until_look_(counted_),
      random_(options.seed), options_(options), frames_(kept_of_frames, this), calls_(kept_of_calls, this),
      records_(sizeof(void *), this) {
    if (!(options.start - options.start == 0.0))
        throw BadTime("a simulation cannot start at " + number(options.start), circumstance());
    if (options.most_at_once == 0)
        throw BadRequest("Options::most_at_once is 0: nothing could happen at any time", circumstance());
    if (options.switching == Switching::Coroutine)
        return;
    switcher_ = make_switcher(options.switching, options.stack_size);
    if (switcher_ == nullptr)
        throw SwitchingUnavailable(
            std::string("this build has no switching by ") + name_of(options.switching), circumstance());
}

template <class Visit> void Simulation::each_process(Visit visit) {
    frames_.each([&](void *block) {
        // What lives has a serial number. The block's other bytes say nothing until then.
        std::uint32_t serial = 0;
        std::memcpy(&serial, static_cast<std::byte *>(block) + state_offset + offsetof(Node, serial),
                    sizeof serial);
        if (serial != 0)
            visit(*reinterpret_cast<ProcessState *>(static_cast<std::byte *>(block) + state_offset));
    });
}

Simulation::~Simulation() {
    if (running_) {
        std::fputs("widthwise::sim: a simulation was destroyed from within its own run()\n", stderr);
        std::abort();
    }
    {
        const StackWatch watch(switcher_.get());
        bury();
        ending_ = true;
        each_process([&](ProcessState &process) { destroy(process); });
    }
    while (Node *node = agenda_.pop(forever))
        if (node->kind == Kind::Event) {
            node->serial = 0;
            static_cast<EventNode *>(node)->dispose(*static_cast<EventNode *>(node), nullptr);
        }
    for (Resource *resource : resources_)
        if (resource != nullptr)
            resource->sim_ = nullptr;
}

// ---------------------------------------------------------------------------------------------------------------
// Beginning and ending

std::uint32_t Simulation::next_serial() {
    if (++serial_ == 0)
        serial_ = 1; // 0 means that nothing lives there
    return serial_;
}

std::vector<ProcessRef> Simulation::processes() {
    std::vector<ProcessRef> all;
    each_process([&](ProcessState &process) { all.emplace_back(*this, process); });
    std::sort(all.begin(), all.end(),
              [](const ProcessRef &a, const ProcessRef &b) { return a.serial() < b.serial(); });
    return all;
}

void Simulation::enlist(ProcessState &process) {
    process.serial = next_serial();
    process.rank = rank_of(0, 0);
    ++alive_;
}

/// Gives back what a process that ends holds, and says so if it has ended by itself.
void Simulation::take_back(ProcessState &process) noexcept {
    std::string held;
    std::size_t more = 0;
    for (Resource *resource : resources_)
        if (resource != nullptr && resource->forget(process)) {
            more += held.empty() ? 0 : 1;
            if (held.empty())
                held = resource->shown();
        }
    const bool by_itself = !has(process, ProcessState::unwinding) && !has(process, ProcessState::doomed);
    if (held.empty() || !by_itself || failure_ != nullptr || !running_)
        return;
    if (more > 0)
        held += " and " + std::to_string(more) + " more";
    failure_ = std::make_exception_ptr(
        EndedWhileHolding("a process ended while it held " + held, circumstance(&process)));
    attention_ = true;
}

void Simulation::retire(ProcessState &process) noexcept {
    if (process.held != 0 || has(process, ProcessState::held_many))
        take_back(process);
    process.serial = 0;
    process.place = Place::Passive;
    --alive_;
    if (process.details == nullptr)
        return;
    while (Waiter *joiner = process.details->joiners.first()) {
        process.details->joiners.remove(*joiner);
        grant(*joiner);
    }
    process.details->~Details();
    Pool::release(process.details);
    process.details = nullptr;
}

Process::~Process() {
    if (state_ != nullptr)
        state_->sim().cancel(*state_);
}

ProcessState &Simulation::take_over(Process &process, std::string_view name, std::int16_t priority) {
    if (process.state() == nullptr)
        throw WrongState("a process was started that had been given away already", circumstance());
    if (&process.state()->sim() != this)
        throw WrongState("a process was started in another simulation than the one it was made in",
                         circumstance());
    ProcessState &state = process.release();
    state.rank = rank_of(priority, 0);
    if (!name.empty())
        details(state).name = name;
    return state;
}

ProcessRef Simulation::adopt(Process process, std::string_view name, std::int16_t priority) {
    return ProcessRef(*this, take_over(process, name, priority));
}

ProcessRef Simulation::start(Process process, std::string_view name, double delay, std::int16_t priority) {
    ProcessState &state = take_over(process, name, priority);
    try {
        schedule(state, now_ + delay, priority);
    } catch (...) {
        cancel(state);
        throw;
    }
    return ProcessRef(*this, state);
}

Details &Simulation::details(ProcessState &process) {
    if (process.details == nullptr)
        process.details = new (records_.allocate(sizeof(Details))) Details();
    return *process.details;
}

void Simulation::fail(ProcessState &process) noexcept {
    std::exception_ptr failure;
    try {
        throw;
    } catch (const Unwind &) {
        return;
    } catch (const SimulationError &) {
        failure = std::current_exception();
    } catch (const std::exception &error) {
        failure = std::make_exception_ptr(ProcessFailed(
            std::string("an exception left a process: ") + error.what(), circumstance(&process)));
    } catch (...) {
        failure = std::make_exception_ptr(
            ProcessFailed("an exception of unknown type left a process", circumstance(&process)));
    }
    if (failure_ == nullptr)
        failure_ = failure;
    attention_ = true;
}

// ---------------------------------------------------------------------------------------------------------------
// The dispatcher

void Simulation::run() { dispatch(forever, without_end); }

void Simulation::run_until(double time) {
    if (time - time != 0.0)
        throw BadTime("cannot run until " + number(time), circumstance());
    if (time < now_)
        throw TimeBackwards("cannot run until " + number(time), circumstance());
    if (dispatch(time, without_end) && now_ < time)
        now_ = time;
}

bool Simulation::step() {
    const auto before_step = events();
    dispatch(forever, 1);
    return events() != before_step;
}

namespace {
/// Sets a flag for as long as a scope lasts.
struct Raised {
    bool &flag;
    explicit Raised(bool &f) : flag(f) { flag = true; }
    ~Raised() { flag = false; }
};
} // namespace

// These three are parts of dispatch(): each return between it and a process's stack would be predicted
// wrongly.

[[gnu::always_inline]] inline void Simulation::resume_on_stack(ProcessState &process) {
    if (process.context == nullptr || process.context == frame_of(process)) {
        give_stack(process);
    }
    auto *context = static_cast<Context *>(process.context);
    enter_context(*switcher_, *context);
    if (context->lost || context_ended_) [[unlikely]]
        take_stack_back(process, *context);
}

[[gnu::always_inline]] inline void Simulation::resume(ProcessState &process, bool on_stack) {
    process.place = Place::Running;
    current_ = &process;
    if (on_stack)
        resume_on_stack(process);
    else
        std::coroutine_handle<>::from_address(process.context).resume();
}

[[gnu::always_inline]] inline void Simulation::happen(Node &node, bool short_way) {
    if (--until_look_ == 0) [[unlikely]]
        attention_ = true;
    if (node.kind == Kind::Process && short_way) [[likely]]
        return resume(static_cast<ProcessState &>(node), false);
    if (node.kind == Kind::NewProcess)
        node.kind = Kind::Process;
    if (options_.trace) {
        mix(std::bit_cast<std::uint64_t>(node.time));
        mix(std::uint64_t{node.serial} << 8 | static_cast<std::uint64_t>(node.kind));
    }
    if (node.kind == Kind::Process)
        return resume(static_cast<ProcessState &>(node), switcher_ != nullptr);
    current_ = nullptr;
    if (node.kind == Kind::Event) {
        node.serial = 0;
        static_cast<EventNode &>(node).happen(static_cast<EventNode &>(node), *this);
    } else {
        node.place = Place::Passive;
        grant(*static_cast<TimerNode &>(node).waiter);
    }
}

bool Simulation::dispatch(double limit, std::uint64_t most) {
    if (running_)
        throw WrongState("run() was called from within itself", circumstance());
    const Raised running(running_);
    const StackWatch watch(switcher_.get());
    stopped_ = false;
    attention_ = true;
    const bool short_way = switcher_ == nullptr && !options_.trace;
    for (;;) {
        if (attention_) [[unlikely]] {
            if (!attend() || most == 0)
                return false;
            const bool reached = motion_ == nullptr || carry(limit);
            // Again before the next event, where each is counted or something moves with the clock.
            attention_ = attention_ || motion_ != nullptr || most != without_end;
            if (!reached)
                continue;
            if (most != without_end)
                --most;
        }
        Node *node = agenda_.pop_present();
        if (node == nullptr) {
            node = agenda_.pop_listed(limit);
            if (node == nullptr) {
                current_ = nullptr;
                return true;
            }
            now_ = node->time;
        }
        happen(*node, short_way);
    }
}

bool Simulation::wait_at(ProcessState &process, double time, void *coroutine) {
    schedule_process(process, time);
    return suspend(process, coroutine);
}

/// Moves what moves up to the next event or `limit`; false if something came up before, or is to be attended
/// to there.
bool Simulation::carry(double limit) {
    const Node *next = agenda_.top();
    const double target = next != nullptr && next->time < limit ? next->time : limit;
    if (!(target > now_ && (target < forever || next != nullptr)))
        return true;
    now_ = move(target);
    return !attention_ && now_ == target;
}

double Simulation::move(double to) {
    const double reached = motion_->advance(*this, now_, to);
    if (!(reached >= now_ && reached <= to))
        throw BadTime("a motion went to " + number(reached) + " instead of up to " + number(to),
                      circumstance());
    return reached;
}

/// What is to be done between events; false if the run ends here.
bool Simulation::attend() {
    while (void *next = std::exchange(soon_, nullptr))
        std::coroutine_handle<>::from_address(next).resume();
    attention_ = false;
    current_ = nullptr;
    bury();
    rethrow_failure();
    if (until_look_ == 0)
        look_for_loop();
    if (!conditions_.empty()) {
        test_conditions();
        bury();
        rethrow_failure();
        attention_ = true; // again after the next event
    }
    return !stopped_;
}

void Simulation::rethrow_failure() {
    if (failure_ != nullptr)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Simulation::test_conditions() {
    for (Waiter *waiter = conditions_.first(); waiter != nullptr; waiter = next_condition_) {
        next_condition_ = waiter->next;
        try {
            if (!waiter->holds(*waiter))
                continue;
        } catch (...) { // as if it had left the process
            fail(*waiter->process);
            cancel(*waiter->process);
            continue;
        }
        remove_condition(*waiter);
        grant(*waiter);
    }
}

void Simulation::grant(Waiter &waiter) {
    waiter.granted = true;
    if (waiter.group != nullptr)
        waiter.group->member_granted(waiter);
    else
        schedule_now(*waiter.process);
}

// ---------------------------------------------------------------------------------------------------------------
// Stacks

void Simulation::run_on_stack(void *argument) {
    auto &process = *static_cast<ProcessState *>(argument);
    Simulation &sim = process.sim();
    Context &context = *static_cast<Context *>(process.context);
    begin_context(context);
    if (has(process, ProcessState::plain)) {
        PlainFrame &frame = plain_frame(process);
        try {
            frame.invoke(frame);
        } catch (...) {
            sim.fail(process);
        }
        sim.retire(process);
        frame.dispose(frame);
    } else {
        // It never suspends, unless a chain of tasks has become too long for calls in calls.
        std::coroutine_handle<>::from_address(frame_of(process)).resume();
        while (void *next = std::exchange(sim.soon_, nullptr))
            std::coroutine_handle<>::from_address(next).resume();
    }
    sim.context_ended_ = true;
    leave_context(*sim.switcher_, context, true);
    std::abort();
}

void Simulation::give_stack(ProcessState &process) {
    try {
        process.context = switcher_->create(&run_on_stack, &process);
    } catch (...) {
        current_ = nullptr;
        process.place = Place::Passive;
        throw SwitchingUnavailable("no memory or no mapping for another stack (see vm.max_map_count)",
                                   circumstance(&process));
    }
}

/// `process` has ended, and is no longer there unless its context was lost.
void Simulation::take_stack_back(ProcessState &process, Context &context) {
    if (context.lost) {
        // Its locals are lost with its stack. The process itself ends here; its frame is abandoned to the
        // pool.
        if (failure_ == nullptr)
            failure_ = std::make_exception_ptr(
                StackOverflow("the stack of " + std::to_string(options_.stack_size) + " bytes overflowed",
                              circumstance(&process)));
        attention_ = true;
        process.flags |= ProcessState::doomed;
        retire(process);
    }
    context_ended_ = false;
    switcher_->destroy(&context);
}

void Simulation::block(ProcessState &process) {
    // Unwinding already: a destructor or a catch (...) waits. It cannot, and is told so once more.
    if (!has(process, ProcessState::unwinding))
        leave_context(*switcher_, *static_cast<Context *>(process.context), false);
    if (has(process, ProcessState::unwinding))
        throw Unwind();
}

// ---------------------------------------------------------------------------------------------------------------
// What others do to a process

void Simulation::activate(ProcessState &process) {
    switch (process.place) {
    case Place::Passive:
        schedule_now(process);
        break;
    case Place::Ring:
        break; // it is about to go on anyway
    case Place::Listed:
        unschedule(process);
        schedule_now(process);
        break;
    case Place::Waiting:
        throw WrongState("a process that waits in a queue cannot be activated, only interrupted or cancelled",
                         circumstance(&process));
    case Place::Running:
        throw WrongState("a process that runs cannot be activated", circumstance(&process));
    }
}

void Simulation::cancel(ProcessState &process) {
    if (has(process, ProcessState::doomed))
        return;
    process.flags |= ProcessState::doomed;
    if (process.place == Place::Ring || process.place == Place::Listed) {
        unschedule(process);
    } else if (process.place == Place::Waiting) {
        process.link.waiter->withdraw(*process.link.waiter);
        process.place = Place::Passive;
    }
    if (!running_ || process.kind == Kind::NewProcess) {
        const StackWatch watch(running_ ? nullptr : switcher_.get());
        return destroy(process);
    }
    // Its locals must not be destroyed in the middle of another process's step: with copied stacks they are
    // not even there. Before the next event they are.
    doomed_.emplace_back(&process, process.serial);
    attention_ = true;
}

/// Destroys what has been cancelled.
void Simulation::bury() {
    for (std::size_t i = 0; i < doomed_.size(); ++i) {
        const auto [process, serial] = doomed_[i];
        if (process->serial == serial)
            destroy(*process); // unless it ended in the same step
    }
    doomed_.clear();
}

void Simulation::destroy(ProcessState &process) noexcept {
    process.flags |= ProcessState::doomed;
    if (process.place == Place::Ring || process.place == Place::Listed)
        unschedule(process);
    else if (process.place == Place::Waiting)
        process.link.waiter->withdraw(*process.link.waiter);
    process.place = Place::Passive;
    const bool on_stack =
        switcher_ != nullptr && process.context != nullptr && process.context != frame_of(process);
    if (on_stack) {
        auto *context = static_cast<Context *>(process.context);
        process.flags |= ProcessState::unwinding;
        ProcessState *const outer = std::exchange(current_, &process);
        enter_context(*switcher_, *context);
        current_ = outer;
        context_ended_ = false;
        switcher_->destroy(context);
    } else if (has(process, ProcessState::plain)) {
        PlainFrame &frame = plain_frame(process);
        retire(process);
        frame.dispose(frame);
    } else {
        // Destructors of its locals may release what it holds.
        ProcessState *const outer = std::exchange(current_, &process);
        std::coroutine_handle<>::from_address(frame_of(process)).destroy();
        current_ = outer;
    }
}

void Simulation::interrupt(ProcessState &process, std::any cause) {
    if (process.kind == Kind::NewProcess || process.place == Place::Running ||
        has(process, ProcessState::doomed))
        throw WrongState("only a process that waits can be interrupted", circumstance(&process));
    if (process.place == Place::Ring || process.place == Place::Listed)
        unschedule(process);
    else if (process.place == Place::Waiting)
        process.link.waiter->withdraw(*process.link.waiter);
    process.place = Place::Passive;
    details(process).cause = std::move(cause);
    process.flags |= ProcessState::interrupted;
    schedule_now(process);
}

void Simulation::raise_interrupt(ProcessState &process) {
    process.flags &= static_cast<std::uint8_t>(~ProcessState::interrupted);
    throw Interrupted(std::exchange(details(process).cause, {}));
}

void Simulation::set_priority(ProcessState &process, std::int16_t priority) {
    // What is scheduled keeps its place at equal time in the order of scheduling.
    const std::uint64_t rank = rank_of(priority, process.rank & last_sequence);
    if (process.place == Place::Ring || process.place == Place::Listed) {
        unschedule(process);
        insert(process, process.time, rank);
    } else {
        process.rank = rank;
    }
}

void Simulation::cancel(EventNode &event) {
    unschedule(event);
    event.serial = 0;
    event.dispose(event, nullptr);
}

void Simulation::refuse_time(double time) const {
    if ((std::bit_cast<std::uint64_t>(time) & begun_wait) == begun_wait)
        throw WrongState("a wait for time was awaited a second time; write wait(...) where it is awaited",
                         circumstance());
    if (time - time != 0.0)
        throw BadTime("nothing can be scheduled at time " + number(time), circumstance());
    throw TimeBackwards("time would run backwards to " + number(time), circumstance());
}

void Simulation::refuse_second_await(const std::string &what, ProcessState &process) {
    throw WrongState(what + " was awaited a second time; make a new one where it is awaited",
                     process.sim().circumstance(&process));
}

void Simulation::refuse_frame(void *frame, const char *body) {
    const auto &sim = *static_cast<Simulation *>(Pool::owner_of(frame));
    throw BodyMisplaced(std::string("the compiler has misplaced the body of the coroutine ") + body +
                            ", which declares nothing and awaits in a condition (gcc 11 and 12 do, GCC's PR "
                            "106188): await before the condition, as in `const auto first = co_await ...; if "
                            "(first == 1)`",
                        sim.circumstance());
}

void Resource::refuse_stranger(const ProcessState &process) const {
    throw WrongState(shown() + " was asked by a process of another simulation than the one it was made in",
                     process.sim().circumstance(&process));
}

void Simulation::refuse_sequence() const {
    throw BadRequest("a simulation can schedule 2^48 times and has", circumstance());
}

void Simulation::look_for_loop() {
    until_look_ = looks_after(options_);
    counted_ += until_look_;
    const Node *next = agenda_.top();
    const std::uint64_t events = this->events() - std::exchange(watched_events_, this->events());
    if (next == nullptr || next->time != now_ || std::exchange(watched_time_, now_) != now_)
        return;
    if (events < options_.most_at_once) {
        watched_events_ -= events;
        return;
    }
    const ProcessState *process = nullptr;
    std::string name = "a turn of a process";
    if (next->kind == Kind::Event) {
        auto &event = const_cast<EventNode &>(static_cast<const EventNode &>(*next));
        event.dispose(event, &name);
        name = "the call of " + name + " (event " + std::to_string(next->serial) + ')';
    } else if (next->kind == Kind::Timer) {
        process = static_cast<const TimerNode *>(next)->waiter->process;
    } else {
        process = static_cast<const ProcessState *>(next);
    }
    throw SameTimeLoop(std::to_string(events) + " events have happened at one time, and the next is " + name +
                           "; if this is no loop, set Options::most_at_once",
                       circumstance(process));
}

// ---------------------------------------------------------------------------------------------------------------
// Names, resources, reports

Circumstance Simulation::circumstance(const ProcessState *process) const {
    Circumstance where;
    where.time = now_;
    where.seed = options_.seed;
    if (process == nullptr)
        return where;
    where.serial = process->serial;
    if (process->details != nullptr)
        where.process = process->details->name;
    return where;
}

void Simulation::add(Resource &resource) { resources_.push_back(&resource); }

void Simulation::remove(Resource &resource) noexcept { std::erase(resources_, &resource); }

std::string Simulation::report() const {
    std::string text;
    for (const Resource *resource : resources_)
        text += resource->report();
    return text;
}

void Simulation::clear_statistics() {
    for (Resource *resource : resources_)
        resource->clear_statistics();
}

ProcessState &ProcessRef::state(const char *deed) const {
    if (alive())
        return *state_;
    Circumstance where = sim_ != nullptr ? sim_->circumstance() : Circumstance{};
    const std::string target =
        sim_ == nullptr ? "of an empty reference" : "of process " + std::to_string(serial_);
    throw UsedAfterEnd(std::string(deed) + ' ' + target + (sim_ == nullptr ? "" : " after its end"), where);
}

void ProcessRef::activate() const {
    ProcessState &process = state("activate");
    process.sim().activate(process);
}

void ProcessRef::cancel() const {
    ProcessState &process = state("cancel");
    process.sim().cancel(process);
}

void ProcessRef::interrupt(std::any cause) const {
    ProcessState &process = state("interrupt");
    process.sim().interrupt(process, std::move(cause));
}

void ProcessRef::set_priority(std::int16_t priority) const {
    ProcessState &process = state("set_priority");
    process.sim().set_priority(process, priority);
}

Place ProcessRef::place() const { return state("place").place; }

std::string ProcessRef::name() const {
    const ProcessState &process = state("name");
    return process.details != nullptr ? process.details->name : std::string();
}

void EventRef::cancel() const {
    if (!pending()) {
        if (sim_ == nullptr)
            throw UsedAfterEnd("cancel of an empty reference to an event", {});
        throw UsedAfterEnd("cancel of event " + std::to_string(serial_) + " after it happened",
                           sim_->circumstance());
    }
    sim_->cancel(*node_);
}

bool Join::begin(ProcessState &process) {
    if (!target_.alive())
        return true;
    priority = priority_of(process.rank);
    ProcessState &target = target_.state("join");
    if (&target.sim() != &process.sim())
        throw WrongState("a process waited for the end of another simulation's process " +
                             std::to_string(target_.serial()),
                         process.sim().circumstance(&process));
    if (&target == &process)
        throw WrongState("a process cannot wait for its own end", process.sim().circumstance(&process));
    withdraw = [](Waiter &self) {
        if (self.in_line)
            static_cast<Join &>(self).line_->remove(self);
    };
    line_ = &process.sim().details(target).joiners;
    line_->insert(*this);
    return false;
}

} // namespace widthwise::sim
