// The kernel's error context, and the errors that its hot paths throw.
#include "widthwise/sim/detail/kernel.hpp"

#include "core/number.hpp"

#include <bit>
#include <string>

namespace widthwise::sim::detail {

ErrorContext Kernel::error_context(const ProcessState *process) const {
    ErrorContext where;
    where.time = now_;
    where.seed = options_.seed;
    if (process == nullptr)
        return where;
    where.serial = process->serial;
    if (process->details != nullptr)
        where.process = process->details->name;
    return where;
}

void Kernel::refuse_time(double time) const {
    if ((std::bit_cast<std::uint64_t>(time) & begun_wait) == begun_wait)
        throw WrongState("a wait for time was awaited a second time; write wait(...) where it is awaited",
                         error_context());
    if (time - time != 0.0)
        throw BadTime("nothing can be scheduled at time " + number(time), error_context());
    throw TimeBackwards("time would run backwards to " + number(time), error_context());
}

void Kernel::refuse_delay(double delay) const {
    const double time = now_ + delay;
    if (time < now_)
        refuse_time(time);
    throw TimeBackwards("time would run backwards by " + number(-delay), error_context());
}

void Kernel::refuse_sequence() const {
    throw BadRequest("a simulation can schedule 2^48 times and has", error_context());
}

void Kernel::refuse_second_await(const std::string &what, ProcessState &process) {
    throw WrongState(what + " was awaited a second time; make a new one where it is awaited",
                     process.kernel().error_context(&process));
}

void Kernel::refuse_frame(void *frame, const char *body) {
    const auto &kernel = *static_cast<Kernel *>(Pool::owner_of(frame));
    throw BodyMisplaced(std::string("the compiler has misplaced the body of the coroutine ") + body +
                            ", which declares nothing and awaits in a condition (gcc 11 and 12 do, GCC's PR "
                            "106188): await before the condition, as in `const auto first = co_await ...; if "
                            "(first == 1)`",
                        kernel.error_context());
}

} // namespace widthwise::sim::detail
