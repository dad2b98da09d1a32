#include "generation.hpp"

#include <algorithm>
#include <cmath>

#include "elementary.hpp"
#include "random.hpp"

namespace reco {

namespace {

constexpr double MOST_MOMENTUM = 50;   // transverse, GeV
constexpr double STEEPEST = 1.6;       // |cot theta|
constexpr double BEAM_LENGTH = 40;     // width of the beam spot along z, mm
constexpr double VERTEX_LENGTH = 0.02; // how far from their vertex particles begin, along z, mm
constexpr double VERTEX_WIDTH = 0.05;  // and across, mm
constexpr double EFFICIENCY = 0.97;    // of a layer

std::int32_t in_raw_units(double length) {
    return static_cast<std::int32_t>(std::floor(length / RAW_UNIT + 0.5));
}

// What a module makes of a crossing at this place of a layer.
RawHit recorded(const Layer &layer, double azimuth, double z, double charge, std::int32_t particle) {
    const DetectorId id = module_at(layer, azimuth, z);
    const double across = layer.radius * normalised(azimuth - middle_azimuth(id)), along = z - middle_z(id);
    const double place = std::clamp(across / width_of(layer), -0.5, 0.5);
    return {id, in_raw_units(across + true_shift_across(id) + true_bow(id, place)),
            in_raw_units(along + true_shift_along(id)),
            static_cast<std::int32_t>(charge / true_gain(id, place)), particle};
}

// The spectrum falls with the third power of the transverse momentum.
double transverse_momentum(Random &random) {
    const double rest = square(LEAST_MOMENTUM / MOST_MOMENTUM);
    return LEAST_MOMENTUM / std::sqrt(1 - random.uniform() * (1 - rest));
}

Vector perigee_of_particle(Random &random, double vertex) {
    Vector perigee;
    perigee[CURVATURE] = (random.uniform() < 0.5 ? BEND : -BEND) / transverse_momentum(random);
    perigee[DIRECTION] = random.uniform(-PI, PI);
    perigee[SLOPE] = random.uniform(-STEEPEST, STEEPEST);
    perigee[ACROSS] = VERTEX_WIDTH * random.gaussian();
    perigee[ALONG] = vertex + VERTEX_LENGTH * random.gaussian();
    return perigee;
}

// Flies through every layer that it meets, is scattered there, and is seen or not.
void fly(Random &random, RawEvent &event, Particle &particle) {
    const auto number = static_cast<std::int32_t>(&particle - event.particles.data());
    Vector at = from_perigee(particle.perigee);
    double radius = std::fabs(particle.perigee[ACROSS]);
    for (const Layer &layer : LAYERS) {
        const Place middle = half_way(at, radius, layer.radius);
        const auto step = to_cylinder(at, radius, layer.radius, true_field(middle.radius, middle.z));
        if (!step) {
            return;
        }
        at = step->parameters;
        radius = layer.radius;
        if (std::fabs(at[ALONG]) > layer.half_length) {
            continue;
        }
        if (random.uniform() < EFFICIENCY) {
            const double azimuth = at[ACROSS] + layer.resolution_across / layer.radius * random.gaussian();
            const double z = at[ALONG] + layer.resolution_along * random.gaussian();
            const double charge = 90 + 25 * random.exponential();
            event.hits.push_back(recorded(layer, azimuth, z, charge, number));
            particle.hits++;
        }
        const double angle = scattering_angle(at, layer);
        const double around = angle * random.gaussian(), against = angle * random.gaussian();
        at = scattered(at, around, against);
    }
}

} // namespace

RawEvent generated(const Recipe &recipe, std::uint64_t number) {
    Random random(recipe.seed, number);
    RawEvent event{number, {}, {}};
    const double vertex = BEAM_LENGTH * random.gaussian();
    event.particles.resize(static_cast<std::uint32_t>(random.poisson(recipe.tracks)));
    for (Particle &particle : event.particles) {
        particle = {perigee_of_particle(random, vertex), 0, 0};
        fly(random, event, particle);
    }
    for (const Layer &layer : LAYERS) {
        for (int noise = random.poisson(recipe.noise); noise > 0; noise--) {
            const double azimuth = random.uniform(-PI, PI);
            const double z = random.uniform(-layer.half_length, layer.half_length);
            event.hits.push_back(recorded(layer, azimuth, z, random.uniform(30, 150), NO_PARTICLE));
        }
    }
    return event;
}

} // namespace reco
