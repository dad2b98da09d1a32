#include "widthwise/sim/switching.hpp"

#include "switching/switchers.hpp"

namespace widthwise::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

} // namespace

const char *name_of(Switching switching) noexcept {
    switch (switching) {
    case Switching::Coroutine:
        return "coroutine";
    case Switching::Assembly:
        return "assembly";
    case Switching::BoostContext:
        return "boost";
    case Switching::Ucontext:
        return "ucontext";
    case Switching::StackCopy:
        return "copy";
    case Switching::Thread:
        return "thread";
    }
    return "unknown";
}

std::vector<Switching> available_switching() {
    std::vector<Switching> all = {Switching::Coroutine, Switching::Assembly, Switching::Ucontext,
                                  Switching::StackCopy, Switching::Thread};
    // The address sanitizer keeps its own record of what lies where on a stack, which copying does not move.
    if (sanitized)
        std::erase(all, Switching::StackCopy);
    if (has_boost_context())
        all.insert(all.begin() + 2, Switching::BoostContext);
    return all;
}

std::unique_ptr<Switcher> make_switcher(Switching switching, std::size_t stack_size) {
    switch (switching) {
    case Switching::Coroutine:
        return nullptr;
    case Switching::Assembly:
        return make_assembly_switcher(stack_size);
    case Switching::BoostContext:
        return make_boost_switcher(stack_size);
    case Switching::Ucontext:
        return make_ucontext_switcher(stack_size);
    case Switching::StackCopy:
        return make_copying_switcher(stack_size);
    case Switching::Thread:
        return make_thread_switcher(stack_size);
    }
    return nullptr;
}

} // namespace widthwise::sim
