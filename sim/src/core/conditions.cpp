#include "widthwise/sim/conditions.hpp"

#include "widthwise/sim/resource.hpp"

namespace widthwise::sim {

void detail::refuse_twice(const Resource &resource, const ProcessState &process) {
    throw WrongState(resource.shown() +
                         " is asked for twice in one all_of, whose process would wait for itself",
                     process.kernel().error_context(&process));
}

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
