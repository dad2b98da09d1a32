// The walk over all processes that have not ended.
#pragma once

#include "widthwise/sim/detail/kernel.hpp"

#include <cstring>

namespace widthwise::sim::detail {

template <class Visit> void Kernel::each_process(Visit visit) {
    frames_.each([&](void *block) {
        // A living process has a serial number. Without one the block's other bytes mean nothing.
        std::uint32_t serial = 0;
        std::memcpy(&serial, static_cast<std::byte *>(block) + state_offset + offsetof(Node, serial),
                    sizeof serial);
        if (serial != 0)
            visit(*reinterpret_cast<ProcessState *>(static_cast<std::byte *>(block) + state_offset));
    });
}

} // namespace widthwise::sim::detail
