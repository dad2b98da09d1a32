// Where events come from: a file, or the generator.
//
// A file is a header, the positions of its events (one more than there are events: the last one is the file's
// end), and the events. Every integer is little-endian. The header's checksum is of header and positions,
// each event has one of its own.
#ifndef RECO_INPUT_HPP
#define RECO_INPUT_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "generation.hpp"

namespace reco {

// Events first, first + 1, ...: `count` of them.
struct Range {
    std::uint64_t first, count;

    std::uint64_t end() const { return first + count; }
};

// Writes these events into a file. Errors: BAD_INPUT if it cannot be written.
void write_input(const std::string &path, const Recipe &recipe, Range events);

// An open input. Several threads may read at once; a child that was forked opens its own.
class Input {
  public:
    // The generator.
    explicit Input(const Recipe &recipe) : recipe_(recipe) {}

    // A file. Errors: BAD_INPUT if it is none of ours, or cut off, or its header is corrupt.
    explicit Input(const std::string &path);

    Input(const Input &) = delete;
    Input &operator=(const Input &) = delete;
    ~Input();

    // Errors: BAD_INPUT if one of these events is not there.
    void must_have(Range events) const;

    // All the events of a file.
    bool is_file() const { return file_ >= 0; }
    Range all() const { return all_; }

    // Errors: BAD_INPUT if the event is corrupt.
    RawEvent event(std::uint64_t number) const;

  private:
    void read(void *to, std::uint64_t bytes, std::uint64_t position) const;
    void read_contents();

    Recipe recipe_;
    std::string path_;
    int file_ = -1;
    Range all_ = {1, UINT64_MAX - 1};
    std::vector<std::uint64_t> positions_;
};

} // namespace reco

#endif
