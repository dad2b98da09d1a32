#include "widthwise/sim/store.hpp"

#include "reporting.hpp"

namespace widthwise::sim {

Store::Store(Simulation &sim, std::uint64_t capacity, std::string_view name)
    : Resource(sim, name), capacity_(capacity), line_(sim.now()), use_(sim.now()) {
    if (capacity == 0)
        throw BadRequest("store \"" + name_ + "\" needs a capacity of at least 1", sim.circumstance());
}

Store::~Store() { line_.abandon(); }

bool Store::Enter::begin(ProcessState &owner) {
    Store &store = *store_;
    store.check_owner(owner);
    if (places_ > store.capacity_)
        throw BadRequest(store.shown() + " has " + std::to_string(store.capacity_) + " places, not " +
                             std::to_string(places_),
                         owner.sim().circumstance(&owner));
    priority = priority_of(owner.rank);
    const Waiter *first = store.line_.first();
    if ((first == nullptr || first->priority < priority) && store.capacity_ - store.used_ >= places_) {
        store.set_used(store.used_ + places_);
        store.line_.pass();
        return true;
    }
    withdraw = [](Waiter &self) {
        if (!self.in_line)
            return;
        Store &where = *static_cast<Enter &>(self).store_;
        where.line_.leave(self, self.process->sim().now());
        where.admit(); // who stood behind may fit
    };
    store.line_.insert(*this, owner.sim().now());
    return false;
}

void Store::leave(std::uint64_t places) {
    if (places > used_)
        throw ReleaseWithoutSeize(shown() + " was left with " + std::to_string(places) + " places while " +
                                      std::to_string(used_) + " were used",
                                  sim_->circumstance());
    set_used(used_ - places);
    admit();
}

void Store::admit() {
    while (Waiter *waiter = line_.first()) {
        const std::uint64_t places = static_cast<Enter &>(*waiter).places_;
        if (capacity_ - used_ < places)
            return;
        line_.serve(*waiter, sim_->now());
        set_used(used_ + places);
        sim_->grant(*waiter);
    }
}

std::string Store::report() const {
    const double now = sim_->now();
    return shown() + field("capacity", static_cast<double>(capacity_)) + field("utilisation", utilisation()) +
           field("used", static_cast<double>(used_)) + field("most used", use_.greatest()) + '\n' +
           line_report(line_, now);
}

void Store::clear_statistics() {
    use_.clear(sim_->now());
    line_.clear_statistics(sim_->now());
}

} // namespace widthwise::sim
