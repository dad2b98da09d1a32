// What tests of processes share: an event trace, and processes that write one, on every back-end.
#pragma once

#include "widthwise/sim/facility.hpp"

#include <sstream>
#include <string>
#include <utility>

namespace event_trace {

using namespace widthwise::sim;

/// What happened, as text: "time:word time:word ...".
class EventTrace {
  public:
    explicit EventTrace(Simulation &sim) : sim_(sim) {}
    void operator()(const std::string &word) {
        std::ostringstream line;
        line << (text_.empty() ? "" : " ") << sim_.now() << ':' << word;
        text_ += line.str();
    }
    [[nodiscard]] const std::string &text() const { return text_; }

  private:
    Simulation &sim_;
    std::string text_;
};

/// Runs a test on every back-end.
template <class Body> void everywhere(Body body, Options options = {}) {
    for (const Switching switching : available_switching()) {
        options.switching = switching;
        body(std::as_const(options));
    }
}

/// The same with seed 42, which messages of errors name.
template <class Body> void everywhere_with_seed_42(Body body) { everywhere(body, {.seed = 42}); }

inline Process say(Simulation &, EventTrace &trace, std::string word, double after) {
    co_await wait(after);
    trace(word);
}

inline Process use(Simulation &, EventTrace &trace, Facility &facility, std::string name, double time) {
    co_await facility.seize();
    trace(name + "+");
    co_await wait(time);
    facility.release();
    trace(name + "-");
}

} // namespace event_trace
