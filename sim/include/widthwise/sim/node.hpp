// What an agenda holds: a process, call or timer that is scheduled for a model time.
//
// Why intrusive: a process or event carries its own links, so that scheduling allocates nothing and a waiting
// process costs no more than its frame. Why one 64-bit rank: priority and order of scheduling are compared in
// one instruction.
//
// Invariants: two nodes never compare equal, because the sequence number in `rank` is unique; `place`
// decides which member of `link` is valid; a node on an agenda does not change its time or rank.
#pragma once

#include <cstdint>

namespace widthwise::sim {

/// What a node is, for the dispatcher.
enum class Kind : std::uint8_t { Process, Event, Timer, NewProcess }; // NewProcess: has not had a turn

/// Where a node is.
enum class Place : std::uint8_t {
    Passive, // not scheduled: not begun, or waiting for an activation
    Ring,    // on the agenda, for the current time
    Listed,  // on the agenda, for later
    Waiting, // in a queue, or in several
    Running, // being dispatched
};

struct Waiter;

struct alignas(8) Node {
    double time = 0.0;
    std::uint64_t rank = 0; // 32767 - priority in the upper 16 bits, order of scheduling in the lower 48
    union Link {
        struct {
            Node *next;
            Node *previous;
        } chain;             // Place::Ring, and Place::Listed in a calendar queue
        std::uint32_t index; // Place::Listed in a heap or ladder queue
        Waiter *waiter;      // Place::Waiting
    } link{{nullptr, nullptr}};
    std::uint32_t serial = 0; // unique within a simulation; 0: this memory holds nothing that lives
    Kind kind = Kind::Event;
    Place place = Place::Passive;
    std::uint8_t flags = 0;
    std::uint8_t held = 0; // facilities a process has seized, modulo 256 (ProcessState::held_many)
};

constexpr int sequence_bits = 48;
constexpr std::uint64_t last_sequence = (std::uint64_t{1} << sequence_bits) - 1;

constexpr std::uint64_t rank_of(std::int16_t priority, std::uint64_t sequence) noexcept {
    return static_cast<std::uint64_t>(32767 - priority) << sequence_bits | sequence;
}

constexpr std::int16_t priority_of(std::uint64_t rank) noexcept {
    return static_cast<std::int16_t>(32767 - static_cast<std::int32_t>(rank >> sequence_bits));
}

/// The order of events: by time, then higher priority first, then first scheduled first.
inline bool before(const Node &a, const Node &b) noexcept {
    return a.time < b.time || (a.time == b.time && a.rank < b.rank);
}

/// A node as arrays of an event list keep it: the time beside the pointer, so that a comparison seldom leaves
/// the array.
struct Entry {
    double time;
    Node *node;
};

inline bool before(const Entry &a, const Entry &b) noexcept {
    return a.time < b.time || (a.time == b.time && a.node->rank < b.node->rank);
}

} // namespace widthwise::sim
