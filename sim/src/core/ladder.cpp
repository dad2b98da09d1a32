#include "widthwise/sim/ladder.hpp"

#include <algorithm>

namespace widthwise::sim {
namespace {

// A bucket is sorted rather than spread again if it has at most this many entries, and buckets are made for
// about half as many. The paper has 50 and one; wider buckets need fewer arrays, and sorting 32 neighbours
// costs less than touching 32 cold arrays.
constexpr std::size_t sorted_at_once = 64;
constexpr std::size_t entries_per_bucket = 24;
constexpr std::size_t most_buckets = std::size_t{1} << 20;

bool earlier(const Entry &a, const Entry &b) { return before(a, b); }

/// Whether nothing is to be sorted. What waits for one moment arrives in the order of its ranks, and ranks
/// stand in the nodes, far apart: to look at each once, asked for in time, is much less than to sort them.
bool in_order(const std::vector<Entry> &entries) {
    constexpr std::size_t ahead = 8;
    for (std::size_t i = 1; i < entries.size(); ++i) {
        if (i + ahead < entries.size() && entries[i].time == entries[i - 1].time)
            __builtin_prefetch(entries[i + ahead].node);
        if (before(entries[i], entries[i - 1]))
            return false;
    }
    return true;
}

} // namespace

std::size_t LadderQueue::Bottom::place_of(const Entry &entry) const noexcept {
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
    return static_cast<std::size_t>(std::lower_bound(first, entries_.end(), entry, earlier) - first);
}

void LadderQueue::Bottom::insert(std::size_t place, const Entry &entry) {
    const std::size_t count = size();
    if (2 * place >= count) {
        entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(head_ + place), entry);
        return;
    }
    if (head_ == 0) {
        const std::size_t room = count / 2 + 8;
        entries_.insert(entries_.begin(), room, Entry{});
        head_ = room;
    }
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
    std::copy(first, first + static_cast<std::ptrdiff_t>(place), first - 1);
    --head_;
    entries_[head_ + place] = entry;
}

void LadderQueue::Bottom::erase(std::size_t place) noexcept {
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
    const auto at = first + static_cast<std::ptrdiff_t>(place);
    if (2 * place >= size()) {
        entries_.erase(at);
    } else {
        std::copy_backward(first, at, at + 1);
        ++head_;
    }
}

void LadderQueue::Bottom::settle(Bucket &bucket) {
    entries_.clear();
    entries_.swap(bucket);
    head_ = 0;
    if (!in_order(entries_))
        std::sort(entries_.begin(), entries_.end(), earlier);
}

void LadderQueue::Bottom::give_to(Bucket &bucket) {
    bucket.insert(bucket.end(), entries_.begin() + static_cast<std::ptrdiff_t>(head_), entries_.end());
    entries_.clear();
    head_ = 0;
}

void LadderQueue::insert(Node &node) {
    ++size_;
    const Entry entry{node.time, &node};
    if (node.time > top_start_) {
        node.link.index = static_cast<std::uint32_t>(top_.size());
        top_.push_back(&node);
        top_least_ = std::min(top_least_, node.time);
        top_greatest_ = std::max(top_greatest_, node.time);
        return;
    }
    for (std::size_t depth = 0; depth < depth_; ++depth) {
        Rung &rung = rungs_[depth];
        const std::size_t number = rung.bucket_of(node.time);
        if (number < rung.current)
            continue;
        Bucket &bucket = rung.buckets[number];
        node.link.index = static_cast<std::uint32_t>(bucket.size());
        bucket.push_back(entry);
        ++rung.count;
        return;
    }
    insert_at_bottom(entry);
}

void LadderQueue::insert_at_bottom(const Entry &entry) {
    const std::size_t place = bottom_.place_of(entry);
    bottom_.insert(place, entry);
    if (bottom_.size() < next_spread_ || depth_ == deepest || place + 1 == bottom_.size())
        return;
    if (bottom_.first().time == bottom_.last().time)
        return;
    // Many short waits would make every insertion move a long array: the bottom becomes a rung.
    Bucket all;
    bottom_.give_to(all);
    next_spread_ = 2 * all.size();
    if (!spread(all))
        bottom_.settle(all);
}

