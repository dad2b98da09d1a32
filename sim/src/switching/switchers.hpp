// One factory for each back-end; null from those that the build left out.
#pragma once

#include "widthwise/sim/switching.hpp"

namespace widthwise::sim {

std::unique_ptr<Switcher> make_assembly_switcher(std::size_t stack_size);
std::unique_ptr<Switcher> make_boost_switcher(std::size_t stack_size);
std::unique_ptr<Switcher> make_ucontext_switcher(std::size_t stack_size);
std::unique_ptr<Switcher> make_copying_switcher(std::size_t stack_size);
std::unique_ptr<Switcher> make_thread_switcher(std::size_t stack_size);

/// Whether the build found Boost.Context.
bool has_boost_context() noexcept;

} // namespace widthwise::sim
