// From a process's state to its frame, and back.
#pragma once

#include "widthwise/sim/detail/process_state.hpp"

#include <cstddef>
#include <cstdint>

namespace widthwise::sim::detail {

inline void *frame_of(ProcessState &state) noexcept {
    return reinterpret_cast<std::byte *>(&state) - state_offset;
}

inline PlainFrame &plain_frame(ProcessState &state) noexcept {
    return *static_cast<PlainFrame *>(frame_of(state));
}

inline bool has(const ProcessState &process, std::uint8_t flag) noexcept {
    return (process.flags & flag) != 0;
}

/// Whether the process has a stack: its context is then the switcher's, not its own frame.
inline bool is_on_stack(ProcessState &process) noexcept {
    return process.context != nullptr && process.context != frame_of(process);
}

} // namespace widthwise::sim::detail
