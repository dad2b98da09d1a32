#include "check.hpp"

#include "model.hpp"

#include "widthwise/sim/replications.hpp"

#include <stdexcept>
#include <string>

using namespace widthwise::sim;

TEST("replications give the same results on one thread and on four") {
    const auto run = [](std::size_t threads) {
        return replicate(Plan{.count = 9, .seed = 7, .threads = threads}, [](const Replication &replication) {
            Simulation sim(Options{.seed = replication.seed, .trace = true});
            models::mm1(sim, 500.0);
            return sim.trace_hash();
        });
    };
    const auto one = run(1);
    CHECK(one == run(4));
    CHECK(one[0] != one[1]);
}

TEST("replications report their progress, and throw the first failure by index") {
    std::size_t calls = 0;
    Plan plan{.count = 6, .seed = 1, .threads = 3};
    plan.context = &calls;
    plan.progress = [](void *context, std::size_t ended, std::size_t count) {
        auto &seen = *static_cast<std::size_t *>(context);
        CHECK_EQUAL(ended, ++seen);
        CHECK_EQUAL(count, 6u);
    };
    std::string what;
    try {
        replicate(plan, [](const Replication &replication) {
            if (replication.index >= 2)
                throw std::runtime_error("replication " + std::to_string(replication.index));
            return 0;
        });
    } catch (const std::runtime_error &error) {
        what = error.what();
    }
    CHECK_EQUAL(what, std::string("replication 2"));
    CHECK_EQUAL(calls, 6u);
}
