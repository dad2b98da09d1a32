// What a waiting process costs: resident memory of half a million of them, their entries on the agenda
// included, in a program of its own for each back-end (a peak once reached is never lowered).
#include "timing.hpp"

#include "widthwise/sim/process.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace widthwise::sim;

namespace {

Process waiter(Simulation &) { co_await wait(1.0); }

double resident_peak() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

/// In a child: bytes for each process, written into a pipe.
void measure(Switching switching, std::size_t processes) {
    int ends[2];
    if (pipe(ends) != 0)
        std::exit(1);
    const pid_t child = fork();
    if (child == 0) {
        double bytes = -1.0;
        try {
            const double before_all = resident_peak();
            Options options;
            options.switching = switching;
            options.stack_size = 16384;
            Simulation sim(options);
            for (std::size_t i = 0; i < processes; ++i)
                sim.start(waiter(sim));
            sim.run_until(0.5);
            bytes = (resident_peak() - before_all) / static_cast<double>(processes);
        } catch (const std::exception &error) {
            std::fprintf(stderr, "  %s: %s\n", name_of(switching), error.what());
        }
        if (write(ends[1], &bytes, sizeof bytes) != sizeof bytes)
            std::_Exit(1);
        std::_Exit(0);
    }
    double bytes = -1.0;
    close(ends[1]);
    if (read(ends[0], &bytes, sizeof bytes) != sizeof bytes)
        bytes = -1.0;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    if (bytes >= 0.0)
        std::printf("  %-12s %10zu processes  %10.1f bytes each\n", name_of(switching), processes, bytes);
    std::fflush(stdout);
}

} // namespace

int main() {
    std::printf("resident memory of a waiting process without locals, %zu-bit pointers\n",
                8 * sizeof(void *));
    for (const Switching switching : available_switching())
        switch (switching) {
        case Switching::Coroutine:
        case Switching::StackCopy:
            measure(switching, 500000);
            break;
        case Switching::Thread:
            measure(switching, 500);
            break;
        default:
            measure(switching, 20000);
        }
}
