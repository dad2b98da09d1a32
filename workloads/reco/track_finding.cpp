#include "track_finding.hpp"

#include <cmath>

#include "kalman_filter.hpp"

namespace reco {

namespace {

constexpr double WINDOW = 5;         // how many standard deviations from the track hits are looked for
constexpr double MOST_CHI2 = 25;     // of one hit: two degrees of freedom, 4e-6 of the good ones are lost
constexpr double PRICE = 15;         // of a missing hit, in chi2
constexpr std::size_t MOST_KEPT = 5; // candidates of a seed
constexpr int MOST_MISSING = 4, LONGEST_GAP = 2;
constexpr double MOST_CHI2_RATIO = 4; // of a track, for each degree of freedom
constexpr double MOST_SHARED = 0.4;   // hits that a better track has, too
// By which the errors grow before the fit, which uses all hits again.
constexpr double FORGETTING = 1000;

using Candidates = std::vector<const Candidate *>;

double badness(const Candidate &candidate) { return candidate.chi2 + PRICE * candidate.missing; }

// The same track in the next layer: with a hit there, or without.
const Candidate *grown(Event &event, const Candidate *parent, const Layer &layer, Crossing crossing, Hit *hit,
                       double chi2) {
    const bool there = hit != nullptr;
    event.candidates.push_back(std::make_unique<Candidate>(
        Candidate{parent, &layer, hit, std::move(crossing), parent ? parent->chi2 + chi2 : chi2,
                  (parent ? parent->hits : 0) + there, (parent ? parent->missing : 0) + !there,
                  there ? 0 : parent->gap + 1}));
    return event.candidates.back().get();
}

// What is known of a seed before its hits are taken into account: nearly nothing.
Crossing guessed(const Seed &seed) {
    const Hit &first = *seed.hits[0];
    Crossing crossing{first.layer->radius, seed.parameters, {}};
    Matrix &covariance = crossing.covariance;
    covariance[ACROSS][ACROSS] = 1e4 * first.azimuth_variance;
    covariance[ALONG][ALONG] = 1e4 * first.z_variance;
    covariance[DIRECTION][DIRECTION] = square(0.1);
    covariance[SLOPE][SLOPE] = square(0.1);
    covariance[CURVATURE][CURVATURE] = square(BEND);
    return crossing;
}

// The seed's three hits as the beginning of a candidate; null if they are not one track after all.
const Candidate *begun(Event &event, const Seed &seed, const Conditions &conditions) {
    const Crossing crossing = guessed(seed);
    const Residual first = residual(crossing, *seed.hits[0]);
    const Candidate *candidate =
        grown(event, nullptr, *seed.hits[0]->layer, updated(crossing, first), seed.hits[0], first.chi2);
    for (std::size_t i = 1; i < seed.hits.size(); i++) {
        Hit *hit = seed.hits[i];
        while (candidate->layer->number != hit->layer->number) {
            const Layer &next = LAYERS[static_cast<std::size_t>(candidate->layer->number) + 1];
            auto at = advanced(candidate->crossing, *candidate->layer, next, conditions);
            if (!at) {
                return nullptr;
            }
            if (next.number != hit->layer->number) {
                candidate = grown(event, candidate, next, std::move(*at), nullptr, 0);
                continue;
            }
            const Residual off = residual(*at, *hit);
            if (off.chi2 > MOST_CHI2) {
                return nullptr;
            }
            candidate = grown(event, candidate, next, updated(*at, off), hit, off.chi2);
        }
    }
    return candidate;
}

// All that a candidate may become in this layer.
void grow(Event &event, const Candidate *candidate, const Layer &layer, const Conditions &conditions,
          Candidates &next) {
    const auto at = advanced(candidate->crossing, *candidate->layer, layer, conditions);
    if (!at) {
        return;
    }
    if (std::fabs(at->parameters[ALONG]) > layer.half_length) {
        next.push_back(candidate); // it passes by the layer's end
        return;
    }
    const Matrix &covariance = at->covariance;
    const double variance = square(layer.resolution_across / layer.radius) + covariance[ACROSS][ACROSS];
    for_hits_near(event.hits[static_cast<std::size_t>(layer.number)], at->parameters[ACROSS],
                  WINDOW * std::sqrt(variance), [&](Hit &hit) {
                      const Residual off = residual(*at, hit);
                      if (off.chi2 < MOST_CHI2) {
                          next.push_back(grown(event, candidate, layer, updated(*at, off), &hit, off.chi2));
                      }
                  });
    if (candidate->missing < MOST_MISSING && candidate->gap < LONGEST_GAP) {
        next.push_back(grown(event, candidate, layer, *at, nullptr, 0));
    }
}

void keep_the_best(Candidates &candidates) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate *a, const Candidate *b) { return badness(*a) < badness(*b); });
    candidates.resize(std::min(candidates.size(), MOST_KEPT));
}

