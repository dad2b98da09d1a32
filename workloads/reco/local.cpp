#include "local.hpp"

#include <algorithm>

#include "elementary.hpp"

namespace reco {

namespace {

constexpr double LEAST_CHARGE = 70;

std::unique_ptr<Cluster> cluster_of(const RawHit &raw, const Module &module, const Conditions &conditions) {
    const double across = raw.across * RAW_UNIT - static_cast<double>(module.alignment->across);
    const Strip &middle = conditions.strip_at(module, across / width_of(*module.layer));
    auto cluster = std::make_unique<Cluster>(Cluster{&module, &raw, {}});
    cluster->strips.reserve(3);
    for (const Strip *strip : {middle.left, &middle, middle.right}) {
        if (strip != nullptr) {
            cluster->strips.push_back(conditions.use(*strip));
        }
    }
    return cluster;
}

// The mean over a cluster's strips, of one of their qualities.
double mean(const Cluster &cluster, float Strip::*quality) {
    double sum = 0;
    for (const StripReference &strip : cluster.strips) {
        sum += static_cast<double>((*strip).*quality);
    }
    return sum / static_cast<double>(cluster.strips.size());
}

std::unique_ptr<Hit> hit_of(const Cluster &cluster) {
    const Module &module = *cluster.module;
    const Layer &layer = *module.layer;
    const double across = cluster.raw->across * RAW_UNIT - mean(cluster, &Strip::beside);
    const double along = cluster.raw->along * RAW_UNIT - static_cast<double>(module.alignment->along);
    return std::make_unique<Hit>(Hit{&cluster,
                                     &layer,
                                     normalised(module.azimuth + across / layer.radius),
                                     module.z + along,
                                     square(layer.resolution_across / layer.radius),
                                     square(layer.resolution_along),
                                     {}});
}

} // namespace

void reconstruct_hits(Event &event, const Conditions &conditions) {
    conditions.prepare();
    for (const RawHit &raw : event.raw.hits) {
        const Module &module = *conditions.module(raw.detector); // the input knows that there is one
        auto cluster = cluster_of(raw, module, conditions);
        if (raw.charge * mean(*cluster, &Strip::gain) >= LEAST_CHARGE) {
            event.clusters[raw.detector].push_back(std::move(cluster));
        }
    }
    for (const auto &[detector, clusters] : event.clusters) {
        for (const auto &cluster : clusters) {
            auto &hits = event.hits[static_cast<std::size_t>(layer_of(detector).number)];
            hits.push_back(hit_of(*cluster));
        }
    }
    for (auto &hits : event.hits) {
        std::stable_sort(hits.begin(), hits.end(),
                         [](const auto &a, const auto &b) { return a->azimuth < b->azimuth; });
    }
}

} // namespace reco
