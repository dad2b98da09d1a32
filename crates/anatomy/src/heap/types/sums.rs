//! Products and sums in a line of source: where they begin and end.

use super::source_text::{arguments, last_word, operand};
use crate::names::closing_bracket;

/// Where the `sizeof` at that place and its operand begin and end.
pub(super) fn measured_at(code: &str, at: usize) -> (usize, usize) {
    let behind = code[at + 6..].trim_start();
    (at, code.len() - behind.len() + operand(behind).map_or(0, str::len))
}

/// Where the sum begins and ends that the `sizeof` at that place is in a term of: the product that it is a factor of ends at a plus or a
/// minus, also if it is in brackets of its own.
pub(super) fn sum_around(code: &str, at: usize) -> Option<(usize, usize)> {
    let (mut low, mut high) = measured_at(code, at);
    loop {
        let open = match product_start(&code[..low]) {
            End::Sum(_) => return Some(sum_edges(code, low, high)),
            End::Bracket(open) => Some(open),
            End::Other(_) => None,
        };
        let close = match product_end(&code[high..]) {
            End::Sum(_) => return Some(sum_edges(code, low, high)),
            End::Bracket(close) => Some(high + close),
            End::Other(_) => None,
        };
        let (open, close) = (open?, close?);
        if !matches!(last_word(&code[..open]), "" | "return") || code[..open].ends_with('>') {
            // The arguments of a call.
            return None;
        }
        (low, high) = (open, close + 1);
    }
}

/// Whether the `sizeof` at that place is a term of a sum by itself, without factors.
pub(super) fn is_term(code: &str, at: usize) -> bool {
    let (low, high) = measured_at(code, at);
    let before = code[..low].trim_end();
    let behind = code[high..].trim_start();
    before.ends_with(['(', ',', '+', '=']) && (behind.is_empty() || behind.starts_with([')', ',', '+', ';']))
}

/// Where the sum begins and ends that has a term between these places.
fn sum_edges(code: &str, mut low: usize, mut high: usize) -> (usize, usize) {
    while let End::Sum(at) = product_start(&code[..low]) {
        low = at;
    }
    while let End::Sum(at) = product_end(&code[high..]) {
        high += at + 1;
    }
    let begin = match product_start(&code[..low]) {
        End::Bracket(at) | End::Other(Some(at)) | End::Sum(at) => at + 1,
        End::Other(None) => 0,
    };
    let end = match product_end(&code[high..]) {
        End::Bracket(at) | End::Other(Some(at)) | End::Sum(at) => high + at,
        End::Other(None) => code.len(),
    };
    (begin, end)
}

/// What a product ends at.
pub(super) enum End {
    /// A plus or a minus.
    Sum(usize),
    /// A round bracket that is not opened and closed within it.
    Bracket(usize),
    /// A comma or another operator; the end of the text, which has no place.
    Other(Option<usize>),
}

/// Where the product begins that continues behind this text.
fn product_start(text: &str) -> End {
    product_edge(text, text.char_indices().rev(), ")]", "([")
}

/// Where the product ends that began before this text.
pub(super) fn product_end(text: &str) -> End {
    product_edge(text, text.char_indices(), "([", ")]")
}

/// Where a product ends in the direction of these characters, in which brackets `open` and `close` so, round ones first.
fn product_edge(text: &str, characters: impl Iterator<Item = (usize, char)>, open: &str, close: &str) -> End {
    let mut depth = 0usize;
    for (at, c) in characters {
        if open.contains(c) {
            depth += 1;
        } else if close.contains(c) && depth > 0 {
            depth -= 1;
        } else if close.starts_with(c) {
            return End::Bracket(at);
        } else if depth == 0 {
            if let Some(end) = end_of_product(text, at, c) {
                return end;
            }
        }
    }
    End::Other(None)
}

/// Whether a character outside of brackets ends a product: not in `++`, `--`, `->` and `::`.
fn end_of_product(text: &str, at: usize, c: char) -> Option<End> {
    let (before, behind) = (&text[..at], &text[at + c.len_utf8()..]);
    let is_double = before.ends_with(c) || behind.starts_with(c);
    match c {
        '+' | '-' if is_double || behind.starts_with('>') => None,
        '+' | '-' => Some(End::Sum(at)),
        ':' if is_double => None,
        ',' | ';' | '{' | '}' | '[' | ']' | '=' | '?' | ':' | '&' | '|' | '^' => Some(End::Other(Some(at))),
        _ => None,
    }
}

/// Whether a call, with its opening bracket there, asks for what a variable has, or for several of that, and for nothing else.
pub(super) fn is_asked_for(code: &str, open: usize, variable: &str) -> bool {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || "_.:".contains(c);
    arguments(code, open).into_iter().any(|(_, argument)| {
        let argument = without_casts(argument).replace("->", ".");
        let mut factors = argument.split('*').map(without_casts);
        let are_names = factors.clone().all(|factor| factor.chars().all(is_part_of_a_name));
        are_names && factors.any(|factor| factor == variable)
    })
}

/// A factor without casts in front of it and brackets around it.
fn without_casts(factor: &str) -> &str {
    let mut rest = factor.trim();
    while let Some(close) = rest.starts_with('(').then(|| closing_bracket(rest)).flatten() {
        let behind = rest[close + 1..].trim_start();
        rest = if behind.is_empty() { rest[1..close].trim() } else { behind };
    }
    rest
}
