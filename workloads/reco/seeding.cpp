#include "seeding.hpp"

#include <cmath>

namespace reco {

namespace {

// Three of the four layers of pixels, of which one may have missed the particle.
constexpr std::array<std::array<std::size_t, 3>, 4> TRIPLETS = {{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}};

constexpr double MOST_CURVATURE = BEND / 0.8; // a little below the least momentum, for the resolution's sake
constexpr double FURTHEST_ACROSS = 0.5;       // of the perigee from the beam, mm
constexpr double FURTHEST_ALONG = 250;        // and from the middle of the beam spot, mm
constexpr double STEEPEST_LINE = 1.8;         // |cot theta|
constexpr double KINK = 0.010;                // scattering between two layers, at most, rad

double distance(const Hit &from, const Hit &to) { return to.layer->radius - from.layer->radius; }

// What d0 can do to the difference of two azimuths: asin(d0 / r) at each.
double parallax(const Hit &from, const Hit &to) {
    return FURTHEST_ACROSS * (1 / from.layer->radius - 1 / to.layer->radius);
}

// How far the azimuth of the next hit can be from the first's.
double reach_of_pair(const Hit &first, const Layer &layer) {
    const double away = layer.radius - first.layer->radius;
    return 1.05 * MOST_CURVATURE * away / 2 + FURTHEST_ACROSS * (1 / first.layer->radius - 1 / layer.radius) +
           KINK;
}

bool comes_from_beam(const Hit &first, const Hit &second) {
    const double slope = (second.z - first.z) / distance(first, second);
    return std::fabs(slope) < STEEPEST_LINE &&
           std::fabs(first.z - slope * first.layer->radius) < FURTHEST_ALONG;
}

// Both projections of the third hit follow from the other two, but for scattering and d0.
double expected_azimuth(const Hit &first, const Hit &second, const Layer &layer) {
    const double turn = normalised(second.azimuth - first.azimuth) / distance(first, second);
    return second.azimuth + turn * (layer.radius - second.layer->radius);
}

double reach_of_triplet(const Hit &first, const Hit &second, const Layer &layer) {
    const double lever = (layer.radius - second.layer->radius) / distance(first, second);
    return lever * parallax(first, second) + KINK * lever;
}

bool lie_in_line(const Hit &first, const Hit &second, const Hit &third) {
    const double slope = (second.z - first.z) / distance(first, second);
    const double off = third.z - second.z - slope * distance(second, third);
    return std::fabs(off) < KINK * (1 + square(slope)) * distance(second, third) + 0.2;
}

// The circle through three points, and with it the parameters at the first.
Vector through(const std::array<Hit *, 3> &hits) {
    std::array<double, 3> x, y;
    for (std::size_t i = 0; i < 3; i++) {
        x[i] = hits[i]->layer->radius * cosine(hits[i]->azimuth);
        y[i] = hits[i]->layer->radius * sine(hits[i]->azimuth);
    }
    const auto chord = [&](std::size_t i, std::size_t j) {
        return std::sqrt(square(x[j] - x[i]) + square(y[j] - y[i]));
    };
    const double area = (x[1] - x[0]) * (y[2] - y[0]) - (y[1] - y[0]) * (x[2] - x[0]);
    const double curvature = 2 * area / (chord(0, 1) * chord(0, 2) * chord(1, 2));
    const double half_turn = curvature * chord(0, 2) / 2; // its sine
    const double turn = half_turn * arcsine_ratio(half_turn);
    const double length = chord(0, 2) * arcsine_ratio(half_turn);
    return {hits[0]->azimuth, hits[0]->z, normalised(arctangent(y[2] - y[0], x[2] - x[0]) - turn),
            (hits[2]->z - hits[0]->z) / length, curvature};
}

bool plausible(const Vector &parameters, double radius) {
    return std::fabs(parameters[CURVATURE]) < MOST_CURVATURE &&
           std::fabs(to_perigee(parameters, radius, 1).parameters[ACROSS]) < FURTHEST_ACROSS;
}

} // namespace

void find_seeds(Event &event) {
    for (const auto &triplet : TRIPLETS) {
        const auto &[inner, middle, outer] = triplet;
        const Layer &second_layer = LAYERS[middle], &third_layer = LAYERS[outer];
        const auto &seconds = event.hits[middle], &thirds = event.hits[outer];
        for (const auto &first : event.hits[inner]) {
            const auto try_pair = [&](Hit &second) {
                if (!comes_from_beam(*first, second)) {
                    return;
                }
                const auto try_triplet = [&](Hit &third) {
                    const std::array<Hit *, 3> hits = {first.get(), &second, &third};
                    if (!lie_in_line(*first, second, third)) {
                        return;
                    }
                    const Vector parameters = through(hits);
                    if (plausible(parameters, first->layer->radius)) {
                        event.seeds.push_back(std::make_unique<Seed>(Seed{hits, parameters}));
                    }
                };
                for_hits_near(thirds, expected_azimuth(*first, second, third_layer),
                              reach_of_triplet(*first, second, third_layer), try_triplet);
            };
            for_hits_near(seconds, first->azimuth, reach_of_pair(*first, second_layer), try_pair);
        }
    }
}

} // namespace reco
