#include "check.hpp"

#include "model.hpp"

#include <string>

using namespace widthwise::sim;

TEST("every model has one trace, whatever the back-end, the event list and the ABI") {
    for (const models::Model &model : models::catalogue()) {
        for (const Switching switching : available_switching())
            for (const Listing listing :
                 {Listing::Automatic, Listing::Heap, Listing::Calendar, Listing::Ladder}) {
                Options options;
                options.seed = 5;
                options.switching = switching;
                options.listing = listing;
                options.trace = true;
                Simulation sim(options);
                sim.trace(model.run(sim, model.short_length));
                CHECK_GOLDEN("trace." + std::string(model.name), sim.trace_hash());
            }
    }
}

TEST("another seed has another trace") {
    const models::Model *model = models::find("mm1");
    Simulation first(Options{.seed = 1, .trace = true});
    Simulation second(Options{.seed = 2, .trace = true});
    model->run(first, 100);
    model->run(second, 100);
    CHECK(first.trace_hash() != second.trace_hash());
}
