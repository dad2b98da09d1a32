// Track finding and fitting.
#ifndef RECO_TRACK_FINDING_HPP
#define RECO_TRACK_FINDING_HPP

#include "event.hpp"

namespace reco {

constexpr int FEWEST_HITS = 8; // of a track, and of a particle that should be found

// Follows every seed outwards with a combinatorial Kalman filter, keeps the best of its candidates, lets
// tracks with too many hits in common fight it out, and fits those that are left from the outside to the
// beam.
void find_tracks(Event &event, const Conditions &conditions);

} // namespace reco

#endif
