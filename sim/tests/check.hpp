// A test is a sentence and a block. A check that fails prints the values that it compared, and the test
// continues.
//
// Why no test framework: none is packaged for all three ABIs.
#pragma once

#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace check {

struct Test {
    Test(const char *sentence, void (*body)(), const char *file, int line);
    const char *sentence;
    void (*body)();
    const char *file;
    int line;
    Test *next = nullptr;
};

void fail(const char *file, int line, const std::string &what);
/// Fails unless `actual` is within `within` of `expected`.
void near(const char *file, int line, double actual, double expected, double within);
[[noreturn]] void skip(const std::string &why);

/// Compares with the line `name value` of tests/golden.txt, which is the same file for every ABI.
void golden(const char *file, int line, std::string_view name, std::uint64_t value);

template <class Value> std::string shown(const Value &value) {
    if constexpr (requires(std::ostream & out) { out << value; }) {
        std::ostringstream out;
        out.precision(17);
        out << value;
        return out.str();
    } else {
        return "(a value)";
    }
}

/// The message of the error that leaves `sim.run()`, which must be an `Error`.
template <class Error, class Simulation> std::string message(Simulation &sim) {
    try {
        sim.run();
    } catch (const Error &error) {
        return error.what();
    } catch (const std::exception &other) {
        return std::string("something else: ") + other.what();
    }
    return "nothing";
}

/// FNV-1a over 64-bit words: for golden hashes of many results.
class Hash {
  public:
    void operator()(std::uint64_t word) noexcept {
        for (int i = 0; i < 8; ++i) {
            value_ = (value_ ^ (word & 0xff)) * 0x100000001b3u;
            word >>= 8;
        }
    }
    void operator()(double value) noexcept { (*this)(__builtin_bit_cast(std::uint64_t, value)); }
    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

} // namespace check

#define CHECK_JOIN2(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN2(a, b)

#define TEST(sentence)                                                                                       \
    static void CHECK_JOIN(test_, __LINE__)();                                                               \
    static check::Test CHECK_JOIN(entry_, __LINE__)(sentence, CHECK_JOIN(test_, __LINE__), __FILE__,         \
                                                    __LINE__);                                               \
    static void CHECK_JOIN(test_, __LINE__)()

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            check::fail(__FILE__, __LINE__, #condition);                                                     \
    } while (false)

#define CHECK_EQUAL(actual, expected)                                                                        \
    do {                                                                                                     \
        const auto check_a = (actual);                                                                       \
        const auto check_b = (expected);                                                                     \
        if (!(check_a == check_b))                                                                           \
            check::fail(__FILE__, __LINE__,                                                                  \
                        #actual " is " + check::shown(check_a) + ", not " + check::shown(check_b));          \
    } while (false)

#define CHECK_THROWS(expression, type)                                                                       \
    do {                                                                                                     \
        try {                                                                                                \
            expression;                                                                                      \
            check::fail(__FILE__, __LINE__, #expression " throws nothing, not " #type);                      \
        } catch (const type &) {                                                                             \
        } catch (const std::exception &check_other) {                                                        \
            check::fail(__FILE__, __LINE__,                                                                  \
                        std::string(#expression " throws something else: ") + check_other.what());           \
        }                                                                                                    \
    } while (false)

#define CHECK_GOLDEN(name, value) check::golden(__FILE__, __LINE__, name, value)
