// The C++ wrappers: typed handles, pins, ranges and transactions end with their scope.
#include "widthwise/window.hpp"

#include "check.h"

namespace window = widthwise::window;

struct Node {
    window::handle<Node> next;
    std::uint32_t value, padding;
};
static_assert(sizeof(Node) == 16 && sizeof(window::handle<Node>) == 8);

static void a_list_is_kept_by_handles(const std::string &path) {
    {
        auto store = window::store::create(path, 8 << 20);
        window::transaction writes(store, WW_WRITE);
        window::handle<Node> first;
        for (std::uint32_t i = 0; i < 1000; i++) {
            const auto node = writes.allocate<Node>();
            *writes.overwrite(node) = {first, i, 0};
            first = node;
        }
        writes.set_root(first);
        writes.commit();
    }
    auto store = window::store::open(path);
    const window::transaction reads(store, WW_READ);
    std::uint32_t expected = 1000;
    for (auto node = reads.root<Node>(); node;) {
        const auto pinned = reads.read(node);
        CHECK(pinned->value == --expected);
        node = pinned->next;
    }
    CHECK(expected == 0);
}

static void a_range_goes_through_windows(const std::string &path) {
    ww_options options = {};
    options.window_bytes = 16384;
    auto store = window::store::create(path, 1 << 20, options);
    const auto words = store.at<std::uint64_t>(4096);
    {
        window::transaction writes(store, WW_WRITE);
        auto pinned = writes.write(words, 20000);
        for (std::size_t i = 0; i < pinned.size(); i++)
            pinned[i] = i * i;
        { const auto moved = std::move(pinned); }
        writes.commit();
    }
    const window::transaction reads(store, WW_READ);
    std::uint64_t i = 0;
    for (const std::uint64_t &word : reads.each(words, 20000)) {
        CHECK(word == i * i);
        i++;
    }
    CHECK(i == 20000);
    for (const std::uint64_t &word : reads.each(words, 20000)) { // an early end unpins as well
        CHECK(word == 0);
        break;
    }
}

static void a_transaction_without_a_commit_is_undone(const std::string &path) {
    auto store = window::store::create(path, 1 << 20);
    const auto word = store.at<std::uint64_t>(64);
    {
        const window::transaction writes(store, WW_WRITE);
        *writes.write(word) = 5;
    }
    const window::transaction reads(store, WW_READ);
    CHECK(*reads.read(word) == 0);
    try {
        reads.write(word);
        CHECK(!"a snapshot was written");
    } catch (const window::error &failure) {
        CHECK(failure.code().value() == EROFS && strstr(failure.what(), "only reads"));
    }
    try {
        window::store::open(path + ".absent");
        CHECK(!"an absent store was opened");
    } catch (const window::error &failure) {
        CHECK(failure.code() == std::errc::no_such_file_or_directory);
    }
}

template <class Call> static void fails(int code, const char *words, Call call) {
    try {
        call();
    } catch (const window::error &failure) {
        CHECK(failure.code().value() == code && strstr(failure.what(), words));
        return;
    }
    CHECK(!"it did not fail");
}

// Bytes that do not fit a number of 64 bits, or in ILP32 of 32 bits, are an error, not a small number of
// objects.
static void counts_that_are_too_large_are_refused(const std::string &path) {
    const auto store = window::store::create(path, 1 << 20);
    const auto words = store.at<std::uint64_t>(0);
    const window::transaction writes(store, WW_WRITE);
    const std::uint64_t wraps = (UINT64_C(1) << 61) + 1;
    fails(ERANGE, "larger than any", [&] { writes.each(words, wraps); });
    fails(ERANGE, "larger than any", [&] { writes.allocate<std::uint64_t>(wraps); });
    fails(ERANGE, "larger than any", [&] { writes.read(words, wraps); });
    fails(ERANGE, sizeof(void *) == 4 ? "larger than any" : "beyond the store's",
          [&] { writes.write(words, (UINT64_C(1) << 32) + 1); });
}

struct Odd {
    std::uint32_t three[3];
};

static void a_range_of_objects_across_windows_is_refused(const std::string &path) {
    ww_options options = {};
    options.window_bytes = 16384;
    const auto store = window::store::create(path, 1 << 20, options);
    const window::transaction reads(store, WW_READ);
    fails(EINVAL, "lies across windows", [&] {
        for (const Odd &odd : reads.each(store.at<Odd>(0), 5000))
            CHECK(odd.three[0] == 0);
    });
}

struct Large {
    std::uint64_t words[1024];
};

// What is allocated begins with the second half of an object and ends with the first half of another.
static void a_range_of_parts_of_objects_is_refused(const std::string &path) {
    const auto store = window::store::create(path, 1 << 20);
    {
        window::transaction writes(store, WW_WRITE);
        *writes.write(store.at<std::uint64_t>(4096)) = 1;
        *writes.write(store.at<std::uint64_t>(8192)) = 2;
        writes.commit();
    }
    const window::transaction reads(store, WW_READ);
    fails(EINVAL, "lies across", [&] {
        for (const Large &large : reads.each(store.at<Large>(0), 10, WW_ALLOCATED))
            CHECK(large.words[0] == 0);
    });
}

int main() {
    a_list_is_kept_by_handles(test_path("list"));
    a_range_goes_through_windows(test_path("range"));
    a_transaction_without_a_commit_is_undone(test_path("undone"));
    counts_that_are_too_large_are_refused(test_path("counts"));
    a_range_of_objects_across_windows_is_refused(test_path("odd"));
    a_range_of_parts_of_objects_is_refused(test_path("parts"));
    test_end();
}
