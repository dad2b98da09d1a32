// Stacks with guard pages, what has to change hands when one is entered, and who notices when one overflows.
#pragma once

#include "widthwise/sim/switching.hpp"

#include <cstddef>
#include <vector>

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
/// thread go on in a small function on an emergency stack, which leaves the context for good. Destructors of
/// what lay on the lost stack do not run; if the overflow happened inside malloc, malloc's lock is lost as
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

/// Marks the context this thread is on; null for the dispatcher's.
void set_entered(Context *context) noexcept;

/// The two halves of a switch, with what the language's runtime keeps for each stack: exceptions being
/// handled, and the address sanitizer's notion of the stack.
void enter_context(Switcher &switcher, Context &context);
void leave_context(Switcher &switcher, Context &context, bool last);
/// First thing on a new stack.
void begin_context(Switcher &switcher);

} // namespace widthwise::sim
