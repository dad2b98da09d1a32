// The detector: cylinders about the beam, tiled with modules, in the field of a solenoid.
//
// Units throughout: mm, GeV, radians. z is along the beam and the field, r the distance from it.
#ifndef RECO_GEOMETRY_HPP
#define RECO_GEOMETRY_HPP

#include <array>
#include <cstdint>

namespace reco {

struct Layer {
    int number;
    double radius, half_length;
    double resolution_across, resolution_along; // of a hit: along the circumference, along the beam
    double thickness;                           // in radiation lengths, crossed at a right angle
    int modules_around, modules_along;
};

// Radii, resolutions and material are of the kind of the CMS barrel: four layers of pixels and ten of strips,
// glued back to back at a small angle for the sake of z (CMS Technical Design Reports for the pixel upgrade,
// CERN-LHCC-2012-016, and the tracker, CERN-LHCC-98-006). Rounded: this is a toy.
constexpr std::array<Layer, 14> LAYERS = {{
    {0, 30, 280, 0.012, 0.025, 0.015, 12, 8},
    {1, 68, 280, 0.012, 0.025, 0.015, 28, 8},
    {2, 109, 280, 0.012, 0.025, 0.015, 44, 8},
    {3, 160, 280, 0.012, 0.025, 0.015, 64, 8},
    {4, 255, 700, 0.030, 0.230, 0.020, 26, 8},
    {5, 339, 700, 0.030, 0.230, 0.020, 35, 8},
    {6, 418, 700, 0.035, 0.230, 0.020, 44, 8},
    {7, 498, 700, 0.035, 0.230, 0.020, 52, 8},
    {8, 608, 1150, 0.045, 0.530, 0.025, 64, 12},
    {9, 692, 1150, 0.045, 0.530, 0.025, 72, 12},
    {10, 780, 1150, 0.045, 0.530, 0.020, 82, 12},
    {11, 868, 1150, 0.045, 0.530, 0.020, 91, 12},
    {12, 965, 1150, 0.035, 0.530, 0.020, 101, 12},
    {13, 1080, 1150, 0.035, 0.530, 0.020, 113, 12},
}};

// Which module: layer, place around, place along. The order of ids is that of the places.
using DetectorId = std::uint32_t;

constexpr DetectorId detector_id(int layer, int around, int along) {
    return static_cast<DetectorId>(layer << 16 | around << 8 | along);
}

constexpr const Layer &layer_of(DetectorId id) { return LAYERS[id >> 16]; }

// Whether there is such a module at all.
bool exists(DetectorId id);

// The module at this place of a layer.
DetectorId module_at(const Layer &layer, double azimuth, double z);

// Where a module's middle is.
double middle_azimuth(DetectorId id);
double middle_z(DetectorId id);

// How wide a module is along the circumference.
double width_of(const Layer &layer);

// The solenoid's field in its middle: curvature in 1/mm = -charge * BEND / transverse momentum in GeV.
constexpr double BEND = 0.299792458e-3 * 3.8;

// The field at a place, as a part of that in the middle.
double true_field(double radius, double z);

// What is true of a module and unknown to who reads its raw data; the conditions are measurements of it. A
// module lies elsewhere than planned, is bent, and its response differs from place to place. `place` is
// across it, from -1/2 to 1/2.
double true_shift_across(DetectorId id);
double true_shift_along(DetectorId id);
double true_bow(DetectorId id, double place);
double true_gain(DetectorId id, double place);

} // namespace reco

#endif
