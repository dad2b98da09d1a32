#include "widthwise/sim/errors.hpp"

#include <cstdio>

namespace widthwise::sim {
namespace {

std::string sentence(const std::string &what, const ErrorContext &where) {
    char text[96];
    std::snprintf(text, sizeof text, " at time %.17g, seed %llu", where.time,
                  static_cast<unsigned long long>(where.seed));
    std::string process;
    if (where.serial != 0) {
        process = "process ";
        if (!where.process.empty())
            process += '"' + where.process + "\" ";
        process += '(' + std::to_string(where.serial) + ')';
    } else {
        process = "no process";
    }
    return what + ": " + process + text;
}

} // namespace

SimulationError::SimulationError(const std::string &what, ErrorContext where)
    : std::runtime_error(sentence(what, where)), where_(std::move(where)) {}

} // namespace widthwise::sim
