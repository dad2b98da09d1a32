// The Kalman filter: a track is carried from layer to layer, blurred by what scatters it, and sharpened by
// hits (Fruehwirth, Nucl. Instr. Meth. A262, 1987).
#ifndef RECO_KALMAN_FILTER_HPP
#define RECO_KALMAN_FILTER_HPP

#include <optional>

#include "event.hpp"

namespace reco {

// The track after it was scattered in `left` and has come to the cylinder of `next`, which may be further in
// or out.
std::optional<Crossing> advanced(Crossing crossing, const Layer &left, const Layer &next,
                                 const Conditions &conditions);

// The difference between a hit and a track at that hit's layer, measured in their common errors.
struct Residual {
    std::array<double, 2> difference;             // azimuth, z
    std::array<std::array<double, 2>, 2> inverse; // of the covariance of the difference
    double chi2;
};
Residual residual(const Crossing &crossing, const Hit &hit);

// The track with the hit taken into account.
Crossing updated(const Crossing &crossing, const Residual &residual);

} // namespace reco

#endif
