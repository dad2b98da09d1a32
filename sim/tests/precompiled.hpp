// What nearly every test and model includes; see WIDTHWISE_SIM_FAST_BUILD.
#include "check.hpp"

#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/gates.hpp"
#include "widthwise/sim/process.hpp"
#include "widthwise/sim/store.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <vector>
