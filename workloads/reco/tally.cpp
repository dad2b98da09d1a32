#include "tally.hpp"

#include <cinttypes>
#include <cmath>

#include "checksum.hpp"
#include "track_finding.hpp"

namespace reco {

namespace {

constexpr double PURE = 0.75; // the part of a track's hits that must be of one particle

// The particle whose track this is, and how many of the track's hits are its own.
struct Owner {
    std::int32_t particle; // or NO_PARTICLE
    std::int64_t hits;
};

Owner owner_of(const Track &track) {
    std::map<std::int32_t, std::int64_t> hits;
    for (const Hit *hit : track.hits) {
        hits[hit->particle()]++;
    }
    for (const auto &[particle, count] : hits) {
        if (static_cast<double>(count) >= PURE * static_cast<double>(track.hits.size())) {
            return {particle, count};
        }
    }
    return {NO_PARTICLE, 0};
}

// What lies below or above goes into the first and the last bin.
void fill(Tally &tally, int histogram, double value, double low, double high) {
    const double bin = (value - low) / (high - low) * BINS;
    const int number = bin < 0 ? 0 : bin >= BINS ? BINS - 1 : static_cast<int>(bin);
    tally.histograms[static_cast<std::size_t>(histogram)][static_cast<std::size_t>(number)]++;
}

void compare(Tally &tally, const Track &track, const Particle &particle) {
    for (std::size_t i = 0; i < PARAMETERS; i++) {
        double difference = track.perigee[i] - particle.perigee[i];
        if (i == DIRECTION) {
            difference = normalised(difference);
        }
        const double value = difference / std::sqrt(track.covariance[i][i]);
        fill(tally, PULL_OF_PARAMETER + static_cast<int>(i), value, -PULL_REACH, PULL_REACH);
        Pull &pull = tally.pulls[i];
        if (!(std::fabs(value) < PULL_REACH)) {
            pull.beyond++;
            continue;
        }
        pull.entries++;
        pull.sum += static_cast<std::int64_t>(std::floor(value * (1 << PULL_BITS) + 0.5));
        pull.squares += static_cast<std::int64_t>(std::floor(value * value * (1 << PULL_BITS) + 0.5));
    }
}

} // namespace

Tally &Tally::operator+=(const Tally &other) {
    for (std::size_t i = 0; i < counts.size(); i++) {
        counts[i] += other.counts[i];
    }
    for (std::size_t i = 0; i < pulls.size(); i++) {
        pulls[i].entries += other.pulls[i].entries;
        pulls[i].beyond += other.pulls[i].beyond;
        pulls[i].sum += other.pulls[i].sum;
        pulls[i].squares += other.pulls[i].squares;
    }
    for (std::size_t i = 0; i < histograms.size(); i++) {
        for (std::size_t j = 0; j < histograms[i].size(); j++) {
            histograms[i][j] += other.histograms[i][j];
        }
    }
    return *this;
}

Tally tally_of(const Event &event) {
    const auto &particles = event.raw.particles;
    Tally tally{};
    auto &counts = tally.counts;
    counts[EVENTS] = 1;
    counts[PARTICLES] = static_cast<std::int64_t>(particles.size());
    counts[SEEDS] = static_cast<std::int64_t>(event.seeds.size());
    counts[CANDIDATES] = static_cast<std::int64_t>(event.candidates.size());
    for (const auto &hits : event.hits) {
        counts[HITS] += static_cast<std::int64_t>(hits.size());
    }
    std::vector<bool> found(particles.size());
    for (const auto &track : event.tracks) {
        counts[TRACKS]++;
        counts[HITS_USED] += static_cast<std::int64_t>(track->hits.size());
        fill(tally, HITS_OF_TRACK, static_cast<double>(track->hits.size()), 0, BINS);
        fill(tally, MISSING_OF_TRACK, track->last->missing, 0, BINS);
        const double freedom = 2 * static_cast<double>(track->hits.size()) - int{PARAMETERS};
        fill(tally, CHI2_RATIO_OF_TRACK, track->chi2 / freedom, 0, 5);
        const Owner owner = owner_of(*track);
        if (owner.particle == NO_PARTICLE) {
            counts[FAKES]++;
            continue;
        }
        const auto number = static_cast<std::size_t>(owner.particle);
        counts[HITS_RIGHT] += owner.hits;
        counts[DUPLICATES] += found[number];
        found[number] = true;
        compare(tally, *track, particles[number]);
    }
    for (std::size_t i = 0; i < particles.size(); i++) {
        if (particles[i].hits < FEWEST_HITS) {
            continue;
        }
        const double momentum = BEND / std::fabs(particles[i].perigee[CURVATURE]);
        const double slope = particles[i].perigee[SLOPE];
        counts[FINDABLE]++;
        fill(tally, MOMENTUM_OF_FINDABLE, momentum, 0, 10);
        fill(tally, SLOPE_OF_FINDABLE, slope, -1, 1);
        if (found[i]) {
            counts[FOUND]++;
            fill(tally, MOMENTUM_OF_FOUND, momentum, 0, 10);
            fill(tally, SLOPE_OF_FOUND, slope, -1, 1);
        }
    }
    return tally;
}

void print(const Tally &tally, FILE *to) {
    const auto count = [&](const char *name, Count which) {
        std::fprintf(to, "%-24s %" PRId64 "\n", name, tally.counts[which]);
    };
    const auto ratio = [&](const char *name, Count part, Count whole) {
        const auto all = static_cast<double>(tally.counts[whole]);
        const double percent = all > 0 ? 100 * static_cast<double>(tally.counts[part]) / all : 0;
        std::fprintf(to, "%-24s %.3f %%\n", name, percent);
    };
    count("events", EVENTS);
    count("particles", PARTICLES);
    count("findable particles", FINDABLE);
    count("found particles", FOUND);
    count("hits", HITS);
    count("seeds", SEEDS);
    count("candidates", CANDIDATES);
    count("tracks", TRACKS);
    count("hits on tracks", HITS_USED);
    ratio("efficiency", FOUND, FINDABLE);
    ratio("fake rate", FAKES, TRACKS);
    ratio("duplicate rate", DUPLICATES, TRACKS);
    ratio("purity", HITS_RIGHT, HITS_USED);
    constexpr std::array<const char *, PARAMETERS> NAMES = {"d0", "z0", "phi", "cot theta", "curvature"};
    for (std::size_t i = 0; i < PARAMETERS; i++) {
        const Pull &pull = tally.pulls[i];
        const double entries = pull.entries > 0 ? static_cast<double>(pull.entries) : 1;
        const double mean = std::ldexp(static_cast<double>(pull.sum), -PULL_BITS) / entries;
        const double square_mean = std::ldexp(static_cast<double>(pull.squares), -PULL_BITS) / entries;
        std::fprintf(to, "pull of %-16s mean %7.4f, width %6.4f, %" PRId64 " of %" PRId64 " beyond %g\n",
                     NAMES[i], mean, std::sqrt(square_mean - square(mean)), pull.beyond,
                     pull.beyond + pull.entries, PULL_REACH);
    }
    Checksum checksum;
    for (const auto &histogram : tally.histograms) {
        checksum.add(histogram.data(), sizeof histogram);
    }
    std::fprintf(to, "%-24s %016" PRIx64 "\n", "histograms", checksum.value());
}

} // namespace reco
