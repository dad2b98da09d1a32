#include "check.hpp"

#include "model.hpp"

#include "widthwise/sim/replications.hpp"

#include <cmath>
#include <string>

using namespace widthwise::sim;

TEST("every model agrees with what can be proved about it") {
    for (const models::Model &model : models::catalogue()) {
        const Plan plan{.count = 12, .seed = 2026};
        const Interval interval = estimate(
            plan,
            [&](const Replication &replication) {
                Simulation sim(Options{.seed = replication.seed});
                return model.run(sim, model.length);
            },
            0.999);
        const bool agrees =
            std::fabs(interval.mean - model.reference) <= interval.half + 1e-9 * model.reference;
        if (!agrees)
            check::fail(__FILE__, __LINE__,
                        std::string(model.name) + ": " + check::shown(interval.mean) + " +- " +
                            check::shown(interval.half) + " does not hold " + check::shown(model.reference));
        // An interval that holds everything proves nothing.
        CHECK(interval.half <= 0.1 * model.reference);
    }
}
