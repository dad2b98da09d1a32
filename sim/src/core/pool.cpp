#include "widthwise/sim/pool.hpp"

#include <cstring>
#include <new>

namespace widthwise::sim {

Pool::~Pool() {
    for (const auto &chunk : chunks_) {
        unpoison(chunk.memory, chunk.bytes);
        ::operator delete (chunk.memory, std::align_val_t{slab_size});
    }
}

std::byte *Pool::take(std::size_t bytes) {
    chunks_.reserve(chunks_.size() + 1);
    auto *memory = static_cast<std::byte *>(::operator new (bytes, std::align_val_t{slab_size}));
    chunks_.push_back({memory, bytes});
    reserved_ += bytes;
    return memory;
}

Pool::Slab *Pool::add_slab(std::size_t block, std::size_t kind) {
    std::byte *memory = nullptr;
    std::size_t bytes = slab_size;
    if (kind == 0) {
        // Only the block's start needs to be found by the mask.
        bytes = header + block;
        memory = take(bytes);
        free_slabs_ = 0;
    } else if (free_slabs_ == 0) {
        memory = take(slabs_in_chunk * slab_size);
        free_slabs_ = slabs_in_chunk - 1;
    } else {
        const Chunk &chunk = chunks_.back();
        memory = chunk.memory + chunk.bytes - free_slabs_ * slab_size;
        --free_slabs_;
    }
    const auto count = static_cast<std::uint32_t>((bytes - header) / block);
    Slab *slab = new (memory) Slab{this, owner_, all_, block, count, 0, static_cast<std::uint32_t>(kind)};
    poison(memory + header, bytes - header);
    all_ = slab;
    if (kind != 0)
        slabs_[kind] = slab;
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
    return carve(*add_slab(rounded, 0));
}

} // namespace widthwise::sim
