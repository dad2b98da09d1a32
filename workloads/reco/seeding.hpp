// Seeding: three hits in the innermost layers that may lie on one helix from near the beam.
#ifndef RECO_SEEDING_HPP
#define RECO_SEEDING_HPP

#include "event.hpp"

namespace reco {

void find_seeds(Event &event);

} // namespace reco

#endif
