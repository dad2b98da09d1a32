#include "check.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>

namespace check {
namespace {

Test *first = nullptr;
Test **last = &first;
int failures = 0;
const char *running = nullptr;

struct Skipped {
    std::string why;
};

std::map<std::string, std::uint64_t, std::less<>> &goldens() {
    static auto values = [] {
        std::map<std::string, std::uint64_t, std::less<>> read;
        std::ifstream file(CHECK_GOLDEN_FILE);
        std::string name;
        std::string value;
        while (file >> name >> value)
            read[name] = std::strtoull(value.c_str(), nullptr, 16);
        return read;
    }();
    return values;
}

} // namespace

Test::Test(const char *s, void (*b)(), const char *f, int l) : sentence(s), body(b), file(f), line(l) {
    *last = this;
    last = &next;
}

void fail(const char *file, int line, const std::string &what) {
    ++failures;
    const char *name = std::strrchr(file, '/');
    std::printf("%s:%d: %s\n    in: %s\n", name != nullptr ? name + 1 : file, line, what.c_str(), running);
}

void near(const char *file, int line, double actual, double expected, double within) {
    if (!(std::fabs(actual - expected) <= within))
        fail(file, line, shown(actual) + " is not within " + shown(within) + " of " + shown(expected));
}

void skip(const std::string &why) { throw Skipped{why}; }

void golden(const char *file, int line, std::string_view name, std::uint64_t value) {
    char text[64];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    const auto found = goldens().find(name);
    if (found == goldens().end())
        fail(file, line, "tests/golden.txt lacks the line: " + std::string(name) + ' ' + text);
    else if (found->second != value)
        fail(file, line, "tests/golden.txt has another value; here it is: " + std::string(name) + ' ' + text);
}

} // namespace check

int main(int count, char **arguments) {
    int tests = 0;
    for (const check::Test *test = check::first; test != nullptr; test = test->next) {
        if (count > 1 && std::strstr(test->sentence, arguments[1]) == nullptr)
            continue;
        ++tests;
        check::running = test->sentence;
        try {
            test->body();
        } catch (const check::Skipped &skipped) {
            std::printf("skipped: %s: %s\n", test->sentence, skipped.why.c_str());
        } catch (const std::exception &error) {
            check::fail(test->file, test->line, std::string("an exception left the test: ") + error.what());
        }
    }
    std::printf("%d tests, %d failed checks\n", tests, check::failures);
    return check::failures == 0 && tests > 0 ? 0 : 1;
}
