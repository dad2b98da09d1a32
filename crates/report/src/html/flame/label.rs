//! The labels in a box and beside it.

use widthwise_anatomy::heap::Column;
use widthwise_experiment::units::{Quantity, Unit};

use super::tree::Amount;

/// Operators whose name has a bracket in it, the longest first.
const BRACKETED: [&str; 13] =
    ["<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">"];

/// A function's name without its arguments, template arguments and return type.
pub fn short(function: &str) -> String {
    let name = function.split(" [clone ").next().unwrap_or(function);
    let mut short = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let operator =
            short.strip_suffix("operator").is_some_and(|before| !before.ends_with(char::is_alphanumeric));
        if let Some(symbol) = BRACKETED.iter().find(|symbol| operator && rest.starts_with(**symbol)) {
            short.push_str(symbol);
            rest = &rest[symbol.len()..];
            continue;
        }
        if let Some(behind) = rest.strip_prefix("(anonymous namespace)") {
            short.push_str("(anonymous)");
            rest = behind;
            continue;
        }
        let length = match first {
            '<' if !short.is_empty() => balanced(rest, '<', '>'),
            '(' if !short.is_empty() => balanced(rest, '(', ')'),
            _ => None,
        };
        match length {
            Some(length) => {
                short.push_str(if first == '<' { "<…>" } else { "" });
                rest = &rest[length..];
            }
            None => {
                short.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    let short = short.strip_suffix(" const").unwrap_or(&short);
    // The name of an operator may contain spaces.
    let named = short
        .match_indices("operator")
        .find(|(at, _)| !short[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map_or(short.len(), |(at, _)| at);
    let begin = short[..named].rfind(' ').map_or(0, |space| space + 1);
    short[begin..].to_owned()
}

/// The length of the text up to the bracket that closes its first character; `->` closes nothing.
fn balanced(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && before != '-' {
            depth -= 1;
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
        before = c;
    }
    None
}

/// `12.0 kB in 3 000 blocks`.
pub fn amount(amount: Amount, column: Column) -> String {
    let unit = if column.unit() == "bytes" { Unit::Bytes } else { Unit::Count };
    let value = match (unit, amount.value) {
        // Amounts below the first prefix are exact.
        (Unit::Bytes, whole @ ..1000) => format!("{whole} B"),
        (unit, value) => Quantity { value: value as f64, unit }.to_string(),
    };
    match (unit, amount.blocks) {
        (Unit::Bytes, 1) => format!("{value} in 1 block"),
        (Unit::Bytes, blocks @ 2..) => {
            format!("{value} in {} blocks", Quantity { value: blocks as f64, unit: Unit::Count })
        }
        (Unit::Bytes, _) => value,
        _ => format!("{value} blocks"),
    }
}

/// `12.3 %` of the whole.
pub fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// From the first to the second: `−31 %`, `second only`, `first only`, `same`.
pub fn change(amounts: [Amount; 2]) -> String {
    match amounts.map(|amount| amount.value) {
        [first, second] if first == second => "same".to_owned(),
        [0, _] => "second only".to_owned(),
        [_, 0] => "first only".to_owned(),
        [first, second] => {
            let percent = 100.0 * (second as f64 / first as f64 - 1.0);
            let sign = if percent < 0.0 { "−" } else { "+" };
            match percent.abs() {
                large @ 9.95.. => format!("{sign}{large:.0} %"),
                small => format!("{sign}{small:.1} %"),
            }
        }
    }
}

/// The direction, for places without room for the number and without colour.
pub fn arrow(amounts: [Amount; 2]) -> &'static str {
    match strength(amounts) {
        0 => "",
        ..0 => "▼ ",
        _ => "▲ ",
    }
}

/// The strength of a change's colour: 0 is none, negative is less. It depends on the difference relative to
/// the larger of the two, so that what only one has is the strongest.
pub fn strength(amounts: [Amount; 2]) -> i8 {
    let [first, second] = amounts.map(|amount| amount.value as f64);
    let difference = (second - first) / first.max(second).max(1.0);
    // Halved pointer sizes make 50 %; 2 % is hardly a difference.
    let steps = [0.02, 0.15, 0.35].iter().filter(|step| difference.abs() >= **step).count() as i8;
    if difference < 0.0 {
        -steps
    } else {
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_their_essential_part() {
        for (function, output) in [
            ("main", "main"),
            ("fill(unsigned long)", "fill"),
            ("operator new[](unsigned long)", "operator new[]"),
            (
                "void std::vector<int*, std::allocator<int*> >::_M_realloc_insert<int*>(int*&&)",
                "std::vector<…>::_M_realloc_insert<…>",
            ),
            ("std::map<int, A<(B)1> >::operator[](int&&)", "std::map<…>::operator[]"),
            ("bool operator<(Track const&, Track const&)", "operator<"),
            ("std::ostream& operator<< <char>(std::ostream&, char const*)", "operator<< <…>"),
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator unsigned int() const", "A::operator unsigned int"),
            ("(anonymous namespace)::grow(int)", "(anonymous)::grow"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"),
            ("unsigned long f<A->b>(int) [clone .cold]", "f<…>"),
            ("Track<", "Track<"),
            ("cooperator<int>", "cooperator<…>"),
            ("", ""),
        ] {
            assert_eq!(short(function), output, "{function}");
        }
    }

    fn both(first: u64, second: u64) -> [Amount; 2] {
        [first, second].map(|value| Amount { value, blocks: 0 })
    }

    #[test]
    fn a_change_names_its_direction() {
        assert_eq!(change(both(80, 40)), "−50 %");
        assert_eq!(change(both(100, 103)), "+3.0 %");
        assert_eq!(change(both(10_000, 9003)), "−10 %");
        assert_eq!(
            [change(both(0, 3)), change(both(3, 0)), change(both(3, 3))],
            ["second only", "first only", "same"]
        );
    }

    #[test]
    fn colours_grow_with_the_difference_and_turn_with_its_sign() {
        let strengths: Vec<i8> =
            [(100, 0), (80, 40), (100, 80), (100, 95), (100, 99), (100, 101), (95, 100), (0, 1)]
                .map(|(first, second)| strength(both(first, second)))
                .to_vec();
        assert_eq!(strengths, [-3, -3, -2, -1, 0, 0, 1, 3]);
        assert_eq!(strength(both(0, 0)), 0);
    }

    #[test]
    fn amounts_have_their_unit() {
        assert_eq!(
            amount(Amount { value: 12_000, blocks: 3000 }, Column::PeakBytes),
            "12.0 kB in 3\u{202f}000 blocks"
        );
        assert_eq!(amount(Amount { value: 16, blocks: 1 }, Column::AllocBytes), "16 B in 1 block");
        assert_eq!(amount(Amount { value: 16, blocks: 0 }, Column::AllocCount), "16 blocks");
        assert_eq!(amount(Amount::default(), Column::PeakBytes), "0 B");
    }
}
