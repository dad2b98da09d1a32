// The initial suspension of processes and tasks, which checks the layout of their frames.
#pragma once

#include "widthwise/sim/detail/kernel.hpp"

#include <coroutine>
#include <cstddef>

namespace widthwise::sim::detail {

/// Suspends a new coroutine, and checks its frame's address.
///
/// gcc 11 and 12 place variables of the body in front of the frame if the body declares none at its outermost
/// level and awaits in a condition there (GCC's PR 106188). Such a frame can be neither resumed nor
/// destroyed. An error thrown here leaves the call that made the coroutine.
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
    /// Finds the promise, which lies behind its expected place, and clears its references to the coroutine.
    template <class Promise>
    [[gnu::noinline, gnu::cold, noreturn]] static void refuse(std::byte *frame, const char *body) {
        for (std::size_t off = alignof(void *); off < 512; off += alignof(void *)) {
            const auto there = std::coroutine_handle<Promise>::from_address(frame + off);
            if (there.promise().frame() == there.address()) {
                there.promise().disown(frame);
                break;
            }
        }
        Kernel::refuse_frame(frame, body);
    }
};

} // namespace widthwise::sim::detail
