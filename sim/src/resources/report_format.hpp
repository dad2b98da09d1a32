// The format of reports: one line for the resource, one for its wait queue.
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

inline std::string queue_report(const ObservedWaitQueue &queue, double now) {
    const Stat &waits = queue.waits();
    return "    wait queue" + field("mean length", queue.length().mean(now)) +
           field("longest", queue.length().greatest()) + field("now", queue.length().level()) +
           field("mean wait", waits.mean()) +
           field("longest wait", waits.count() > 0 ? waits.greatest() : 0.0) +
           field("served", static_cast<double>(waits.count())) + '\n';
}

} // namespace widthwise::sim
