//! Products and sums in a line of source: where they begin and end.

use super::source_text::{last_word, operand};

/// Whether the `sizeof` at that place is in a term of a sum: the product that it is a factor of ends at a plus or a minus, also
/// if it is in brackets of its own.
pub(super) fn is_in_a_sum(code: &str, at: usize) -> bool {
    let behind = code[at + 6..].trim_start();
    let (mut low, mut high) = (at, code.len() - behind.len() + operand(behind).map_or(0, str::len));
    loop {
        let open = match product_start(&code[..low]) {
            End::Sum => return true,
            End::Bracket(open) => Some(open),
            End::Other => None,
        };
        let close = match product_end(&code[high..]) {
            End::Sum => return true,
            End::Bracket(close) => Some(high + close),
            End::Other => None,
        };
        let (Some(open), Some(close)) = (open, close) else { return false };
        if !matches!(last_word(&code[..open]), "" | "return") || code[..open].ends_with('>') {
            // The arguments of a call.
            return false;
        }
        (low, high) = (open, close + 1);
    }
}

/// What a product ends at.
pub(super) enum End {
    /// A plus or a minus.
    Sum,
    /// A round bracket that is not opened and closed within it.
    Bracket(usize),
    /// A comma, another operator, the end of the text.
    Other,
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
    End::Other
}

/// Whether a character outside of brackets ends a product: not in `++`, `--`, `->` and `::`.
fn end_of_product(text: &str, at: usize, c: char) -> Option<End> {
    let (before, behind) = (&text[..at], &text[at + c.len_utf8()..]);
    let is_double = before.ends_with(c) || behind.starts_with(c);
    match c {
        '+' | '-' if is_double || behind.starts_with('>') => None,
        '+' | '-' => Some(End::Sum),
        ':' if is_double => None,
        ',' | ';' | '{' | '}' | '[' | ']' | '=' | '?' | ':' | '&' | '|' | '^' => Some(End::Other),
        _ => None,
    }
}
