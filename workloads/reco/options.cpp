#include "options.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include "conditions.hpp"
#include "failure.hpp"

namespace reco {

const char *const HELP = R"(usage: reco [OPTION]...
       reco generate FILE [--events E] [--first K] [--seed S] [--tracks M] [--noise M]

Reconstructs tracks in generated events. The answer, on standard output, depends neither on the ABI nor on
how the work is shared out.

Events
  --input FILE        read them from FILE (default: they are generated one by one)
  --events E          how many (default: 100, or all of FILE)
  --first K           number of the first one (default: 1, or FILE's first)
  --skip N            the same as --first N+1: of jobs that share events, those that others have
  --seed S            of the generator (default: 1)
  --tracks M          mean number of particles in an event (default: 120)
  --noise M           mean number of noise hits in a layer (default: 40)
Conditions
  --conditions SIZE   so large in x86-64, with K, M or G (default: 32M); the first event makes as much again of them
  --counted           events count references to them, which unshares their pages after a fork
  --keep E            each worker keeps its last E events in memory (default: 0)
Workers
  --processes N       N forked children
  --threads N         N threads
  --fork POINT        before-conditions, after-conditions (default) or after-first-event
  --hand-out MODE     dynamic (default): a ready child gets the next chunk; round-robin: every Nth event
  --chunk C           events that are handed out at a time (default: 1)
  --pin               child i on the i-th CPU that this program may use, and round again
Output
  --output FOLDER     a log and the tracks of each child
  --log-events        a line for each event: number, elapsed and CPU seconds; in the log, else on standard error
  --marks             write the phases to WIDTHWISE_MARKS
Tests
  --fail-at K         event K fails
  --die-at K          event K kills the process that works on it
  --help
)";

namespace {

Failure bad(const std::string &line) { return {BAD_INPUT, line + "; see reco --help"}; }

std::uint64_t number(std::string_view option, std::string_view text, std::uint64_t least,
                     std::uint64_t most) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
        throw bad(std::string(option) + " takes a whole number from " + std::to_string(least) + " to " +
                  std::to_string(most) + ", not '" + std::string(text) + "'");
    }
    return value;
}

std::uint64_t size(std::string_view option, std::string_view text) {
    const std::string_view units = "KMG";
    const auto unit = text.empty() ? std::string_view::npos : units.find(text.back());
    const unsigned shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
    if (shift > 0) {
        text.remove_suffix(1);
    }
    constexpr std::uint64_t MOST = std::uint64_t{1} << 40;
    const std::uint64_t bytes = number(option, text, 0, MOST >> shift) << shift;
    // Where pointers are short, five eighths of it are left; what the first event makes of it is as much
    // again.
    if (bytes / 8 * 5 * 2 > SIZE_MAX) {
        throw bad(std::string(option) + " is more than this ABI has addresses for");
    }
    if (bytes < Conditions::least_bytes()) {
        throw bad(std::string(option) + " must be at least " +
                  std::to_string((Conditions::least_bytes() + 1023) / 1024) +
                  "K, or some modules have no calibration");
    }
    return bytes;
}

template <typename Choice> struct Named {
    std::string_view name;
    Choice choice;
};

template <typename Choice, std::size_t N>
Choice choice(std::string_view option, std::string_view text, const Named<Choice> (&names)[N]) {
    std::string known;
    for (const auto &[name, choice] : names) {
        if (name == text) {
            return choice;
        }
        known += (known.empty() ? "" : ", ") + std::string(name);
    }
    throw bad(std::string(option) + " takes one of " + known + ", not '" + std::string(text) + "'");
}

constexpr Named<ForkPoint> FORK_POINTS[] = {{"before-conditions", ForkPoint::BEFORE_CONDITIONS},
                                            {"after-conditions", ForkPoint::AFTER_CONDITIONS},
                                            {"after-first-event", ForkPoint::AFTER_FIRST_EVENT}};
