#include "widthwise/sim/store.hpp"

#include "resources/report_format.hpp"

namespace widthwise::sim {

Store::Store(Simulation &sim, std::uint64_t capacity, std::string_view name)
    : Resource(sim, name), capacity_(capacity), wait_queue_(sim.now()), use_(sim.now()) {
    if (capacity == 0)
        throw BadRequest("store \"" + name_ + "\" needs a capacity of at least 1", sim.error_context());
}

Store::~Store() { wait_queue_.abandon(); }

bool Store::Enter::begin(ProcessState &owner) {
    Store &store = *store_;
    store.check_owner(owner);
    if (places_ > store.capacity_)
        throw BadRequest(store.shown() + " has " + std::to_string(store.capacity_) + " places, not " +
                             std::to_string(places_),
                         owner.kernel().error_context(&owner));
    priority = priority_of(owner.rank);
    const Waiter *first = store.wait_queue_.first();
    if ((first == nullptr || first->priority < priority) && store.capacity_ - store.used_ >= places_) {
        store.set_used(store.used_ + places_);
        store.wait_queue_.pass();
        return true;
    }
    withdraw = [](Waiter &self) {
        if (!self.queued)
            return;
        Store &where = *static_cast<Enter &>(self).store_;
        where.wait_queue_.leave(self, self.process->kernel().now());
        where.admit(); // the requests behind it may fit
    };
    store.wait_queue_.insert(*this, owner.kernel().now());
    return false;
}

void Store::leave(std::uint64_t places) {
    if (places > used_)
        throw ReleaseWithoutSeize(shown() + " was left with " + std::to_string(places) + " places while " +
                                      std::to_string(used_) + " were used",
                                  kernel().error_context());
    set_used(used_ - places);
    admit();
}

void Store::admit() {
    while (Waiter *waiter = wait_queue_.first()) {
        const std::uint64_t places = static_cast<Enter &>(*waiter).places_;
        if (capacity_ - used_ < places)
            return;
        wait_queue_.serve(*waiter, sim_->now());
        set_used(used_ + places);
        kernel().grant(*waiter);
    }
}

std::string Store::report() const {
    const double now = sim().now();
    return shown() + field("capacity", static_cast<double>(capacity_)) + field("utilisation", utilisation()) +
           field("used", static_cast<double>(used_)) + field("most used", use_.greatest()) + '\n' +
           queue_report(wait_queue_, now);
}

void Store::clear_statistics() {
    use_.clear(sim().now());
    wait_queue_.clear_statistics(sim().now());
}

} // namespace widthwise::sim
