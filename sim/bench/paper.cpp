// The measurements of peringer-2007, one row of its tables at a time:
//
//     paper switch BACK-END BYTES MILLIONS    4.1: switches between two processes with so much local data
//     paper events MILLIONS                   4.1: the same without processes
//     paper waiting BACK-END PROCESSES        4.2: so many processes wait at once
//     paper fit BACK-END MIB                  4.2: how many can, in so much address space
//     paper cycle BACK-END PROCESSES TIMES    4.2: created, begun, wait(1), ended
//     paper integrate METHOD MILLIONS         4.3: steps of the circle test
//     paper diagram METHOD MILLIONS           4.3: the same, wired of blocks
//
// Without arguments it takes them from the environment's PAPER_ROW, so that a row can be an axis of an
// experiment (experiments/peringer-2007). What it prints is the same in every ABI, except for `fit`;
// times are not printed, because the program that starts it has the better clock.
//
// On back-ends with stacks a body is a plain function, as the paper's Behavior() was, and its local data lies
// on the stack that is switched or copied. On coroutines it lies in the frame.
#include "widthwise/sim/blocks.hpp"
#include "widthwise/sim/function.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace widthwise::sim;

namespace {

/// A request that cannot be done; the text names those that can.
struct Misuse {
    std::string text;
};

using Words = std::vector<std::string>;

const std::string &word(const Words &words, std::size_t at, const char *what) {
    if (at >= words.size())
        throw Misuse{words.front() + " lacks " + what};
    return words[at];
}

double positive(const Words &words, std::size_t at, const char *what) {
    const std::string &text = word(words, at, what);
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !(value > 0.0 && value <= 1e9))
        throw Misuse{std::string(what) + " is a number above 0, not \"" + text + "\""};
    return value;
}

Switching back_end(const Words &words, std::size_t at) {
    const std::string &name = word(words, at, "BACK-END");
    std::string known;
    for (const Switching one : available_switching()) {
        if (name == name_of(one))
            return one;
        known += std::string(known.empty() ? "" : ", ") + name_of(one);
    }
    throw Misuse{"there is no back-end \"" + name + "\"; there are " + known};
}

Method method(const Words &words, std::size_t at) {
    const std::string &name = word(words, at, "METHOD");
    std::string known;
    for (const Method one : {Method::euler, Method::rke, Method::rkf3, Method::rkf5, Method::rkf8,
                             Method::tsit5, Method::vern7, Method::vern8, Method::abm4, Method::rodas4}) {
        if (name == name_of(one))
            return one;
        known += (known.empty() ? "" : ", ") + std::string(name_of(one));
    }
    throw Misuse{"there is no method \"" + name + "\"; there are " + known};
}

Options on(Switching switching) {
    Options options;
    options.switching = switching;
    options.stack_size = 16384;
    return options;
}

// ---------------------------------------------------------------------------------------------------------------
// Switches

/// Who ran after whom, in one number.
struct Order {
    std::uint32_t digest = 2166136261u;
    void ran(unsigned id) noexcept { digest = (digest ^ id) * 16777619u; }
};

