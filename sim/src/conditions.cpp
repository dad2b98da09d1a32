#include "widthwise/sim/conditions.hpp"

namespace widthwise::sim {

bool Timer::begin(ProcessState &owner) {
    Simulation &sim = owner.sim();
    node_.kind = Kind::Timer;
    node_.serial = sim.next_serial();
    node_.waiter = this;
    withdraw = [](Waiter &self) {
        TimerNode &node = static_cast<Timer &>(self).node_;
        if (node.place != Place::Passive)
            self.process->sim().unschedule(node);
    };
    sim.schedule(node_, sim.now() + delay_, priority_of(owner.rank));
    return false;
}

} // namespace widthwise::sim
