// What tests of processes have in common: a story that is told, on every back-end, by whoever says or uses
// something.
#pragma once

#include "widthwise/sim/facility.hpp"

#include <sstream>
#include <string>
#include <utility>

namespace story {

using namespace widthwise::sim;

/// What happened, as text: "time:word time:word ...".
class Story {
  public:
    explicit Story(Simulation &sim) : sim_(sim) {}
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

inline Process say(Simulation &, Story &story, std::string word, double after) {
    co_await wait(after);
    story(word);
}

inline Process use(Simulation &, Story &story, Facility &facility, std::string name, double time) {
    co_await facility.seize();
    story(name + "+");
    co_await wait(time);
    facility.release();
    story(name + "-");
}

} // namespace story