/// The compiler takes the bytes for read and written here: it cannot do without them, nor keep them
/// elsewhere.
void use(void *bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

template <std::size_t Bytes>
Process switching_body(Simulation &, Order &order, unsigned id, std::uint64_t switches) {
    if constexpr (Bytes == 0) {
        for (std::uint64_t i = 0; i < switches; ++i) {
            order.ran(id);
            co_await wait(1.0);
        }
    } else {
        unsigned char local[Bytes];
        for (std::uint64_t i = 0; i < switches; ++i) {
            order.ran(id);
            use(local);
            co_await wait(1.0);
            use(local);
        }
    }
}

template <std::size_t Bytes>
Process plain_switching_body(Simulation &sim, Order &order, unsigned id, std::uint64_t switches) {
    return function(sim, [&order, id, switches](Self &self) {
        unsigned char local[Bytes == 0 ? 1 : Bytes];
        for (std::uint64_t i = 0; i < switches; ++i) {
            order.ran(id);
            if constexpr (Bytes != 0)
                use(local);
            self.wait(1.0);
            if constexpr (Bytes != 0)
                use(local);
        }
    });
}

template <std::size_t Bytes> void switches(Switching switching, double millions) {
    const auto each = static_cast<std::uint64_t>(millions * 1e6 / 2.0);
    Simulation sim(on(switching));
    Order order;
    for (const unsigned id : {1u, 2u})
        sim.start(sim.has_stacks() ? plain_switching_body<Bytes>(sim, order, id, each)
                                   : switching_body<Bytes>(sim, order, id, each));
    sim.run();
    std::printf("switch: %zu bytes, %" PRIu64 " events, until %.0f, order %08" PRIx32 "\n", Bytes,
                sim.events(), sim.now(), order.digest);
}

void switch_row(const Words &words) {
    const Switching switching = back_end(words, 1);
    const std::string &bytes = word(words, 2, "BYTES");
    const double millions = positive(words, 3, "MILLIONS");
    if (bytes == "0")
        return switches<0>(switching, millions);
    if (bytes == "10")
        return switches<10>(switching, millions);
    if (bytes == "100")
        return switches<100>(switching, millions);
    if (bytes == "1000")
        return switches<1000>(switching, millions);
    if (bytes == "10000")
        return switches<10000>(switching, millions);
    throw Misuse{"BYTES is one of the paper's, 0, 10, 100, 1000 or 10000, not \"" + bytes + "\""};
}

/// An event that schedules itself again.
void repeat_event(Simulation &sim, Order &order, unsigned id, std::uint64_t left) {
    order.ran(id);
    if (left > 1)
        sim.after(1.0, [&order, id, left](Simulation &again) { repeat_event(again, order, id, left - 1); });
}

void events_row(const Words &words) {
    const auto each = static_cast<std::uint64_t>(positive(words, 1, "MILLIONS") * 1e6 / 2.0);
    Simulation sim;
    Order order;
    for (const unsigned id : {1u, 2u})
        sim.after(0.0, [&order, id, each](Simulation &begun) { repeat_event(begun, order, id, each); });
    sim.run();
    std::printf("events: %" PRIu64 " events, until %.0f, order %08" PRIx32 "\n", sim.events(), sim.now(),
                order.digest);
}

// ---------------------------------------------------------------------------------------------------------------
// Processes by the hundred thousand

Process short_body(Simulation &) { co_await wait(1.0); }

Process one_more(Simulation &sim) {
    return sim.has_stacks() ? function(sim, [](Self &self) { self.wait(1.0); }) : short_body(sim);
}

void waiting_row(const Words &words) {
    Simulation sim(on(back_end(words, 1)));
    const auto processes = static_cast<std::uint64_t>(positive(words, 2, "PROCESSES"));
    for (std::uint64_t i = 0; i < processes; ++i)
        sim.start(one_more(sim));
    sim.run_until(0.5);
    std::printf("waiting: %zu processes wait after %" PRIu64 " events\n", sim.alive(), sim.events());
    std::fflush(stdout);
    std::_Exit(0); // what is measured is that they are there, not that they go
}

void cycle_row(const Words &words) {
    const Switching switching = back_end(words, 1);
    const auto processes = static_cast<std::uint64_t>(positive(words, 2, "PROCESSES"));
    const auto times = static_cast<std::uint64_t>(positive(words, 3, "TIMES"));
    std::uint64_t events = 0;
    for (std::uint64_t time = 0; time < times; ++time) {
        Simulation sim(on(switching));
        for (std::uint64_t i = 0; i < processes; ++i)
            sim.start(one_more(sim));
        sim.run();
        events += sim.events();
    }
    std::printf("cycle: %" PRIu64 " events\n", events);
}

/// In a child, which runs into the limit and may die of it; `standing` is memory shared with it.
void fill(Switching switching, std::size_t bytes, volatile std::uint64_t *standing) {
    constexpr std::uint64_t batch = 1000;
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        std::_Exit(1);
    Simulation sim(on(switching)); // not in the block below: it does not go, which takes its time
    try {
        for (;;) {
            for (std::uint64_t i = 0; i < batch; ++i)
                sim.start(one_more(sim));
            sim.run_until(0.5); // they begin, and wait
            *standing = *standing + batch;
            if (*standing > 100000000)
                std::_Exit(1); // there is no limit
        }
    } catch (...) { // out of memory, in whatever way it is reported
        std::_Exit(0);
    }
}

void fit_row(const Words &words) {
    const Switching switching = back_end(words, 1);
    const double mebibytes = positive(words, 2, "MIB");
    if (mebibytes > 2000.0)
        throw Misuse{"MIB is at most 2000: what an i386 program can have"};
    void *shared =
        mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        throw Misuse{"there is no memory to share with a child"};
    auto *standing = static_cast<volatile std::uint64_t *>(shared);
    const pid_t child = fork();
    if (child == 0)
        fill(switching, static_cast<std::size_t>(mebibytes) << 20, standing);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
        throw Misuse{"the address space could not be limited"};
    std::printf("fit: %" PRIu64 " processes in %.0f MiB\n", *standing, mebibytes);
}

// ---------------------------------------------------------------------------------------------------------------
// The circle test, y'' = -y

constexpr double step = 0.001;

void print_circle(const char *row, double time, double y, double rate) {
    std::printf("%s: at %.3f, y %a, y' %a\n", row, time, y, rate);
}

void integrate_row(const Words &words) {
    const Method by = method(words, 1);
    const double steps = positive(words, 2, "MILLIONS") * 1e6;
    Control control;
    control.step = step;
    Integrator circle(
        by,
        [](double, std::span<const double> y, std::span<double> rate) {
            rate[0] = y[1];
            rate[1] = -y[0];
        },
        {0.0, 1.0}, 0.0, control);
    circle.advance(steps * step);
    print_circle("integrate", circle.time(), circle.state()[0], circle.state()[1]);
}

void diagram_row(const Words &words) {
    const Method by = method(words, 1);
    const double steps = positive(words, 2, "MILLIONS") * 1e6;
    Control control;
    control.step = step;
    Simulation sim;
    Diagram circle(sim, by, control);
    Signal rate = circle.integrator(1.0);
    Signal y = circle.integrator(0.0);
    circle.connect(y, rate);
    circle.connect(rate, -y);
    circle.start();
    sim.run_until(steps * step);
    print_circle("diagram", sim.now(), circle.value(y), circle.value(rate));
}

// ---------------------------------------------------------------------------------------------------------------

struct Row {
    const char *name;
    void (*measure)(const Words &);
};
constexpr Row rows[] = {{"switch", switch_row},  {"events", events_row}, {"waiting", waiting_row},
                        {"fit", fit_row},        {"cycle", cycle_row},   {"integrate", integrate_row},
                        {"diagram", diagram_row}};

void measure(const Words &words) {
    std::string known;
    for (const Row &row : rows) {
        if (!words.empty() && words.front() == row.name)
            return row.measure(words);
        known += std::string(known.empty() ? "" : ", ") + row.name;
    }
    throw Misuse{"name a row, as arguments or in PAPER_ROW: " + known};
}

} // namespace

int main(int count, char **arguments) {
    Words words(arguments + 1, arguments + count);
    if (const char *row = std::getenv("PAPER_ROW"); words.empty() && row != nullptr) {
        std::istringstream text(row);
        for (std::string one; text >> one;)
            words.push_back(one);
    }
    try {
        measure(words);
    } catch (const Misuse &misuse) {
        std::fprintf(stderr, "paper: %s\n", misuse.text.c_str());
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "paper: %s\n", error.what());
        return 1;
    }
}
