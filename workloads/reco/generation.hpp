// Events: particles, and what the detector would have recorded of them.
#ifndef RECO_GENERATION_HPP
#define RECO_GENERATION_HPP

#include <cstdint>
#include <vector>

#include "helix.hpp"

namespace reco {

// A generated particle. These structs stand in input files as they are: all their members have one size and
// one alignment in every ABI.
struct Particle {
    Vector perigee; // at its origin, before the first scattering
    std::int32_t hits, unused;
};
static_assert(sizeof(Particle) == 48);

constexpr std::int32_t NO_PARTICLE = -1;

// What a module says: where in it, in its own coordinates, and how much charge.
struct RawHit {
    DetectorId detector;
    std::int32_t across, along; // from the middle of the module, in units of RAW_UNIT
    std::int32_t charge;
    std::int32_t particle; // which of the event made it, or NO_PARTICLE: for checks alone
};
static_assert(sizeof(RawHit) == 20);

constexpr double RAW_UNIT = 1e-5; // mm

struct RawEvent {
    std::uint64_t number;
    std::vector<Particle> particles;
    std::vector<RawHit> hits;
};

// How events are made. They are numbered from 1; each is a function of its number and these.
struct Recipe {
    std::uint64_t seed = 1;
    std::uint32_t tracks = 120; // the mean number of particles
    std::uint32_t noise = 40;   // the mean number of noise hits in each layer
};

constexpr double LEAST_MOMENTUM = 0.9; // transverse, GeV

RawEvent generated(const Recipe &recipe, std::uint64_t number);

} // namespace reco

#endif
