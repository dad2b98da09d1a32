// A forked toy reconstruction, as CMS's was: docs/reco.md.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "children.hpp"
#include "failure.hpp"
#include "threads.hpp"
#include "worker.hpp"

namespace reco {

Failure failure_of_system(Status status, const std::string &what) {
    return {status, what + ": " + std::strerror(errno)};
}

namespace {

// The input is open while conditions are made, as it tells what they must be for; it is closed before anybody
// forks.
Range begun(const Options &options) {
    mark(options, "begin-job");
    const std::unique_ptr<Input> input = opened(options);
    const Range events = asked_for(options, *input);
    if (input->is_file()) {
        input->event(events.first);
    }
    return events;
}

std::unique_ptr<Conditions> prefetched(const Options &options) {
    mark(options, "conditions");
    return std::make_unique<Conditions>(options.conditions, options.counted);
}

// One process does these events by itself.
Tally work_alone(const Options &options, Range all, Range events, const Conditions &conditions,
                 const char *name) {
    const std::unique_ptr<Input> input = opened(options);
    Worker worker(options, all, conditions, *input, Papers(options, name));
    worker.work_through(every_nth(events, 0, 1));
    return worker.finished();
}

// The parent's life. What a child needs of it, it has made before the fork.
Tally work_as_parent(const Options &options, Range all) {
    std::unique_ptr<Conditions> conditions;
    if (options.fork != ForkPoint::BEFORE_CONDITIONS) {
        conditions = prefetched(options);
    }
    Tally sum{};
    Range events = all;
    if (options.fork == ForkPoint::AFTER_FIRST_EVENT) {
        sum = work_alone(options, all, {all.first, 1}, *conditions, "parent");
        events = {all.first + 1, all.count - 1};
    }
    mark(options, "fork");
    sum += work_in_children(options, all, events, conditions.get());
    return sum;
}

Tally reconstructed(const Options &options) {
    const Range events = begun(options);
    if (options.processes > 0) {
        return work_as_parent(options, events);
    }
    const std::unique_ptr<Conditions> conditions = prefetched(options);
    if (options.threads > 0) {
        return work_in_threads(options, events, *conditions);
    }
    pin(options, 0);
    return work_alone(options, events, events, *conditions, "job");
}

void answer(const Options &options) {
    switch (options.verb) {
    case Verb::HELP:
        std::fputs(HELP, stdout);
        break;
    case Verb::GENERATE:
        write_input(options.file, options.recipe, {options.first.value_or(1), options.events.value_or(100)});
        break;
    case Verb::RECONSTRUCT:
        print(reconstructed(options), stdout);
        mark(options, "end-job");
        break;
    }
    if (std::fflush(stdout) != 0) {
        throw failure_of_system(FAILED, "standard output cannot be written");
    }
}

} // namespace

} // namespace reco

int main(int count, char **words) {
    try {
        reco::answer(reco::options_of(count, words));
        return reco::DONE;
    } catch (const reco::Failure &failure) {
        std::fprintf(stderr, "error: %s\n", failure.what());
        return failure.status;
    } catch (const std::bad_alloc &) {
        std::fputs("error: there is not enough memory, or not enough address space in this ABI\n", stderr);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
    }
    return reco::FAILED;
}
