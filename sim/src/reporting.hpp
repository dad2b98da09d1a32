// How reports are worded: one line for the resource, one for its line of waiters.
#pragma once

#include "widthwise/sim/waiting.hpp"

#include <cstdio>
#include <string>

namespace widthwise::sim {

inline std::string field(const char *name, double value) {
    char text[64];
    std::snprintf(text, sizeof text, "  %s %.6g", name, value);
    return text;
}

inline std::string line_report(const ObservedLine &line, double now) {
    const Stat &waits = line.waits();
    return "    line" + field("mean length", line.length().mean(now)) +
           field("longest", line.length().greatest()) + field("now", line.length().level()) +
           field("mean wait", waits.mean()) +
           field("longest wait", waits.count() > 0 ? waits.greatest() : 0.0) +
           field("served", static_cast<double>(waits.count())) + '\n';
}

} // namespace widthwise::sim
