#include "geometry.hpp"

#include <algorithm>
#include <cmath>

#include "elementary.hpp"
#include "random.hpp"

namespace reco {

namespace {

constexpr int around(DetectorId id) { return id >> 8 & 0xff; }
constexpr int along(DetectorId id) { return id & 0xff; }

// Which quality of a module a constant is for.
enum Quality : std::uint64_t { SHIFT_ACROSS = 1, SHIFT_ALONG, BOW, GAIN, TILT };

double quality_of(DetectorId id, Quality quality) { return constant_of(quality << 32 | id); }

} // namespace

bool exists(DetectorId id) {
    return id >> 16 < LAYERS.size() && around(id) < layer_of(id).modules_around &&
           along(id) < layer_of(id).modules_along;
}

DetectorId module_at(const Layer &layer, double azimuth, double z) {
    const double turn = (normalised(azimuth) + PI) / (2 * PI), length = z / (2 * layer.half_length) + 0.5;
    const int column = static_cast<int>(turn * layer.modules_around);
    const int row = static_cast<int>(length * layer.modules_along);
    return detector_id(layer.number, std::clamp(column, 0, layer.modules_around - 1),
                       std::clamp(row, 0, layer.modules_along - 1));
}

double middle_azimuth(DetectorId id) {
    return 2 * PI * (around(id) + 0.5) / layer_of(id).modules_around - PI;
}

double middle_z(DetectorId id) {
    const Layer &layer = layer_of(id);
    return layer.half_length * (2 * (along(id) + 0.5) / layer.modules_along - 1);
}

double width_of(const Layer &layer) { return 2 * PI * layer.radius / layer.modules_around; }

// Falls off towards the ends and a little towards the coil.
double true_field(double radius, double z) {
    return 1 - 0.03 * square(z / 1150) - 0.01 * square(radius / 1080);
}

double true_shift_across(DetectorId id) { return 0.10 * quality_of(id, SHIFT_ACROSS); }

double true_shift_along(DetectorId id) { return 0.30 * quality_of(id, SHIFT_ALONG); }

double true_bow(DetectorId id, double place) { return 0.03 * quality_of(id, BOW) * (4 * place * place - 1); }

double true_gain(DetectorId id, double place) {
    return 1 + 0.10 * quality_of(id, GAIN) + 0.05 * quality_of(id, TILT) * place;
}

} // namespace reco
