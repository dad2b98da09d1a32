#include "input.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.hpp"
#include "failure.hpp"

namespace reco {

static_assert(std::endian::native == std::endian::little, "input files are little-endian");

namespace {

constexpr char MAGIC[8] = {'R', 'E', 'C', 'O', ' ', 'I', 'N', '1'};

struct Header {
    char magic[8];
    std::uint64_t first, count;
    std::uint64_t checksum; // of all the rest of this, and of the positions

    std::uint64_t sum(const std::vector<std::uint64_t> &positions) const {
        Checksum sum;
        sum.add(magic, sizeof magic);
        sum.add(&first, sizeof first);
        sum.add(&count, sizeof count);
        sum.add(positions.data(), positions.size() * sizeof positions[0]);
        return sum.value();
    }
};

struct EventHeader {
    std::uint64_t number, checksum;
    std::uint32_t particles, hits;

    std::uint64_t bytes() const {
        return sizeof *this + std::uint64_t{particles} * sizeof(Particle) +
               std::uint64_t{hits} * sizeof(RawHit);
    }
};

static_assert(sizeof(Header) == 32 && sizeof(EventHeader) == 24);

std::uint64_t sum_of(const RawEvent &event) {
    Checksum sum;
    sum.add(&event.number, sizeof event.number);
    sum.add(event.particles.data(), event.particles.size() * sizeof(Particle));
    sum.add(event.hits.data(), event.hits.size() * sizeof(RawHit));
    return sum.value();
}

// A file that is being written; errors are reported.
class Output {
  public:
    explicit Output(const std::string &path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
        check(file_ != nullptr);
    }

    void write(const void *from, std::size_t bytes) {
        check(std::fwrite(from, 1, bytes, file_.get()) == bytes);
    }

    void go_to(std::uint64_t position) {
        check(fseeko(file_.get(), static_cast<off_t>(position), SEEK_SET) == 0);
    }

    void close() { check(std::fclose(file_.release()) == 0); }

  private:
    void check(bool well) const {
        if (!well) {
            throw failure_of_system(BAD_INPUT, path_ + " cannot be written");
        }
    }

    struct Closing {
        void operator()(FILE *file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<FILE, Closing> file_;
};

} // namespace

void write_input(const std::string &path, const Recipe &recipe, Range events) {
    Output output(path);
    std::vector<std::uint64_t> positions = {sizeof(Header) + (events.count + 1) * sizeof positions[0]};
    output.go_to(positions[0]);
    for (std::uint64_t number = events.first; number < events.end(); number++) {
        const RawEvent event = generated(recipe, number);
        const EventHeader header = {number, sum_of(event), static_cast<std::uint32_t>(event.particles.size()),
                                    static_cast<std::uint32_t>(event.hits.size())};
        output.write(&header, sizeof header);
        output.write(event.particles.data(), event.particles.size() * sizeof(Particle));
        output.write(event.hits.data(), event.hits.size() * sizeof(RawHit));
        positions.push_back(positions.back() + header.bytes());
    }
    Header header = {{}, events.first, events.count, 0};
    std::memcpy(header.magic, MAGIC, sizeof MAGIC);
    header.checksum = header.sum(positions);
    output.go_to(0);
    output.write(&header, sizeof header);
    output.write(positions.data(), positions.size() * sizeof positions[0]);
    output.close();
}

Input::Input(const std::string &path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) {
        throw failure_of_system(BAD_INPUT, path + " cannot be opened");
    }
    try {
        read_contents();
    } catch (...) {
        close(file_); // whose constructor throws is not destroyed
        throw;
    }
}

void Input::read_contents() {
    struct stat about;
    if (fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
        throw Failure(BAD_INPUT, path_ + " is not a file of events");
    }
    const auto size = static_cast<std::uint64_t>(about.st_size);
    Header header;
    if (size >= sizeof header) {
        read(&header, sizeof header, 0);
    }
    if (size < sizeof header || std::memcmp(header.magic, MAGIC, sizeof MAGIC) != 0) {
        throw Failure(BAD_INPUT, path_ + " is not a file of events; `reco generate` writes one");
    }
    // Before anything is believed that would take memory.
    if (header.count >= (size - sizeof header) / sizeof positions_[0]) {
        throw Failure(BAD_INPUT, path_ + " is cut off, or its header is corrupt");
    }
    positions_.resize(static_cast<std::size_t>(header.count) + 1);
    read(positions_.data(), positions_.size() * sizeof positions_[0], sizeof header);
    if (header.checksum != header.sum(positions_)) {
        throw Failure(BAD_INPUT, path_ + " is corrupt: its header is not what was written");
    }
    if (positions_.back() != size) {
        throw Failure(BAD_INPUT, path_ + " is cut off: it has " + std::to_string(size) + " bytes of " +
                                     std::to_string(positions_.back()));
    }
    if (!std::is_sorted(positions_.begin(), positions_.end())) {
        throw Failure(BAD_INPUT, path_ + " is corrupt: its events overlap");
    }
    all_ = {header.first, header.count};
}

Input::~Input() {
    if (file_ >= 0) {
        close(file_);
    }
}

void Input::must_have(Range events) const {
    if (events.first < all_.first || events.count > all_.count ||
        events.first - all_.first > all_.count - events.count) {
        throw Failure(BAD_INPUT, path_ + " has events " + std::to_string(all_.first) + " to " +
                                     std::to_string(all_.end() - 1) + "; asked for were " +
                                     std::to_string(events.first) + " to " +
                                     std::to_string(events.end() - 1));
    }
}

RawEvent Input::event(std::uint64_t number) const {
    if (!is_file()) {
        return generated(recipe_, number);
    }
    const auto index = static_cast<std::size_t>(number - all_.first);
    const std::uint64_t position = positions_[index], bytes = positions_[index + 1] - position;
    const Failure corrupt(BAD_INPUT, path_ + " is corrupt: event " + std::to_string(number) +
                                         " is not what was written");
    EventHeader header;
    read(&header, sizeof header, position);
    if (header.bytes() != bytes || header.number != number) {
        throw corrupt;
    }
    RawEvent event{number, {}, {}};
    event.particles.resize(header.particles);
    event.hits.resize(header.hits);
    const std::uint64_t particles = header.particles * sizeof(Particle);
    read(event.particles.data(), particles, position + sizeof header);
    read(event.hits.data(), header.hits * sizeof(RawHit), position + sizeof header + particles);
    const auto possible = [&](const RawHit &hit) {
        return exists(hit.detector) && hit.particle >= NO_PARTICLE &&
               hit.particle < static_cast<std::int64_t>(event.particles.size());
    };
    if (header.checksum != sum_of(event) || !std::all_of(event.hits.begin(), event.hits.end(), possible)) {
        throw corrupt;
    }
    return event;
}

void Input::read(void *to, std::uint64_t bytes, std::uint64_t position) const {
    for (std::uint64_t done = 0; done < bytes;) {
        const ssize_t got =
            pread(file_, static_cast<char *>(to) + done, static_cast<std::size_t>(bytes - done),
                  static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw failure_of_system(BAD_INPUT, path_ + " cannot be read");
        }
        if (got == 0) {
            throw Failure(BAD_INPUT, path_ + " was cut off while it was read");
        }
        done += static_cast<std::uint64_t>(got);
    }
}

} // namespace reco
