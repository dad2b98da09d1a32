//! A C++ file for a compiler to read: as long as wanted, and always the same for the same length.
//!
//! It is made of parts. Each part has a namespace with classes, templates, containers and some functions whose
//! statements are chosen at random, so that a compiler's passes find work of many kinds.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const HEAD: &str = "#include <algorithm>\n#include <array>\n#include <cstdio>\n#include <functional>\n\
    #include <map>\n#include <memory>\n#include <numeric>\n#include <stdexcept>\n#include <string>\n\
    #include <unordered_map>\n#include <vector>\n\n\
    namespace part_0 {\nlong run(long x) { return x; }\n}\n";

/// What every part begins with. `@` is the part's number.
const CLASSES: &str = r#"
namespace part_@ {

enum class Kind { none, leaf, pair, list };

struct Shape_@ {
    virtual ~Shape_@() = default;
    virtual long value(long x) const = 0;
    virtual Kind kind() const { return Kind::none; }
};

struct Leaf_@ final : Shape_@ {
    explicit Leaf_@(long number) : number(number) {}
    long value(long x) const override { return number + x % @; }
    Kind kind() const override { return Kind::leaf; }
    long number;
};

struct Pair_@ final : Shape_@ {
    Pair_@(const Shape_@ &left, const Shape_@ &right) : left(left), right(right) {}
    long value(long x) const override { return left.value(x) - right.value(x ^ @); }
    Kind kind() const override { return Kind::pair; }
    const Shape_@ &left, &right;
};

template <typename T, int Size> class Ring_@ {
public:
    void put(const T &item) { items[unsigned(next++) % Size] = item; }
    T sum() const {
        T all{};
        for (const T &item : items) {
            all += item;
        }
        return all;
    }
    template <typename Function> void each(Function function) {
        for (T &item : items) {
            function(item);
        }
    }

private:
    std::array<T, Size> items{};
    int next = 0;
};

template <typename First, typename... Rest> long weigh_@(const First &first, const Rest &...rest) {
    if constexpr (sizeof...(rest) == 0) {
        return long(sizeof(first));
    } else {
        return long(sizeof(first)) + weigh_@(rest...) * 3;
    }
}
"#;

/// What only one part of 32 has: the standard library's templates, with types of the part's own.
const CONTAINERS: &str = r#"
struct Record_@ {
    std::string name;
    std::vector<int> numbers;
    bool operator<(const Record_@ &other) const { return name < other.name; }
};

long containers(long x) {
    std::vector<Record_@> records;
    std::map<std::string, Record_@> names;
    std::unordered_map<int, std::function<long(long)>> functions;
    std::vector<std::unique_ptr<Shape_@>> shapes;
    for (int i = 0; i < 10; i++) {
        Record_@ record{std::to_string(x * i), std::vector<int>(std::size_t(i), i)};
        names.emplace(record.name, record);
        records.push_back(std::move(record));
        shapes.push_back(std::make_unique<Leaf_@>(i));
        functions[i] = [i, x](long y) { return x * i + y; };
    }
    std::sort(records.begin(), records.end());
    std::sort(shapes.begin(), shapes.end(), [x](auto &a, auto &b) { return a->value(x) < b->value(x); });
    for (const auto &[name, record] : names) {
        x += long(name.size()) + std::accumulate(record.numbers.begin(), record.numbers.end(), 0L);
    }
    return std::accumulate(functions.begin(), functions.end(), x,
                           [](long sum, const auto &pair) { return sum + pair.second(sum); });
}
"#;

/// What every part ends with.
const RUN: &str = r#"
long run(long x) {
    Ring_@<long, @> ring;
    Ring_@<double, 7> numbers;
    Leaf_@ left(x), right(@);
    ring.put(Pair_@(left, right).value(x));
    ring.each([&](long &item) { numbers.put(double(item += x)); });
    return part_$::run(x) + ring.sum() + long(numbers.sum()) + weigh_@(x, ring, 'c', numbers)"#;

/// Functions of a part, and how many of those it calls. As in any program with many headers, a compiler parses most
/// functions and throws them away.
const FUNCTIONS: usize = 20;
const CALLED: usize = 2;

/// The file's text: so many lines, or as many more as its last part takes.
pub fn text(lines: usize) -> String {
    let mut writer =
        Writer { text: HEAD.to_owned(), lines: HEAD.lines().count(), random: ChaCha8Rng::seed_from_u64(1) };
    let mut part = 0;
    while writer.lines < lines {
        part += 1;
        writer.part(part);
    }
    writer.add(&format!(
        "\nint main(int count, char **) {{ std::printf(\"%ld\\n\", part_{part}::run(count)); }}\n"
    ));
    writer.text
}

struct Writer {
    text: String,
    lines: usize,
    random: ChaCha8Rng,
}

impl Writer {
    fn add(&mut self, text: &str) {
        self.text += text;
        self.lines += text.matches('\n').count();
    }

    fn part(&mut self, number: usize) {
        let numbered =
            |text: &str| text.replace('@', &number.to_string()).replace('$', &(number - 1).to_string());
        let has_containers = number % 32 == 1;
        self.add(&numbered(CLASSES));
        if has_containers {
            self.add(&numbered(CONTAINERS));
        }
        for function in 0..FUNCTIONS {
            self.function(function);
        }
        let mut run = numbered(RUN);
        for function in 0..CALLED {
            let _ = write!(run, "\n        + f{function}(x, {function})");
        }
        run += if has_containers { "\n        + containers(x);\n}\n\n}\n" } else { ";\n}\n\n}\n" };
        self.add(&run);
    }

    /// A function that may call those before it.
    fn function(&mut self, number: usize) {
        self.add(&format!("\ninline long f{number}(long a, long b) {{\n    long c = a - b, d = a ^ b;\n    double e = double(a) / 3;\n"));
        for _ in 0..self.random.random_range(4..9) {
            self.statement(number, 1);
        }
        self.add("    return a + b + c + d + long(e);\n}\n");
    }

    fn statement(&mut self, function: usize, depth: usize) {
        let indent = "    ".repeat(depth);
        let (to, value, condition) = (self.variable(), self.expression(3), self.expression(2));
        // What holds other statements stands no deeper than that.
        let kind = self.random.random_range(if depth < 4 { 0..10 } else { 0..5 });
        match kind {
            0 | 1 => self.add(&format!("{indent}{to} = {value};\n")),
            2 => self.add(&format!("{indent}{to} += ({condition}) > 0 ? {value} : {depth};\n")),
            3 => self.add(&format!("{indent}e = e * 1.5 + double({value}) / (1.0 + e * e);\n")),
            4 if function > 0 => {
                let called = self.random.random_range(0..function);
                self.add(&format!("{indent}{to} ^= f{called}({value}, {condition});\n"));
            }
            5 => self.block(&format!("if (({condition}) < {to})"), function, depth),
            6 => self.block(
                &format!("for (long i_{depth} = 0; i_{depth} < ({condition}) % 50; i_{depth}++)"),
                function,
                depth,
            ),
            7 => self.block(&format!("while (({condition}) > {to} && --{to} > 0)"), function, depth),
            8 => self.switch(&condition, function, depth),
            9 => {
                self.add(&format!("{indent}{to} += [&](long p) {{ return p * {value}; }}({condition});\n"));
            }
            _ => self
                .add(&format!("{indent}if ({to} == {depth}) throw std::runtime_error(\"f{function}\");\n")),
        }
    }

    fn block(&mut self, head: &str, function: usize, depth: usize) {
        let indent = "    ".repeat(depth);
        self.add(&format!("{indent}{head} {{\n"));
        for _ in 0..self.random.random_range(1..4) {
            self.statement(function, depth + 1);
        }
        self.add(&format!("{indent}}}\n"));
    }

    fn switch(&mut self, value: &str, function: usize, depth: usize) {
        let indent = "    ".repeat(depth);
        self.add(&format!("{indent}switch (({value}) & 7) {{\n"));
        for case in 0..self.random.random_range(2..7) {
            self.add(&format!("{indent}case {case}:\n"));
            self.statement(function, depth + 1);
            self.add(&format!("{indent}    break;\n"));
        }
        self.add(&format!("{indent}default: break;\n{indent}}}\n"));
    }

    fn variable(&mut self) -> char {
        ['a', 'b', 'c', 'd'][self.random.random_range(0..4)]
    }

    fn expression(&mut self, depth: usize) -> String {
        match self.random.random_range(if depth == 0 { 0..3 } else { 0..8 }) {
            0 => self.random.random_range(1..1000).to_string(),
            1 | 2 => self.variable().to_string(),
            3 => format!("std::max({}, {}L)", self.variable(), self.random.random_range(1..100)),
            kind => {
                let operator = ["+", "-", "*", "&", "|", "^"][self.random.random_range(0..6)];
                let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
                if kind == 7 {
                    format!("({left}) {operator} long(e)")
                } else {
                    format!("({left} {operator} {right})")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_long_as_asked_for_and_always_the_same() {
        let lines = text(2000).lines().count();
        assert!((2000..2500).contains(&lines), "{lines}");
        assert_eq!(text(2000), text(2000));
        assert!(text(4000).starts_with(&text(2000)[..60_000]));
    }
}
