#include "conditions.hpp"

#include <algorithm>
#include <cmath>

#include "elementary.hpp"

namespace reco {

namespace {

constexpr double FIELD_RADIUS = 1100, FIELD_LENGTH = 1300; // the map's reach, mm

// What glibc's malloc takes for each in x86-64 (a multiple of 16, with 8 bytes of its own), and the pointer
// to it.
constexpr std::uint64_t CHANNEL_BYTES = 48 + 8, NODE_BYTES = 32 + 8;
// A node of the map of modules (32 bytes of its own, key and pointer), a module, an alignment.
constexpr std::uint64_t MODULE_BYTES = 64 + 80 + 32;

constexpr std::uint64_t FEWEST_CHANNELS = 8;

constexpr std::uint64_t count_modules() {
    std::uint64_t count = 0;
    for (const Layer &layer : LAYERS) {
        count += static_cast<std::uint64_t>(layer.modules_around) *
                 static_cast<std::uint64_t>(layer.modules_along);
    }
    return count;
}

constexpr std::uint64_t MODULES = count_modules();

} // namespace

std::uint64_t Conditions::least_bytes() {
    return MODULES * (MODULE_BYTES + FEWEST_CHANNELS * CHANNEL_BYTES) * 8 / 7;
}

// An eighth is the field map.
Conditions::Conditions(std::uint64_t bytes, bool counted) : counted_(counted) {
    map_field(bytes / 8 / NODE_BYTES);
    const std::uint64_t channels = ((bytes - bytes / 8) / MODULES - MODULE_BYTES) / CHANNEL_BYTES;
    calibrate(std::max(channels, FEWEST_CHANNELS));
}

// As many nodes along r as along z.
void Conditions::map_field(std::uint64_t nodes) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(nodes)));
    rows_.resize(side);
    for (std::size_t row = 0; row < side; row++) {
        const double radius = FIELD_RADIUS * static_cast<double>(row) / static_cast<double>(side - 1);
        for (std::size_t column = 0; column < side; column++) {
            const double part = static_cast<double>(column) / static_cast<double>(side - 1);
            const double z = FIELD_LENGTH * (2 * part - 1);
            rows_[row].push_back(std::make_unique<FieldNode>());
            FieldNode *node = rows_[row].back().get();
            node->value = static_cast<float>(true_field(radius, z));
            if (row > 0) {
                rows_[row - 1][column]->outwards = node;
            }
            if (column > 0) {
                rows_[row][column - 1]->onwards = node;
            }
        }
    }
}

void Conditions::calibrate(std::uint64_t channels) {
    for (const Layer &layer : LAYERS) {
        for (int around = 0; around < layer.modules_around; around++) {
            for (int along = 0; along < layer.modules_along; along++) {
                const DetectorId id = detector_id(layer.number, around, along);
                auto module =
                    std::make_unique<Module>(Module{id, &layer, middle_azimuth(id), middle_z(id), {}, {}});
                module->alignment = std::make_unique<Alignment>(Alignment{
                    static_cast<float>(true_shift_across(id)), static_cast<float>(true_shift_along(id))});
                module->channels.reserve(static_cast<std::size_t>(channels));
                Channel *left = nullptr;
                for (std::uint64_t number = 0; number < channels; number++) {
                    const double centre =
                        (static_cast<double>(number) + 0.5) / static_cast<double>(channels) - 0.5;
                    auto channel = std::make_unique<Channel>(
                        module.get(), static_cast<float>(true_bow(id, centre)),
                        static_cast<float>(true_gain(id, centre)), static_cast<float>(centre));
                    channel->left = left;
                    if (left != nullptr) {
                        left->right = channel.get();
                    }
                    left = channel.get();
                    module->channels.push_back(std::move(channel));
                }
                modules_.emplace_hint(modules_.end(), id, std::move(module));
            }
        }
    }
}

void Conditions::prepare() const {
    std::call_once(prepared_, [this] { work_up(); });
}

void Conditions::work_up() const {
    for (const auto &[id, module] : modules_) {
        std::vector<std::unique_ptr<Strip>> strips;
        strips.reserve(module->channels.size());
        for (const auto &channel : module->channels) {
            Strip *left = strips.empty() ? nullptr : strips.back().get();
            strips.push_back(std::make_unique<Strip>(channel.get(), module->alignment->across + channel->bow,
                                                     channel->gain));
            strips.back()->left = left;
            if (left != nullptr) {
                left->right = strips.back().get();
            }
        }
        strips_.emplace_hint(strips_.end(), id, std::move(strips));
    }
}

const Strip &Conditions::strip_at(const Module &module, double place) const {
    const auto &strips = strips_.find(module.id)->second;
    const auto last = static_cast<int>(strips.size()) - 1;
    const auto number = static_cast<int>((place + 0.5) * static_cast<double>(strips.size()));
    return *strips[static_cast<std::size_t>(std::clamp(number, 0, last))];
}

const Module *Conditions::module(DetectorId id) const {
    const auto found = modules_.find(id);
    return found == modules_.end() ? nullptr : found->second.get();
}

double Conditions::field(double radius, double z) const {
    const auto side = static_cast<double>(rows_.size());
    const double row = std::clamp(radius / FIELD_RADIUS * (side - 1), 0.0, side - 1.001);
    const double column = std::clamp((z / FIELD_LENGTH + 1) / 2 * (side - 1), 0.0, side - 1.001);
    const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(column);
    const double outer = row - static_cast<double>(i), further = column - static_cast<double>(j);
    const FieldNode &here = *rows_[i][j];
    const FieldNode &out = *here.outwards, &on = *here.onwards, &both = *out.onwards;
    return (1 - outer) * ((1 - further) * here.value + further * on.value) +
           outer * ((1 - further) * out.value + further * both.value);
}

} // namespace reco