constexpr Named<HandOut> HAND_OUTS[] = {{"dynamic", HandOut::DYNAMIC}, {"round-robin", HandOut::ROUND_ROBIN}};

constexpr std::uint64_t MOST_EVENTS = std::uint64_t{1} << 48;
constexpr std::uint64_t MOST_WORKERS = 4096;
constexpr std::uint64_t MOST_HITS = 100000;

// The words after an option, taken one by one.
class Words {
  public:
    Words(int count, const char *const *words) : left_(words + 1), end_(words + count) {}

    bool empty() const { return left_ == end_; }
    std::string_view next() { return *left_++; }
    std::string_view value_of(std::string_view option) {
        if (empty()) {
            throw bad(std::string(option) + " needs a value");
        }
        return next();
    }

  private:
    const char *const *left_, *const *end_;
};

} // namespace

Options options_of(int count, const char *const *words) {
    Options options;
    Words left(count, words);
    if (count > 1 && std::strcmp(words[1], "generate") == 0) {
        options.verb = Verb::GENERATE;
        left.next();
        if (left.empty()) {
            throw bad("generate needs a FILE");
        }
        options.file = left.next();
    }
    const bool reconstructs = options.verb == Verb::RECONSTRUCT;
    while (!left.empty()) {
        const std::string_view option = left.next();
        const auto number_within = [&](std::uint64_t least, std::uint64_t most) {
            return number(option, left.value_of(option), least, most);
        };
        const auto small_number = [&](std::uint64_t least, std::uint64_t most) {
            return static_cast<std::uint32_t>(number_within(least, most));
        };
        if (option == "--help") {
            options.verb = Verb::HELP;
            return options;
        } else if (option == "--events") {
            options.events = number_within(1, MOST_EVENTS);
        } else if (option == "--first") {
            options.first = number_within(1, MOST_EVENTS);
        } else if (option == "--skip") {
            options.first = number_within(0, MOST_EVENTS - 1) + 1;
        } else if (option == "--seed") {
            options.recipe.seed = number_within(0, UINT64_MAX);
        } else if (option == "--tracks") {
            options.recipe.tracks = small_number(0, MOST_HITS);
        } else if (option == "--noise") {
            options.recipe.noise = small_number(0, MOST_HITS);
        } else if (!reconstructs) {
            throw bad("generate does not know '" + std::string(option) + "'");
        } else if (option == "--input") {
            options.file = left.value_of(option);
        } else if (option == "--conditions") {
            options.conditions = size(option, left.value_of(option));
        } else if (option == "--counted") {
            options.counted = true;
        } else if (option == "--keep") {
            options.keep = small_number(0, 1 << 20);
        } else if (option == "--processes") {
            options.processes = small_number(1, MOST_WORKERS);
        } else if (option == "--threads") {
            options.threads = small_number(1, MOST_WORKERS);
        } else if (option == "--fork") {
            options.fork = choice(option, left.value_of(option), FORK_POINTS);
        } else if (option == "--hand-out") {
            options.hand_out = choice(option, left.value_of(option), HAND_OUTS);
        } else if (option == "--chunk") {
            options.chunk = small_number(1, 1 << 20);
        } else if (option == "--pin") {
            options.pin = true;
        } else if (option == "--output") {
            options.output = left.value_of(option);
        } else if (option == "--log-events") {
            options.log_events = true;
        } else if (option == "--marks") {
            options.marks = true;
        } else if (option == "--fail-at") {
            options.fail_at = number_within(1, MOST_EVENTS);
        } else if (option == "--die-at") {
            options.die_at = number_within(1, MOST_EVENTS);
        } else {
            throw bad("unknown option '" + std::string(option) + "'");
        }
    }
    if (options.processes > 0 && options.threads > 0) {
        throw bad("--processes and --threads cannot be had at once");
    }
    return options;
}

} // namespace reco
