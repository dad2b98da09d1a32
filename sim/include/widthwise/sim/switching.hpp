// The boundary between the simulation and the ways of stopping in the middle of a function.
//
// C++20 coroutines need no stack and are the default; they do not appear here. Every other way is a Switcher:
// it gives a process a stack, goes there, and comes back. A process's body does not know which one it runs
// on: where a coroutine suspends itself, on a stack `leave` is called, and when it returns the coroutine goes
// on without having suspended. That is why one model runs on all of them, event for event.
//
// Invariants: `enter` and `leave` alternate; at most one context of a switcher is entered at any time; a
// context is destroyed only after its entry function has left for the last time, or when it never began.
// Stacks have the size asked for (rounded up to pages) on every back-end, and a guard page beneath.
// Control words (mxcsr, x87) are not switched: a process that changes the rounding mode restores it before it
// waits.
// Reference: the pair of classes by which SystemC parts its kernel from its coroutine packages (IEEE 1666,
// sc_cor).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace widthwise::sim {

enum class Switching : std::uint8_t {
    Coroutine,    // C++20 coroutines: no stacks
    Assembly,     // own stack switch (x86-64, x32, i386)
    BoostContext, // Boost.Context, where the build found it
    Ucontext,     // swapcontext: a system call for the signal mask with every switch
    StackCopy,    // one stack for all; what a process uses of it is copied out and in (peringer-2007)
    Thread,       // one thread of the operating system for each process
};

/// Its name as the command lines of bench and tests have it: "coroutine", "assembly", ...
const char *name_of(Switching switching) noexcept;

/// All back-ends that this build has.
std::vector<Switching> available_switching();

/// A process's stack and where it stopped on it.
struct Context {
    std::byte *stack = nullptr; // lowest usable byte; the guard page ends here
    std::size_t size = 0;
    // The C++ runtime keeps, for each thread, which exceptions are being handled; each stack needs its own.
    void *caught_exceptions = nullptr;
    unsigned uncaught_exceptions = 0;
    bool is_thread = false; // and so has exception state and a stack of its own already
    bool lost = false;      // it overflowed: never to be entered again
};

class Switcher {
  public:
    /// Runs on the new stack; must not return. (Nor may it be noexcept: threads are ended by an exception.)
    using Entry = void (*)(void *argument);

    virtual ~Switcher() = default;
    /// Throws std::bad_alloc if there is no memory, or no mapping left, for another stack.
    virtual Context *create(Entry entry, void *argument) = 0;
    /// From the dispatcher to the context; returns when it leaves.
    virtual void enter(Context &context) noexcept = 0;
    /// From the entered context back to the dispatcher; returns when it is entered again, never after the
    /// last time.
    virtual void leave(Context &context, bool last) = 0;
    virtual void destroy(Context *context) noexcept = 0;
    /// Whether locals can be reached while their process waits (not so when stacks are copied).
    [[nodiscard]] virtual bool stacks_stay() const noexcept { return true; }
};

/// Null where this build has no such back-end, and for Switching::Coroutine, which needs none.
std::unique_ptr<Switcher> make_switcher(Switching switching, std::size_t stack_size);

} // namespace widthwise::sim
