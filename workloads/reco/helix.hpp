// Helices about the beam's direction: where they cross cylinders, and how errors are carried along.
#ifndef RECO_HELIX_HPP
#define RECO_HELIX_HPP

#include <array>
#include <optional>

#include "geometry.hpp"

namespace reco {

// Five parameters of a track. On a cylinder, ACROSS is the azimuth of the crossing; at the perigee, the point
// nearest to the beam, it is d0, the distance from it: positive where the beam is to the left of the track.
enum Parameter {
    ACROSS,    // rad, or mm at the perigee
    ALONG,     // z, mm
    DIRECTION, // azimuth of the momentum, outwards, rad
    SLOPE,     // cot theta: z for each mm in the transverse plane
    CURVATURE, // 1/mm, as it would be in the nominal field; positive turns anticlockwise
    PARAMETERS
};

using Vector = std::array<double, PARAMETERS>;
using Matrix = std::array<Vector, PARAMETERS>;

// A track's parameters after a step, and their derivatives by those before it.
struct Step {
    Vector parameters;
    Matrix derivatives;
};

// From one cylinder to another, outwards or inwards, in a field of so many times the nominal one. Nothing, if
// the track does not come there.
std::optional<Step> to_cylinder(const Vector &from, double radius, double target, double field);

// From a cylinder back to the perigee.
Step to_perigee(const Vector &from, double radius, double field);

// The perigee, as a point on the (small) cylinder of radius |d0|.
Vector from_perigee(const Vector &perigee);

// Where the field of a step is asked for: half-way in r.
struct Place {
    double radius, z;
};
Place half_way(const Vector &from, double radius, double target);

// Width of the multiple scattering angle in one projection, in rad, of a track that crosses this layer
// (Highland's formula: Review of Particle Physics, "Passage of particles through matter"). Pions at these
// momenta: beta is 1.
double scattering_angle(const Vector &crossing, const Layer &layer);

// What scattering by these two small angles (rad) does: one turns in the transverse plane, one against the
// beam. The momentum stays, so that the curvature changes with the slope.
Vector scattered(const Vector &crossing, double around, double against);

// The covariance that scattering in this layer adds.
void add_scattering(Matrix &covariance, const Vector &crossing, const Layer &layer);

// derivatives * covariance * derivatives^T
Matrix carried(const Matrix &derivatives, const Matrix &covariance);

} // namespace reco

#endif