/// Readies a deeper rung for `count` entries; false if buckets cannot separate their times.
bool LadderQueue::add_rung(std::size_t count, double least, double greatest) {
    const std::size_t buckets = std::clamp(count / entries_per_bucket + 1, std::size_t{4}, most_buckets);
    const double per_unit = static_cast<double>(buckets) / (greatest - least);
    if (!(per_unit < 1e300))
        return false; // one time only, or nearly
    Rung &rung = rungs_[depth_];
    rung.start = least;
    rung.per_unit = per_unit;
    rung.used = buckets;
    rung.current = 0;
    rung.count = count;
    if (rung.buckets.size() < buckets)
        rung.buckets.resize(buckets);
    if (rung.bucket_of(least) == rung.bucket_of(greatest))
        return false;
    ++depth_;
    return true;
}

/// Makes a deeper rung of `from` and empties it, if its times can be separated.
bool LadderQueue::spread(Bucket &from) {
    double least = from.front().time;
    double greatest = least;
    for (const auto &entry : from) {
        least = std::min(least, entry.time);
        greatest = std::max(greatest, entry.time);
    }
    if (!add_rung(from.size(), least, greatest))
        return false;
    Rung &rung = rungs_[depth_ - 1];
    for (const auto &entry : from)
        rung.buckets[rung.bucket_of(entry.time)].push_back(entry);
    from.clear();
    return true;
}

/// Brings the top down to a first rung, or to the bottom; false if there is nothing.
bool LadderQueue::step_down() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (top_.empty()) {
        top_start_ = -infinity;
        top_least_ = infinity;
        top_greatest_ = -infinity;
        return false;
    }
    top_start_ = top_greatest_;
    const bool rung = top_.size() > sorted_at_once && add_rung(top_.size(), top_least_, top_greatest_);
    Bucket all;
    if (!rung)
        all.reserve(top_.size());
    // The nodes were last touched when they were scheduled: they are asked for well before they are needed.
    constexpr std::size_t ahead = 16;
    for (std::size_t i = 0; i < top_.size(); ++i) {
        if (i + ahead < top_.size())
            __builtin_prefetch(top_[i + ahead]);
        const Entry entry{top_[i]->time, top_[i]};
        (rung ? rungs_[0].buckets[rungs_[0].bucket_of(entry.time)] : all).push_back(entry);
    }
    top_.clear();
    top_least_ = infinity;
    top_greatest_ = -infinity;
    if (!rung)
        bottom_.settle(all);
    return true;
}

void LadderQueue::refill() {
    next_spread_ = bottom_limit;
    while (bottom_.empty()) {
        if (depth_ == 0) {
            if (!step_down())
                return;
            continue;
        }
        Rung &rung = rungs_[depth_ - 1];
        if (rung.count == 0) {
            --depth_;
            continue;
        }
        while (rung.buckets[rung.current].empty())
            ++rung.current;
        Bucket &bucket = rung.buckets[rung.current++];
        rung.count -= bucket.size();
        if (bucket.size() <= sorted_at_once || depth_ == deepest || !spread(bucket))
            bottom_.settle(bucket);
    }
}

void LadderQueue::remove(Node &node) {
    --size_;
    if (node.time > top_start_) {
        Node *last = top_.back();
        top_[node.link.index] = last;
        last->link.index = node.link.index;
        top_.pop_back();
        return;
    }
    for (std::size_t depth = 0; depth < depth_; ++depth) {
        Rung &rung = rungs_[depth];
        const std::size_t number = rung.bucket_of(node.time);
        if (number < rung.current)
            continue;
        Bucket &bucket = rung.buckets[number];
        --rung.count;
        std::size_t at = node.link.index;
        if (at >= bucket.size() || bucket[at].node != &node) {
            at = 0;
            while (bucket[at].node != &node)
                ++at;
        }
        bucket[at] = bucket.back();
        bucket[at].node->link.index = static_cast<std::uint32_t>(at);
        bucket.pop_back();
        return;
    }
    bottom_.erase(bottom_.place_of({node.time, &node}));
}

} // namespace widthwise::sim
