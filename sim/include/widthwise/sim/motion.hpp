// The interface of the continuous half of a combined model.
#pragma once

namespace widthwise::sim {

class Simulation;

/// A continuous state, which advances with the clock between events.
class Motion {
  public:
    virtual ~Motion() = default;
    /// Advances from `from` towards `to`. Returns the time reached: earlier than `to` only if the motion has
    /// scheduled something for that time.
    virtual double advance(Simulation &sim, double from, double to) = 0;
};

} // namespace widthwise::sim
