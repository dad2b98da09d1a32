// A list that persists: every run adds one to it and prints it. `list FILE`
#include <cstdio>
#include <ctime>
#include <widthwise/window.hpp>

namespace window = widthwise::window;

struct Run {
    window::handle<Run> before;
    std::int64_t time;
};

static window::store opened(const char *path) {
    try {
        return window::store::open(path);
    } catch (const window::error &failure) {
        if (failure.code() != std::errc::no_such_file_or_directory)
            throw;
        return window::store::create(path, std::uint64_t(1) << 40); // 1 TiB, sparse
    }
}

int main(int count, char **arguments) try {
    if (count != 2) {
        std::fprintf(stderr, "usage: list FILE\n");
        return 2;
    }
    auto store = opened(arguments[1]);
    {
        window::transaction writes(store, WW_WRITE);
        const auto run = writes.allocate<Run>();
        *writes.overwrite(run) = {writes.root<Run>(), std::int64_t(std::time(nullptr))};
        writes.set_root(run);
        writes.commit();
    }
    const window::transaction reads(store, WW_READ);
    int runs = 0;
    for (auto run = reads.root<Run>(); run; run = reads.read(run)->before)
        runs++;
    std::printf("%d run%s\n", runs, runs == 1 ? "" : "s");
} catch (const std::exception &failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
}
