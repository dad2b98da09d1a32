// Memory for a simulation's frames, events and records, of which it makes and frees millions.
//
// Why: a general allocator spends 8 to 16 bytes and some 20 ns on each block, and does not know its owner.
// Here a block costs nothing beyond its size; blocks of one size share slabs, and a slab knows its pool, so
// that freeing needs no argument. Slabs go back when the pool goes, which is also why nothing can leak.
// Invariants: slabs lie at multiples of their alignment (the mask finds them from any block); the blocks of a
// slab have one size for ever, so that a reference to a block that has gone may still look at its serial
// number. Not thread-safe: one pool belongs to one simulation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace widthwise::sim {

class Pool {
  public:
    /// The first `kept` bytes of a freed block stay as they were. `owner` is what owner_of() returns for
    /// each block.
    Pool(std::size_t kept, void *owner) noexcept : kept_(kept), owner_(owner) {}
    ~Pool();
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    /// Of every block.
    static constexpr std::size_t alignment = 16;

    void *allocate(std::size_t size) {
        const std::size_t kind = (size + grain - 1) / grain;
        if (kind < kinds) [[likely]] {
            if (void *block = free_[kind]) [[likely]] {
                unpoison(block, kind * grain);
                free_[kind] = *static_cast<void **>(block);
                return block;
            }
            Slab *slab = slabs_[kind];
            if (slab != nullptr && slab->used < slab->count)
                return carve(*slab);
            return carve(*(slabs_[kind] = add_slab(kind * grain, kind)));
        }
        return allocate_large(size);
    }

    static void release(void *block) noexcept {
        Slab &slab = slab_of(block);
        slab.pool->give_back(block, slab);
    }

    /// For an address within the first slab's length of a block.
    static void *owner_of(const void *inside) noexcept { return slab_of(const_cast<void *>(inside)).owner; }

    /// Calls `visit(void *)` with every block that was ever handed out, free ones too.
    template <class Visit> void each(Visit visit) {
        for (Slab *slab = all_; slab != nullptr; slab = slab->next)
            for (std::uint32_t i = 0; i < slab->used; ++i)
                visit(static_cast<void *>(reinterpret_cast<std::byte *>(slab) + header + i * slab->size));
    }

    /// Bytes taken from the system.
    [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }

  private:
    static constexpr std::size_t grain = alignment;
    static constexpr std::size_t kinds = 65; // blocks up to 1024 bytes
    static constexpr std::size_t slab_size = 65536;
    static constexpr std::size_t largest_shared = slab_size / 4; // larger blocks have a slab each
    static constexpr std::size_t header = 64;

    struct Slab {
        Pool *pool;
        void *owner;
        Slab *next;
        std::size_t size; // of a block
        std::uint32_t count;
        std::uint32_t used; // blocks handed out at least once
        std::uint32_t kind; // 0: larger than 1024 bytes
    };
    static_assert(sizeof(Slab) <= header);

    /// What is taken from the system: 16 slabs, or one large block's.
    struct Chunk {
        std::byte *memory;
        std::size_t bytes;
    };
    static constexpr std::size_t slabs_in_chunk = 16;

    static Slab &slab_of(void *block) noexcept {
        return *reinterpret_cast<Slab *>(reinterpret_cast<std::uintptr_t>(block) & ~(slab_size - 1));
    }

    void *carve(Slab &slab) noexcept {
        void *block = reinterpret_cast<std::byte *>(&slab) + header + slab.used++ * slab.size;
        unpoison(block, slab.size);
        return block;
    }

    void give_back(void *block, Slab &slab) noexcept {
        void *&list = slab.kind != 0 ? free_[slab.kind] : large_[large_kind(slab.size)];
        *static_cast<void **>(block) = list;
        list = block;
        poison(static_cast<std::byte *>(block) + kept_, slab.size > kept_ ? slab.size - kept_ : 0);
    }

    static std::size_t large_kind(std::size_t size) noexcept {
        std::size_t kind = 0;
        while ((std::size_t{2048} << kind) < size)
            ++kind;
        return kind;
    }

    static void poison([[maybe_unused]] void *at, [[maybe_unused]] std::size_t size) noexcept {
#if defined(__SANITIZE_ADDRESS__)
        ASAN_POISON_MEMORY_REGION(at, size);
#endif
    }
    static void unpoison([[maybe_unused]] void *at, [[maybe_unused]] std::size_t size) noexcept {
#if defined(__SANITIZE_ADDRESS__)
        ASAN_UNPOISON_MEMORY_REGION(at, size);
#endif
    }

    Slab *add_slab(std::size_t block, std::size_t kind);
    std::byte *take_slab();
    std::byte *take(std::size_t bytes);
    void *allocate_large(std::size_t size);

    std::array<void *, kinds> free_{};
    std::array<Slab *, kinds> slabs_{}; // the one being carved
    std::array<void *, 40> large_{};
    std::array<Slab *, 4> large_slabs_{}; // the ones being carved
    Slab *all_ = nullptr;
    std::vector<Chunk> chunks_;
    std::byte *next_slab_ = nullptr; // the rest of the last chunk of slabs
    std::size_t free_slabs_ = 0;     // in it
    std::size_t kept_;
    void *owner_;
    std::size_t reserved_ = 0;
};

} // namespace widthwise::sim