// The best track that begins so; null if there is none.
const Candidate *followed(Event &event, const Seed &seed, const Conditions &conditions) {
    const Candidate *beginning = begun(event, seed, conditions);
    if (beginning == nullptr) {
        return nullptr;
    }
    Candidates candidates = {beginning}, ended, next;
    for (std::size_t number = static_cast<std::size_t>(beginning->layer->number) + 1;
         number < LAYERS.size() && !candidates.empty(); number++) {
        next.clear();
        for (const Candidate *candidate : candidates) {
            const std::size_t before = next.size();
            grow(event, candidate, LAYERS[number], conditions, next);
            if (next.size() == before) {
                ended.push_back(candidate);
            }
        }
        keep_the_best(next);
        std::swap(candidates, next);
    }
    candidates.insert(candidates.end(), ended.begin(), ended.end());

    const Candidate *best = nullptr;
    const auto quality = [](const Candidate &candidate) {
        return MOST_CHI2 * candidate.hits - badness(candidate);
    };
    for (const Candidate *candidate : candidates) {
        while (candidate->hit == nullptr) {
            candidate = candidate->parent; // what is missing at the end may never have been there
        }
        if (best == nullptr || quality(*candidate) > quality(*best)) {
            best = candidate;
        }
    }
    const bool good =
        best->hits >= FEWEST_HITS && best->chi2 < MOST_CHI2_RATIO * (2 * best->hits - PARAMETERS);
    return good ? best : nullptr;
}

std::vector<Hit *> hits_of(const Candidate *last) {
    std::vector<Hit *> hits;
    for (; last != nullptr; last = last->parent) {
        if (last->hit != nullptr) {
            hits.push_back(last->hit);
        }
    }
    return {hits.rbegin(), hits.rend()};
}

// Whether these three hits are of one track already.
bool is_used(const Seed &seed) {
    const auto &tracks = seed.hits[0]->tracks;
    return std::any_of(tracks.begin(), tracks.end(), [&](const Track *track) {
        return std::all_of(seed.hits.begin() + 1, seed.hits.end(), [&](const Hit *hit) {
            return std::find(hit->tracks.begin(), hit->tracks.end(), track) != hit->tracks.end();
        });
    });
}

void claim(const Track &track) {
    for (Hit *hit : track.hits) {
        hit->tracks.push_back(&track);
    }
}

// Best first; a track that has too many of its hits in common with better ones goes.
void resolve(Event &event) {
    event.tracks.sort([](const auto &a, const auto &b) {
        return a->hits.size() != b->hits.size() ? a->hits.size() > b->hits.size() : a->chi2 < b->chi2;
    });
    for (auto &hits : event.hits) {
        for (auto &hit : hits) {
            hit->tracks.clear();
        }
    }
    for (auto track = event.tracks.begin(); track != event.tracks.end();) {
        const auto &hits = (*track)->hits;
        const auto shared =
            std::count_if(hits.begin(), hits.end(), [](const Hit *hit) { return !hit->tracks.empty(); });
        if (static_cast<double>(shared) > MOST_SHARED * static_cast<double>(hits.size())) {
            track = event.tracks.erase(track);
        } else {
            claim(**track);
            ++track;
        }
    }
}

// From the outermost hit to the beam, so that every hit counts at the perigee; false if there is no way.
bool fit(Track &track, const Conditions &conditions) {
    const Candidate *at = track.last;
    Crossing crossing = at->crossing;
    for (Vector &row : crossing.covariance) {
        for (double &element : row) {
            element *= FORGETTING;
        }
    }
    const Layer *layer = at->layer;
    for (std::size_t number = static_cast<std::size_t>(layer->number) + 1; number-- > 0;) {
        const bool was_there = at != nullptr && at->layer->number == LAYERS[number].number;
        if (number != static_cast<std::size_t>(layer->number)) {
            auto next = advanced(crossing, *layer, LAYERS[number], conditions);
            if (!next) {
                return false;
            }
            if (!was_there && std::fabs(next->parameters[ALONG]) > LAYERS[number].half_length) {
                continue; // no material
            }
            crossing = std::move(*next);
            layer = &LAYERS[number];
        }
        if (was_there) {
            if (at->hit != nullptr) {
                crossing = updated(crossing, residual(crossing, *at->hit));
            }
            at = at->parent;
        }
    }
    add_scattering(crossing.covariance, crossing.parameters, *layer);
    const Place middle = half_way(crossing.parameters, crossing.radius, 0);
    const Step step =
        to_perigee(crossing.parameters, crossing.radius, conditions.field(middle.radius, middle.z));
    track.perigee = step.parameters;
    track.perigee[DIRECTION] = normalised(track.perigee[DIRECTION]);
    track.covariance = carried(step.derivatives, crossing.covariance);
    return true;
}

} // namespace

void find_tracks(Event &event, const Conditions &conditions) {
    for (const auto &seed : event.seeds) {
        if (is_used(*seed)) {
            continue;
        }
        if (const Candidate *last = followed(event, *seed, conditions)) {
            event.tracks.push_back(std::make_unique<Track>(Track{last, last->chi2, hits_of(last), {}, {}}));
            claim(*event.tracks.back());
        }
    }
    resolve(event);
    std::erase_if(event.tracks, [&](const auto &track) { return !fit(*track, conditions); });
}

} // namespace reco
