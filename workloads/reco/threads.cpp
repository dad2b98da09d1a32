#include "threads.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace reco {

namespace {

// What the threads have in common.
class Share {
  public:
    explicit Share(Range events, std::uint64_t chunk) : left_(events), chunk_(chunk) {}

    Range next() {
        const std::lock_guard lock(mutex_);
        const Range events = {left_.first, failure_ ? 0 : std::min(chunk_, left_.count)};
        left_ = {left_.first + events.count, left_.count - events.count};
        return events;
    }

    // A thread that fails stops the others after their event.
    void fail(std::exception_ptr failure) {
        const std::lock_guard lock(mutex_);
        failure_ = failure_ ? failure_ : failure;
    }

    bool has_failed() {
        const std::lock_guard lock(mutex_);
        return failure_ != nullptr;
    }

    void add(const Tally &tally) {
        const std::lock_guard lock(mutex_);
        sum_ += tally;
    }

    Tally sum() const {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return sum_;
    }

  private:
    std::mutex mutex_;
    Range left_;
    std::uint64_t chunk_;
    Tally sum_{};
    std::exception_ptr failure_;
};

void work_in_thread(const Options &options, std::uint64_t index, Range events, const Conditions &conditions,
                    const Input &input, Papers papers, Share &share) try {
    pin(options, index);
    Worker worker(options, events, conditions, input, std::move(papers));
    const Supply dynamic = [&] { return share.next(); };
    const Supply nth = every_nth(events, index, options.threads);
    const Supply round_robin = [&] { return share.has_failed() ? Range{0, 0} : nth(); };
    worker.work_through(options.hand_out == HandOut::DYNAMIC ? dynamic : round_robin);
    share.add(worker.finished());
} catch (...) {
    share.fail(std::current_exception());
}

} // namespace

Tally work_in_threads(const Options &options, Range events, const Conditions &conditions) {
    const std::unique_ptr<Input> input = opened(options);
    Share share(events, options.chunk);
    {
        std::vector<std::jthread> threads; // which are waited for, whatever happens
        for (std::uint64_t index = 0; index < options.threads; index++) {
            Papers papers(options, "thread-" + std::to_string(index));
            threads.emplace_back([&, index, papers = std::move(papers)]() mutable {
                work_in_thread(options, index, events, conditions, *input, std::move(papers), share);
            });
        }
    }
    return share.sum();
}

} // namespace reco
