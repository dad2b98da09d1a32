// What is made of an event: clusters, hits, seeds, candidates, tracks. Objects that point at one another,
// each allocated by itself and owned by the event, as in the programs that this one stands for.
#ifndef RECO_EVENT_HPP
#define RECO_EVENT_HPP

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "conditions.hpp"
#include "elementary.hpp"
#include "generation.hpp"
#include "helix.hpp"

namespace reco {

struct Track;

// Charge in neighbouring strips of a module.
struct Cluster {
    const Module *module;
    const RawHit *raw;
    std::vector<StripReference> strips;
};

// A calibrated point in space.
struct Hit {
    const Cluster *cluster;
    const Layer *layer;
    double azimuth, z;
    double azimuth_variance, z_variance;
    std::list<const Track *> tracks; // that use it

    std::int32_t particle() const { return cluster->raw->particle; }
};

// A track's parameters where it crosses a cylinder, and their covariance.
struct Crossing {
    double radius;
    Vector parameters;
    Matrix covariance;
};

// Three hits that may be the beginning of a track, from the inside.
struct Seed {
    std::array<Hit *, 3> hits;
    Vector parameters; // at the first
};

// A track so far: its last layer, and a link to where it was before. Those that part at a hit share their
// past.
struct Candidate {
    const Candidate *parent;
    const Layer *layer;
    Hit *hit;          // null: it should have one here, and has none
    Crossing crossing; // with the hit taken into account
    double chi2;
    int hits, missing, gap; // in all; in all; since the last hit
};

struct Track {
    const Candidate *last; // the outermost hit
    double chi2;
    std::vector<Hit *> hits; // from the inside
    Vector perigee;
    Matrix covariance;
};

struct Event {
    RawEvent raw;
    std::map<DetectorId, std::list<std::unique_ptr<Cluster>>> clusters;
    std::array<std::vector<std::unique_ptr<Hit>>, LAYERS.size()> hits; // each layer's, by azimuth
    std::list<std::unique_ptr<Seed>> seeds;
    std::vector<std::unique_ptr<Candidate>> candidates;
    std::list<std::unique_ptr<Track>> tracks;
};

// Calls `what` with each hit of a layer whose azimuth is within `reach` of this one, which may lie beyond the
// seam at pi.
template <typename What>
void for_hits_near(const std::vector<std::unique_ptr<Hit>> &hits, double azimuth, double reach, What what) {
    const auto between = [&](double low, double high) {
        const auto before = [](const std::unique_ptr<Hit> &hit, double least) {
            return hit->azimuth < least;
        };
        for (auto at = std::lower_bound(hits.begin(), hits.end(), low, before);
             at != hits.end() && (*at)->azimuth <= high; ++at) {
            what(**at);
        }
    };
    const double middle = normalised(azimuth);
    between(middle - reach, middle + reach);
    if (middle - reach < -PI) {
        between(middle - reach + 2 * PI, PI);
    }
    if (middle + reach > PI) {
        between(-PI, middle + reach - 2 * PI);
    }
}

} // namespace reco

#endif
