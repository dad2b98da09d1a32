// Local reconstruction: from what modules say to points in space.
#ifndef RECO_LOCAL_HPP
#define RECO_LOCAL_HPP

#include "event.hpp"

namespace reco {

// Makes clusters and hits of the event's raw hits, with the help of alignment and calibration. Clusters with
// too little charge for a particle are left out.
void reconstruct_hits(Event &event, const Conditions &conditions);

} // namespace reco

#endif
