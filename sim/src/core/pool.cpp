#include "widthwise/sim/pool.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace widthwise::sim {

Pool::~Pool() {
    for (const auto &chunk : chunks_) {
        unpoison(chunk.memory, chunk.bytes);
        ::operator delete (chunk.memory, std::align_val_t{slab_size});
    }
}

std::byte *Pool::take(std::size_t bytes) {
    if (chunks_.size() == chunks_.capacity())
        chunks_.reserve(2 * chunks_.size() + 16);
    auto *memory = static_cast<std::byte *>(::operator new (bytes, std::align_val_t{slab_size}));
    chunks_.push_back({memory, bytes});
    reserved_ += bytes;
    return memory;
}

std::byte *Pool::take_slab() {
    if (free_slabs_ == 0) {
        next_slab_ = take(slabs_in_chunk * slab_size);
        free_slabs_ = slabs_in_chunk;
    }
    --free_slabs_;
    return std::exchange(next_slab_, next_slab_ + slab_size);
}

/// `kind` is 0 for blocks larger than 1024 bytes.
Pool::Slab *Pool::add_slab(std::size_t block, std::size_t kind) {
    // Only the block's start needs to be found by the mask.
    const bool shared = block <= largest_shared;
    const std::size_t bytes = shared ? slab_size : header + block;
    std::byte *memory = shared ? take_slab() : take(bytes);
    const auto count = static_cast<std::uint32_t>((bytes - header) / block);
    Slab *slab = new (memory) Slab{this, owner_, all_, block, count, 0, static_cast<std::uint32_t>(kind)};
    poison(memory + header, bytes - header);
    all_ = slab;
    return slab;
}

void *Pool::allocate_large(std::size_t size) {
    const std::size_t kind = large_kind(size);
    const std::size_t rounded = std::size_t{2048} << kind;
    if (kind >= large_.size() || rounded < size)
        throw std::bad_alloc();
    if (void *block = large_[kind]) {
        unpoison(block, rounded);
        large_[kind] = *static_cast<void **>(block);
        return block;
    }
    if (rounded > largest_shared)
        return carve(*add_slab(rounded, 0));
    Slab *&slab = large_slabs_[kind];
    if (slab == nullptr || slab->used == slab->count)
        slab = add_slab(rounded, 0);
    return carve(*slab);
}

} // namespace widthwise::sim
