// The command line.
#ifndef RECO_OPTIONS_HPP
#define RECO_OPTIONS_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "generation.hpp"
#include "input.hpp"

namespace reco {

enum class ForkPoint { BEFORE_CONDITIONS, AFTER_CONDITIONS, AFTER_FIRST_EVENT };
enum class HandOut { DYNAMIC, ROUND_ROBIN };
enum class Verb { RECONSTRUCT, GENERATE, HELP };

struct Options {
    Verb verb = Verb::RECONSTRUCT;
    std::string file;                   // to write, or to read; none: events are generated as they are needed
    std::optional<std::uint64_t> first; // default: the file's first, or 1
    std::optional<std::uint64_t> events; // default: all that the file has, or 100
    Recipe recipe;

    std::uint64_t conditions = 32 << 20; // bytes in x86-64
    bool counted = false;
    std::uint32_t keep = 0; // events that stay in memory, as those of an output that is written in baskets

    std::uint32_t processes = 0, threads = 0; // neither: this process does all of it
    ForkPoint fork = ForkPoint::AFTER_CONDITIONS;
    HandOut hand_out = HandOut::DYNAMIC;
    std::uint32_t chunk = 1; // events at a time
    bool pin = false;

    std::string output; // folder; none: no logs, no output files
    bool log_events = false, marks = false;
    std::uint64_t fail_at = 0, die_at = 0; // events; 0: none
};

extern const char *const HELP;

// Errors: BAD_INPUT.
Options options_of(int count, const char *const *words);

} // namespace reco

#endif
