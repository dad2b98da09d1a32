#include "widthwise/sim/conditions.hpp"

namespace widthwise::sim {

bool Timer::begin(ProcessState &owner) {
    detail::Kernel &kernel = owner.kernel();
    node_.kind = Kind::Timer;
    node_.serial = kernel.next_serial();
    node_.waiter = this;
    withdraw = [](Waiter &self) {
        TimerNode &node = static_cast<Timer &>(self).node_;
        if (node.place != Place::Passive)
            self.process->kernel().unschedule(node);
    };
    kernel.schedule(node_, kernel.later(delay_), priority_of(owner.rank));
    return false;
}

} // namespace widthwise::sim
