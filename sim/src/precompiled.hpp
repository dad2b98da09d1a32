// What nearly every source of the library includes; see WIDTHWISE_SIM_PRECOMPILE.
#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/conditions.hpp"
#include "widthwise/sim/facility.hpp"
#include "widthwise/sim/process.hpp"
#include "widthwise/sim/replications.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
