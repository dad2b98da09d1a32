// Conditions: what has been measured of the detector, and must be in memory before an event can be
// understood.
//
// Field map, alignment and calibrations of every module, in as many pieces as are asked for: the more, the
// finer. They are objects that point at one another, allocated one by one, as such things are in the programs
// that this one stands for. Once made, they are only read, by however many threads, except for the counts.
#ifndef RECO_CONDITIONS_HPP
#define RECO_CONDITIONS_HPP

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "geometry.hpp"

namespace reco {

struct Module;

// A stripe of a module.
struct Channel {
    const Module *module;
    const Channel *left = nullptr, *right = nullptr; // the neighbours, if any
    float bow;                                       // how far it lies beside its place, mm
    float gain;
    float centre; // from -1/2 to 1/2
    mutable std::atomic<std::int32_t> users = 0;

    Channel(const Module *module, float bow, float gain, float centre)
        : module(module), bow(bow), gain(gain), centre(centre) {}
};

// What the first event makes of a channel, as the conditions of real detectors are worked up by who first
// needs them.
struct Strip {
    const Channel *channel;
    const Strip *left = nullptr, *right = nullptr; // the neighbours, if any
    float beside;                                  // how far it lies beside its place in all, mm
    float gain;

    Strip(const Channel *channel, float beside, float gain) : channel(channel), beside(beside), gain(gain) {}
};

// A strip that somebody uses. With counted conditions it is a reference as std::shared_ptr's are: the count
// stands beside the data, so that to look at a page is to write to it, and a page that a fork had shared is
// copied.
class StripReference {
  public:
    StripReference(const Strip &strip, bool counted) : strip_(&strip), counted_(counted) { take(); }
    StripReference(const StripReference &other) : strip_(other.strip_), counted_(other.counted_) { take(); }
    StripReference &operator=(const StripReference &) = delete;
    ~StripReference() {
        if (counted_) {
            strip_->channel->users.fetch_sub(1, std::memory_order_release);
        }
    }

    const Strip &operator*() const { return *strip_; }

  private:
    void take() {
        if (counted_) {
            strip_->channel->users.fetch_add(1, std::memory_order_relaxed);
        }
    }

    const Strip *strip_;
    bool counted_;
};

struct Alignment {
    float across, along; // mm
};

struct Module {
    DetectorId id;
    const Layer *layer;
    double azimuth, z; // of its middle
    std::unique_ptr<Alignment> alignment;
    std::vector<std::unique_ptr<Channel>> channels;
};

// A node of the field map, with the next ones in r and z.
struct FieldNode {
    float value;
    const FieldNode *outwards = nullptr, *onwards = nullptr;
};

class Conditions {
  public:
    // So many objects as are `bytes` large in x86-64; where pointers are shorter, the same ones take less.
    Conditions(std::uint64_t bytes, bool counted);

    // What `bytes` must be at least: eight channels for each module.
    static std::uint64_t least_bytes();

    // Nothing, if there is no such module.
    const Module *module(DetectorId id) const;

    // Works the calibrations up into strips, unless this process, or its parent before the fork, has done so:
    // about as much memory again. Must have been called before a strip is asked for; from several threads, if
    // need be.
    void prepare() const;

    // The strip at this place across the module.
    const Strip &strip_at(const Module &module, double place) const;

    StripReference use(const Strip &strip) const { return {strip, counted_}; }

    // The field, as a part of that in the detector's middle, between the four nodes around a place.
    double field(double radius, double z) const;

  private:
    void map_field(std::uint64_t nodes);
    void calibrate(std::uint64_t channels);
    void work_up() const;

    bool counted_;
    std::map<DetectorId, std::unique_ptr<Module>> modules_;
    std::vector<std::vector<std::unique_ptr<FieldNode>>> rows_; // by r, then z
    mutable std::once_flag prepared_;
    mutable std::map<DetectorId, std::vector<std::unique_ptr<Strip>>> strips_;
};

} // namespace reco

#endif
