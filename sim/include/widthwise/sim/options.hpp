// What a simulation is made with.
#pragma once

#include "widthwise/sim/event_list.hpp"
#include "widthwise/sim/switching.hpp"

#include <cstddef>
#include <cstdint>

namespace widthwise::sim {

struct Options {
    std::uint64_t seed = 1;
    double start = 0.0; // model time at the beginning
    Switching switching = Switching::Coroutine;
    Listing listing = Listing::Automatic;
    std::size_t stack_size = 65536;          // bytes for each process, where processes have stacks
    bool trace = false;                      // whether trace_hash() includes every event
    std::uint64_t most_at_once = 10'000'000; // more events than this at one time throw SameTimeLoop
};

} // namespace widthwise::sim
