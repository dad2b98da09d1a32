// The results of events: how many particles were found, how well, and histograms.
//
// Everything is an integer. Sums of integers do not depend on the order in which they are made, so that the
// answer is one and the same however events were handed out, and to whom.
#ifndef RECO_TALLY_HPP
#define RECO_TALLY_HPP

#include <array>
#include <cstdint>
#include <cstdio>

#include "event.hpp"

namespace reco {

enum Count {
    EVENTS,
    PARTICLES,
    FINDABLE, // particles with enough hits
    FOUND,    // of those
    TRACKS,
    FAKES,      // tracks most of whose hits are not one particle's
    DUPLICATES, // tracks of a particle that another track has found
    HITS,
    HITS_USED,
    HITS_RIGHT, // of those, of the particle that the track has found
    SEEDS,
    CANDIDATES,
    COUNTS
};

// Of the values of (fit - truth) / error that lie within PULL_REACH of 0, in units of 2^-PULL_BITS; and how
// many do not.
struct Pull {
    std::int64_t entries, beyond, sum, squares;
};
constexpr double PULL_REACH = 5;
constexpr int PULL_BITS = 20;

enum Histogram {
    MOMENTUM_OF_FINDABLE,
    MOMENTUM_OF_FOUND,
    SLOPE_OF_FINDABLE,
    SLOPE_OF_FOUND,
    HITS_OF_TRACK,
    MISSING_OF_TRACK,
    CHI2_RATIO_OF_TRACK,
    PULL_OF_PARAMETER, // this and the next ones
    HISTOGRAMS = PULL_OF_PARAMETER + PARAMETERS
};
constexpr int BINS = 50;

struct Tally {
    std::array<std::int64_t, COUNTS> counts;
    std::array<Pull, PARAMETERS> pulls;
    std::array<std::array<std::int64_t, BINS>, HISTOGRAMS> histograms;

    Tally &operator+=(const Tally &other);
};

// A tally of this event alone.
Tally tally_of(const Event &event);

// The answer, for people and for comparison to the letter.
void print(const Tally &tally, FILE *to);

} // namespace reco

#endif
