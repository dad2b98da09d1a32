#include "worker.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <ctime>

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.hpp"
#include "local.hpp"
#include "seeding.hpp"
#include "track_finding.hpp"
#include "widthwise-marks.h"

namespace reco {

Supply every_nth(Range events, std::uint64_t index, std::uint64_t step) {
    return [events, step, next = index]() mutable -> Range {
        if (next >= events.count) {
            return {0, 0};
        }
        const Range one = {events.first + next, 1};
        next += step;
        return one;
    };
}

std::unique_ptr<Input> opened(const Options &options) {
    return options.file.empty() ? std::make_unique<Input>(options.recipe)
                                : std::make_unique<Input>(options.file);
}

Range asked_for(const Options &options, const Input &input) {
    const Range all = input.all();
    const std::uint64_t first = options.first.value_or(all.first);
    const std::uint64_t rest = first < all.end() ? all.end() - first : 1;
    const Range events = {first, options.events.value_or(input.is_file() ? rest : 100)};
    input.must_have(events);
    return events;
}

void mark(const Options &options, const char *phase) {
    if (options.marks) {
        widthwise_mark(phase);
    }
}

void pin(const Options &options, std::uint64_t index) {
    if (!options.pin) {
        return;
    }
    cpu_set_t allowed, chosen;
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        throw failure_of_system(FAILED, "the CPUs that may be used are not known");
    }
    std::uint64_t ahead = index % static_cast<std::uint64_t>(CPU_COUNT(&allowed));
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && ahead-- == 0) {
            CPU_SET(cpu, &chosen);
            break;
        }
    }
    if (sched_setaffinity(0, sizeof chosen, &chosen) != 0) {
        throw failure_of_system(FAILED, "a worker cannot be pinned");
    }
}

Papers::Papers(const Options &options, const std::string &name) : folder_(options.output) {
    if (folder_.empty()) {
        spoken_ = options.log_events ? stderr : nullptr;
        return;
    }
    if (mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) {
        throw failure_of_system(BAD_INPUT, "the output folder " + folder_ + " cannot be made");
    }
    log_ = open(folder_ + "/" + name + ".log");
    tracks_ = open(folder_ + "/" + name + ".tracks");
}

Papers::File Papers::open(const std::string &path) const {
    File file(std::fopen(path.c_str(), "we"));
    if (!file) {
        throw failure_of_system(BAD_INPUT, path + " cannot be written");
    }
    return file;
}

void Papers::close() {
    close(log_);
    close(tracks_);
}

void Papers::close(File &file) const {
    if (file) {
        const bool failed = std::ferror(file.get()) != 0;
        if (std::fclose(file.release()) != 0 || failed) {
            throw failure_of_system(FAILED, "not everything could be written into " + folder_);
        }
    }
}

namespace {

double seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void write_tracks(const Event &event, FILE *to) {
    for (const auto &track : event.tracks) {
        const Vector &p = track->perigee;
        std::fprintf(
            to, "%" PRIu64 " %zu hits, chi2 %.3f: d0 %.5f z0 %.5f phi %.6f cot theta %.6f curvature %.6e\n",
            event.raw.number, track->hits.size(), track->chi2, p[ACROSS], p[ALONG], p[DIRECTION], p[SLOPE],
            p[CURVATURE]);
    }
}

} // namespace

Worker::Worker(const Options &options, Range all, const Conditions &conditions, const Input &input,
               Papers papers)
    : options_(options), all_(all), conditions_(conditions), input_(input), papers_(std::move(papers)) {}

void Worker::work(std::uint64_t number) {
    if (number == all_.first) {
        mark(options_, "first-event");
    }
    if (number + 1 == all_.end()) {
        mark(options_, "last-event");
    }
    if (number == options_.fail_at) {
        throw Failure(FAILED, "event " + std::to_string(number) + " fails, as --fail-at asks");
    }
    if (number == options_.die_at) {
        kill(getpid(), SIGKILL);
    }
    const double begun = seconds(CLOCK_MONOTONIC), begun_cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    kept_.push_back(std::make_unique<Event>());
    Event &event = *kept_.back();
    event.raw = input_.event(number);
    reconstruct_hits(event, conditions_);
    find_seeds(event);
    find_tracks(event, conditions_);
    tally_ += tally_of(event);
    if (papers_.tracks() != nullptr) {
        write_tracks(event, papers_.tracks());
    }
    if (kept_.size() > options_.keep) {
        kept_.pop_front();
    }
    const double elapsed = seconds(CLOCK_MONOTONIC) - begun,
                 cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - begun_cpu;
    elapsed_ += elapsed;
    cpu_ += cpu;
    if (options_.log_events) {
        std::fprintf(papers_.log(), "event %" PRIu64 " %.6f %.6f\n", number, elapsed, cpu);
    }
}

void Worker::work_through(const Supply &supply) {
    for (Range events = supply(); events.count > 0; events = supply()) {
        for (std::uint64_t number = events.first; number < events.end(); number++) {
            work(number);
        }
    }
}

Tally Worker::finished() {
    if (papers_.log() != nullptr) {
        const double events = std::max(1.0, static_cast<double>(tally_.counts[EVENTS]));
        std::fprintf(papers_.log(), "- Avg event:   %.6f\n- Avg event:   %.6f\n", elapsed_ / events,
                     cpu_ / events);
    }
    papers_.close();
    return tally_;
}

} // namespace reco
