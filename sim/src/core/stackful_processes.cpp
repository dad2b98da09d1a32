// Processes on stacks: how one begins, leaves and ends there.
#include "core/frames.hpp"
#include "switching/stacks.hpp"
#include "widthwise/sim/detail/kernel.hpp"

#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace widthwise::sim::detail {

void Kernel::run_on_stack(void *argument) {
    auto &process = *static_cast<ProcessState *>(argument);
    Kernel &kernel = process.kernel();
    Context &context = *static_cast<Context *>(process.context);
    begin_context(context);
    if (has(process, ProcessState::plain)) {
        PlainFrame &frame = plain_frame(process);
        try {
            frame.invoke(frame);
        } catch (...) {
            kernel.fail(process);
        }
        kernel.retire(process);
        frame.dispose(frame);
    } else {
        // The coroutine never suspends, unless a chain of tasks has become too long for nested calls.
        std::coroutine_handle<>::from_address(frame_of(process)).resume();
        while (void *next = std::exchange(kernel.soon_, nullptr))
            std::coroutine_handle<>::from_address(next).resume();
    }
    kernel.context_ended_ = true;
    leave_context(*kernel.switcher_, context, true);
    std::abort();
}

void Kernel::allocate_stack(ProcessState &process) {
    try {
        process.context = switcher_->create(&run_on_stack, &process);
    } catch (...) {
        current_ = nullptr;
        process.place = Place::Passive;
        throw SwitchingUnavailable("no memory or no mapping for another stack (see vm.max_map_count)",
                                   error_context(&process));
    }
}

/// `process` has ended. Its state is gone, unless its context was lost.
void Kernel::free_stack(ProcessState &process, Context &context) {
    if (context.lost) {
        // The process ends here. Its locals are lost with its stack, and the pool keeps its frame.
        if (failure_ == nullptr)
            failure_ = std::make_exception_ptr(
                StackOverflow("the stack of " + std::to_string(options_.stack_size) + " bytes overflowed",
                              error_context(&process)));
        attention_ = true;
        context_lost_ = true;
        process.flags |= ProcessState::cancelled;
        retire(process);
    }
    context_ended_ = false;
    switcher_->destroy(&context);
}

void Kernel::block(ProcessState &process) {
    leave_context(*switcher_, *static_cast<Context *>(process.context), false);
    if (has(process, ProcessState::unwinding))
        throw Unwind();
}

/// Ends the program rather than loop for ever.
void Kernel::unwind_again(ProcessState &process) {
    constexpr std::uint32_t most = 1000;
    if (++waits_unwound_ > most) {
        const UsedAfterEnd error("a process that is being destroyed goes on waiting: its catch (...) must "
                                 "rethrow what a wait throws",
                                 error_context(&process));
        std::fprintf(stderr, "widthwise::sim: %s\n", error.what());
        std::abort();
    }
    throw Unwind();
}

/// Ends a process by throwing Unwind through its stack.
void Kernel::unwind_stack(ProcessState &process) {
    auto *context = static_cast<Context *>(process.context);
    process.flags |= ProcessState::unwinding;
    waits_unwound_ = 0;
    ProcessState *const outer = std::exchange(current_, &process);
    enter_context(*switcher_, *context);
    current_ = outer;
    free_stack(process, *context);
}

} // namespace widthwise::sim::detail
