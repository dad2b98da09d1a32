// Stacks with guard pages, the state that is exchanged when one is entered, and the handling of overflow.
#pragma once

#include "widthwise/sim/switching.hpp"

#include <cstddef>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace widthwise::sim {

/// Stacks of one size. Those given back are kept and used again.
///
/// Tops are staggered by cache lines: mappings begin at page boundaries, so that without it the hot ends of
/// all stacks would fall into the same sets of the first-level cache.
class StackPool {
  public:
    explicit StackPool(std::size_t size);
    ~StackPool();
    StackPool(const StackPool &) = delete;
    StackPool &operator=(const StackPool &) = delete;

    /// Sets `stack` and `size`. Throws std::bad_alloc.
    void take(Context &context);
    void give_back(Context &context) noexcept;

  private:
    std::size_t size_; // whole pages
    std::vector<std::byte *> all_;
    std::vector<std::pair<std::byte *, std::size_t>> free_;
};

std::size_t page_size() noexcept;

/// For as long as it lives, an overflow of the stack that this thread has entered becomes a lost context
/// rather than the end of the program. Does nothing for a null switcher.
///
/// How: SIGSEGV is handled on a stack of its own; a fault in the guard page of the entered context makes the
/// thread continue in a small function on an emergency stack, which leaves the context for good. Destructors
/// of what lay on the lost stack do not run; if the overflow happened inside malloc, malloc's lock is lost as
/// well.
class StackWatch {
  public:
    explicit StackWatch(Switcher *switcher);
    ~StackWatch();
    StackWatch(const StackWatch &) = delete;
    StackWatch &operator=(const StackWatch &) = delete;

    struct Alternative;

  private:
    Switcher *switcher_;
    Switcher *outer_ = nullptr;
    Alternative *alternative_ = nullptr;
};

/// What __cxa_get_globals() points to (Itanium C++ ABI: Exception Handling, 2.2.2).
struct ExceptionGlobals {
    void *caught;
    unsigned uncaught;
};

/// Where this thread is.
struct Entered {
    Context *context = nullptr; // null: with the dispatcher
    Switcher *switcher = nullptr;
    std::byte *emergency = nullptr; // top of the emergency stack
    ExceptionGlobals *exceptions = nullptr;
    const void *dispatcher_bottom = nullptr;
    std::size_t dispatcher_size = 0;
};
extern constinit thread_local Entered entered;

// The two halves of a switch, with what the language's runtime keeps for each stack: exceptions being
// handled, and the address sanitizer's notion of the stack. Inline, because each return between a switch and
// the code it serves is one the processor predicts wrongly.

inline void enter_context(Switcher &switcher, Context &context) {
    Entered &here = entered;
    if (context.is_thread)
        return switcher.enter(context);
    Context *const outer = here.context;
    ExceptionGlobals &exceptions = *here.exceptions;
    const ExceptionGlobals mine = exceptions;
    exceptions = {context.caught_exceptions, context.uncaught_exceptions};
    here.context = &context;
#if defined(__SANITIZE_ADDRESS__)
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, context.stack, context.size);
#endif
    switcher.enter(context);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    here.context = outer;
    context.caught_exceptions = exceptions.caught;
    context.uncaught_exceptions = exceptions.uncaught;
    exceptions = mine;
}

inline void leave_context(Switcher &switcher, Context &context, bool last) {
#if defined(__SANITIZE_ADDRESS__)
    if (!context.is_thread) {
        void *fake = nullptr;
        __sanitizer_start_switch_fiber(last ? nullptr : &fake, entered.dispatcher_bottom,
                                       entered.dispatcher_size);
        switcher.leave(context, last);
        __sanitizer_finish_switch_fiber(fake, &entered.dispatcher_bottom, &entered.dispatcher_size);
        return;
    }
#endif
    switcher.leave(context, last);
}

/// First thing on a new stack.
inline void begin_context([[maybe_unused]] Context &context) {
#if defined(__SANITIZE_ADDRESS__)
    if (!context.is_thread)
        __sanitizer_finish_switch_fiber(nullptr, &entered.dispatcher_bottom, &entered.dispatcher_size);
#endif
}

} // namespace widthwise::sim
