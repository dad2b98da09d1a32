// Numbers in error messages.
#pragma once

#include <cstdio>
#include <string>

namespace widthwise::sim::detail {

/// With as many digits as identify the double.
inline std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

} // namespace widthwise::sim::detail
