// What lies on a new stack before switch.S first goes there.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" void widthwise_sim_switch(void **save, void *load);
extern "C" void widthwise_sim_begin();

namespace widthwise::sim {

/// The registers switch.S pops, in memory order. Its end is the stack's top, a multiple of 16.
struct FirstFrame {
#if defined(__x86_64__)
    using Word = std::uint64_t;
    Word r15 = 0, r14 = 0, argument /* r13 */ = 0, entry /* r12 */ = 0, rbx = 0, rbp = 0, begin = 0;
#else
    using Word = std::uint32_t;
    Word edi = 0, argument /* esi */ = 0, entry /* ebx */ = 0, ebp = 0, begin = 0;
#endif
};

inline FirstFrame first_frame(void (*entry)(void *), void *argument) noexcept {
    FirstFrame frame;
    frame.entry = reinterpret_cast<std::uintptr_t>(entry);
    frame.argument = reinterpret_cast<std::uintptr_t>(argument);
    frame.begin = reinterpret_cast<std::uintptr_t>(&widthwise_sim_begin);
    return frame;
}

} // namespace widthwise::sim
