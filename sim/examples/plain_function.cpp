// Processes as plain functions, which may wait at any depth of calls: they need a back-end with stacks.
#include <widthwise/sim/facility.hpp>
#include <widthwise/sim/function.hpp>

#include <cstdio>

using namespace widthwise::sim;

namespace {

/// An ordinary function: the process that calls it waits.
void be_served(Self &self, Facility &desk, double time) {
    self(desk.seize());
    self.wait(time);
    desk.release();
}

} // namespace

int main() {
    Simulation sim(Options{.switching = Switching::Assembly});
    Facility desk(sim, "desk");
    for (const char *name : {"Ada", "Blaise", "Charles"})
        sim.start(function(sim,
                           [&desk, name](Self &self) {
                               be_served(self, desk, 2.5);
                               std::printf("%4.1f  %s is done\n", self.now(), name);
                           }),
                  name);
    sim.run();
}
