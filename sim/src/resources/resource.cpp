#include "widthwise/sim/resource.hpp"

#include <vector>

namespace widthwise::sim {

void detail::Kernel::add(Resource &resource) { resources_.push_back(&resource); }

void detail::Kernel::remove(Resource &resource) noexcept { std::erase(resources_, &resource); }

Resource::Resource(Simulation &sim, std::string_view name) : sim_(&sim), name_(name) {
    sim.kernel().add(*this);
}

Resource::~Resource() {
    if (sim_ != nullptr)
        sim_->kernel().remove(*this);
}

void Resource::refuse_other_simulation(const ProcessState &process) const {
    throw WrongState(shown() + " was asked by a process of another simulation than the one it was made in",
                     process.kernel().error_context(&process));
}

void Resource::refuse_without_simulation() const {
    throw WrongState(shown() + " was used after its simulation had been destroyed", {});
}

} // namespace widthwise::sim
