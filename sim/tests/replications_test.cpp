#include "check.hpp"

#include "model.hpp"

#include "widthwise/sim/replications.hpp"

#include <limits>
#include <pthread.h>
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

TEST("replications need no other thread than the one that asks for them") {
    pthread_attr_t usual;
    pthread_attr_t huge;
    CHECK_EQUAL(pthread_getattr_default_np(&usual), 0);
    CHECK_EQUAL(pthread_getattr_default_np(&huge), 0);
    CHECK_EQUAL(pthread_attr_setstacksize(&huge, std::numeric_limits<std::size_t>::max() - 0xfffff), 0);
    CHECK_EQUAL(pthread_setattr_default_np(&huge), 0);
    const auto results = replicate(Plan{.count = 5, .threads = 3},
                                   [](const Replication &replication) { return replication.index; });
    CHECK_EQUAL(pthread_setattr_default_np(&usual), 0);
    CHECK_EQUAL(results.size(), 5u);
    CHECK_EQUAL(results[4], 4u);
}

TEST("what the report of progress throws is thrown after all replications") {
    Plan plan{.count = 6, .seed = 1, .threads = 3};
    std::atomic<int> calls{0};
    plan.progress = [](void *, std::size_t ended, std::size_t) {
        if (ended == 2)
            throw std::runtime_error("full");
    };
    CHECK_THROWS(replicate(plan,
                           [&](const Replication &) {
                               ++calls;
                               return 0;
                           }),
                 std::runtime_error);
    CHECK_EQUAL(calls.load(), 6);
}
