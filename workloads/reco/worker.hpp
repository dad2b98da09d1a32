// One worker: a process or a thread that takes event after event through the reconstruction, and keeps a log.
#ifndef RECO_WORKER_HPP
#define RECO_WORKER_HPP

#include <functional>
#include <list>
#include <string>

#include "conditions.hpp"
#include "input.hpp"
#include "options.hpp"
#include "tally.hpp"

namespace reco {

// Events to work on next: empty when none are left.
using Supply = std::function<Range()>;

// Strict round robin: every `step`-th event, from the `index`-th on.
Supply every_nth(Range events, std::uint64_t index, std::uint64_t step);

// The input that the options name, opened; and which of its events are asked for. Errors: BAD_INPUT.
std::unique_ptr<Input> opened(const Options &options);
Range asked_for(const Options &options, const Input &input);

// Tells who reads the marks, if that is wanted.
void mark(const Options &options, const char *phase);

// Keeps this thread on one of the CPUs that it may use, if that is wanted.
void pin(const Options &options, std::uint64_t index);

// A worker's log and its file of tracks: FOLDER/NAME.log and FOLDER/NAME.tracks, or nothing.
class Papers {
  public:
    // Errors: BAD_INPUT if they cannot be written.
    Papers(const Options &options, const std::string &name);

    FILE *log() const { return log_ ? log_.get() : spoken_; }
    FILE *tracks() const { return tracks_.get(); }

    // Errors: FAILED if not everything could be written.
    void close();

  private:
    struct Closing {
        void operator()(FILE *file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<FILE, Closing>;

    File open(const std::string &path) const;
    void close(File &file) const;

    std::string folder_;
    File log_, tracks_;
    FILE *spoken_ = nullptr; // where the log goes without a folder, if anywhere
};

class Worker {
  public:
    // All events of the whole program, of which the first and the last one are marked.
    Worker(const Options &options, Range all, const Conditions &conditions, const Input &input,
           Papers papers);

    void work(std::uint64_t number);
    void work_through(const Supply &supply);

    // Ends the log; what was found.
    Tally finished();

  private:
    const Options &options_;
    Range all_;
    const Conditions &conditions_;
    const Input &input_;
    Papers papers_;
    Tally tally_{};
    std::list<std::unique_ptr<Event>> kept_;
    double elapsed_ = 0, cpu_ = 0; // s, of all events
};

} // namespace reco

#endif
