// FNV-1a in 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), eight bytes at a time where there are eight.
#ifndef RECO_CHECKSUM_HPP
#define RECO_CHECKSUM_HPP

#include <cstdint>
#include <cstring>

namespace reco {

class Checksum {
  public:
    void add(const void *from, std::uint64_t bytes) {
        const auto *byte = static_cast<const unsigned char *>(from);
        for (; bytes >= 8; bytes -= 8, byte += 8) {
            std::uint64_t word;
            std::memcpy(&word, byte, sizeof word);
            mix(word);
        }
        for (; bytes > 0; bytes--) {
            mix(*byte++);
        }
    }

    std::uint64_t value() const { return value_; }

  private:
    void mix(std::uint64_t word) {
        value_ = (value_ ^ word) * 0x100000001b3;
        value_ ^= value_ >> 32; // a product's low bits know nothing of its factors' high ones
    }

    std::uint64_t value_ = 0xcbf29ce484222325;
};

} // namespace reco

#endif
